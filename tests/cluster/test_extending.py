"""An engine and a kind of job are each one file or folder and one line in a copy of this checkout; both run on YARN."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from hadoop.local.lifecycle import Cluster
from tests.cluster.site import Site, nodewise, succeed
from tests.cluster.test_job import rows
from tests.recipes.checkout import Checkout
from tests.recipes.pages import block
from tests.recipes.shell import changed

LENGTHS = Path(__file__).parent / "lengths"
COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255)}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


def paint(folder: Path) -> dict[str, str]:
    """Pictures that are dim in their colours, by name with what each of them is."""
    folder.mkdir()
    found = {}
    for name, rgb in COLOURS.items():
        for number, share in enumerate((0.6, 0.8, 0.9)):
            dim = tuple(round(share * part) for part in rgb)
            Image.new("RGB", (50, 40), dim).save(folder / f"{name}{number}.png")
            found[f"/data/colours/{name}{number}.png"] = name
    return found


def test_an_engine_is_a_file_and_a_line_and_classifies_pictures(checkout: Checkout, site: Site, tmp_path: Path) -> None:
    file, registry = "jobs/engines/colours.py", "jobs/engines/__init__.py"
    checkout.write(file, block("engine"))
    checkout.add_line(registry, block("engine-line"), below="ENGINES = {")
    assert checkout.changes() == [f"{registry}: +     {block('engine-line').strip()}", file]
    pictures = paint(tmp_path / "pictures")
    home = str(site.cluster.home)
    shell = checkout.shell(tmp_path / "home", NODEWISE_URL=site.url, NODEWISE_HOME=home)
    shell.run(f"nodewise images load {tmp_path / 'pictures'} hdfs:///data/colours")

    recipe = changed(block("engine-tried"), ("/data/images", "/data/colours"))
    recipe = changed(recipe, ("job result hdfs:///out/colours", "job result hdfs:///out/colours --json > rows.json"))
    shell.run(recipe, timeout=600)

    rows = json.loads((checkout.folder / "rows.json").read_text())
    assert {row["path"]: row["class_name"] for row in rows} == pictures
    assert {row["engine"].partition(".")[0] for row in rows} == {"colours"}
    assert all(row["error"] is None for row in rows)


def test_a_kind_is_a_folder_and_a_line_and_runs_where_it_is_told_to(
    checkout: Checkout, cluster: Cluster, tmp_path: Path
) -> None:
    folder, registry = "jobs/kinds/count", "jobs/kinds/__init__.py"
    checkout.write(f"{folder}/__init__.py", "")
    checkout.write(f"{folder}/runner.py", block("kind"))
    checkout.add_line(registry, block("kind-line"), below="KINDS: Mapping[str, str] = {")
    assert checkout.changes() == [f"{registry}: +     {block('kind-line').strip()}", folder]
    (tmp_path / "submit.py").write_text(block("kind-submit"))
    host = cluster.nodes[2]

    shell = checkout.shell(tmp_path / "home")
    words = f"python {tmp_path}/submit.py {cluster.conf_dir} {cluster.jars} {cluster.user} {host}"
    said = shell.run(words, timeout=600)

    found = json.loads(said.splitlines()[-1])
    assert found["said"] == f"counted to 5 on {host}"
    status = found["status"]
    assert (status["kind"], status["done"], status["of"], status["unit"]) == ("count", 5, 5, "numbers")
    logged = succeed(nodewise(cluster.home, "job", "logs", found["job_id"], "--json"))
    printed = [json.loads(line) for line in logged.splitlines()]
    assert [one["line"] for one in printed if one["line"].startswith("number")] == [f"number {n}" for n in range(5)]
    assert {one["node_name"] for one in printed} == {host}


def test_a_kind_that_divides_other_items_shares_plan_leases_results_and_report(
    checkout: Checkout, site: Site, tmp_path: Path
) -> None:
    checkout.write("jobs/kinds/lengths/__init__.py", "")
    checkout.write("jobs/kinds/lengths/coordinator.py", (LENGTHS / "coordinator.py").read_text())
    line = '"lengths": "jobs.kinds.lengths.coordinator:Lengths",'
    checkout.add_line("jobs/kinds/__init__.py", line, below="KINDS: Mapping[str, str] = {")
    cluster, output, token = site.cluster, "/out/lengths", site.token_file.read_text().strip()
    where = [cluster.conf_dir, cluster.jars, cluster.user, LENGTHS / "worker.py", site.url, token]
    words = " ".join(map(str, ["python", LENGTHS / "submit.py", *where, "/data/images", output]))
    said = checkout.shell(tmp_path / "home").run(words, timeout=600)

    files = {f"/data/images/{name}": status["length"] for name, status in site.hdfs().list("/data/images", status=True)}
    assert said.splitlines()[-1].startswith(f"{len(files)} files, makespan ")
    assert {row["path"]: row["length"] for row in rows(site, output)} == files
    report = json.loads(succeed(site.nodewise("job", "report", f"hdfs://{output}", "--json")))
    assert (report["engine"], report["unit"], report["images"], report["errors"]) == ("lengths", "files", len(files), 0)
    explained = succeed(site.nodewise("job", "explain", report["job_id"]))
    assert f"{report['job_id']}: {len(files)} files of /data/images" in explained
    assert {one.unit for one in site.client().producers() if ":lengths:" in one.data_name} == {"files/second"}
