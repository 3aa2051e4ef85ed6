"""The main job on a real cluster: pictures in HDFS, values from real agents, containers of YARN, rows in Parquet."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from hdfs import InsecureClient

from hadoop import daemons
from hadoop.local import Cluster
from infosvc.client import InfoClient
from infosvc.errors import InfoError
from infosvc.records import Kind, Producer, Role

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PICTURES = 40
BROKEN = {"zz_cut.jpg": "", "zz_text.jpg": "not a picture"}
REPORT_KEYS = {
    *("job_id", "application_id", "engine", "policy", "capability", "images", "errors", "started_at"),
    *("makespan_seconds", "lower_bound_seconds", "makespan_over_bound", "bytes_read", "bytes_moved"),
    *("bytes_moved_optimal", "locality_ratio", "nodes", "inputs"),
}
NODE_KEYS = {
    *("node_name", "capability", "planned_images", "images", "local_images", "seconds", "images_per_second"),
}


@dataclass(frozen=True)
class Site:
    """A cluster with its service, its agents and pictures in /data/images."""

    cluster: Cluster
    url: str
    token_file: Path

    def nodewise(self, *words: str) -> subprocess.CompletedProcess[str]:
        return nodewise(self.cluster.home, *words, url=self.url)

    def submit(self, output: str, *words: str, capability: str = "perf_even") -> subprocess.CompletedProcess[str]:
        words = ("--input", "hdfs:///data/images", "--capability", capability, "--output", output, *words)
        return self.nodewise("job", "submit", *words, "--batch", "8", "--wait", "--json")

    def client(self) -> InfoClient:
        return InfoClient.from_token_file(self.url, self.token_file)

    def hdfs(self) -> InsecureClient:
        return InsecureClient(f"http://{self.cluster.master}:9870", user=self.cluster.user)


def nodewise(home: Path, *words: str, url: str = "http://127.0.0.1:1") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NODEWISE_URL": url}
    environment.pop("HADOOP_CONF_DIR", None)
    command = [sys.executable, "-m", "nodewise", "--home", str(home), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.2)
    return found


def succeed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def ready(url: str) -> bool:
    try:
        InfoClient(url).producers()
    except InfoError:
        return False
    return True


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    url = f"http://{cluster.master}:8400"
    serve = [sys.executable, "-m", "nodewise", "--home", str(cluster.home), "serve", "--host", cluster.master]
    service = subprocess.Popen(serve, stdout=subprocess.DEVNULL)
    try:
        until(lambda: ready(url))
        directory = str(cluster.home / "agents" / "{node}")
        config = str(cluster.home / "cluster" / "ssh" / "config")
        succeed(
            nodewise(
                cluster.home,
                "node",
                "add",
                "-F",
                config,
                "--directory",
                directory,
                "--allow",
                str(EXAMPLES),
                *cluster.nodes,
                url=url,
            )
        )
        pictures = tmp_path_factory.mktemp("pictures")
        succeed(nodewise(cluster.home, "images", "make", str(pictures), "-n", str(PICTURES)))
        spoil(pictures)
        loaded = succeed(
            nodewise(cluster.home, "images", "load", str(pictures), "hdfs:///data/images", "--keep-broken", "--json")
        )
        assert json.loads(loaded)["loaded"] == PICTURES + len(BROKEN)
        yield Site(cluster, url, cluster.home / "service" / "token")
    finally:
        service.terminate()
        service.wait(20)


def spoil(pictures: Path) -> None:
    """Add a truncated JPEG and a text that calls itself one."""
    whole = sorted(pictures.glob("*.jpg"))[0].read_bytes()
    (pictures / "zz_cut.jpg").write_bytes(whole[: len(whole) // 2])
    (pictures / "zz_text.jpg").write_text("these are words")


def rows(site: Site, output: str) -> list[dict[str, Any]]:
    """All rows of a result, read without Java as a user would."""
    found: list[dict[str, Any]] = []
    for name in site.hdfs().list(output):
        if name.endswith(".parquet"):
            with site.hdfs().read(f"{output}/{name}") as stream:
                found += pq.read_table(io.BytesIO(stream.read())).to_pylist()
    return found


def left_behind(site: Site, output: str) -> list[str]:
    """What there is of a failed job: its output, and half-written files in its owner's folder."""
    hdfs = site.hdfs()
    staging = f"/user/{site.cluster.user}/.nodewise"
    output_left = [output] if hdfs.status(output, strict=False) else []
    return output_left + (hdfs.list(staging) if hdfs.status(staging, strict=False) else [])


@pytest.fixture(scope="module")
def first(site: Site) -> dict[str, Any]:
    """The report of one job by equal weights."""
    report: dict[str, Any] = json.loads(succeed(site.submit("hdfs:///out/even")))
    return report


def test_every_picture_has_exactly_one_row(site: Site, first: dict[str, Any]) -> None:
    stored = {f"/data/images/{name}" for name in site.hdfs().list("/data/images")}
    paths = [row["path"] for row in rows(site, "/out/even")]

    assert len(paths) == len(set(paths)) == PICTURES + len(BROKEN) == first["images"]
    assert set(paths) == stored


def test_a_broken_picture_has_a_row_with_the_reason(site: Site, first: dict[str, Any]) -> None:
    errors = {row["path"].rpartition("/")[2]: row["error"] for row in rows(site, "/out/even") if row["error"]}

    assert set(errors) == set(BROKEN)
    assert "not a picture" in errors["zz_text.jpg"]
    assert first["errors"] == len(BROKEN)


def test_a_row_tells_five_classes_the_node_and_the_engine(site: Site, first: dict[str, Any]) -> None:
    row = next(row for row in rows(site, "/out/even") if not row["error"])

    assert len(row["top5"]) == 5
    assert row["class_id"] == row["top5"][0]["class_id"]
    assert row["node_name"] in site.cluster.nodes
    assert row["engine"] == "mxnet_alexnet"


def test_the_command_lists_what_became_of_each_picture(site: Site, first: dict[str, Any]) -> None:
    everything = json.loads(succeed(site.nodewise("job", "result", "hdfs:///out/even", "--json")))
    broken = json.loads(succeed(site.nodewise("job", "result", "hdfs:///out/even", "--errors", "--json")))

    assert [row["path"] for row in everything] == sorted(row["path"] for row in rows(site, "/out/even"))
    assert [row["path"].rpartition("/")[2] for row in broken] == sorted(BROKEN)


def test_the_report_is_what_the_contract_says(site: Site, first: dict[str, Any]) -> None:
    assert first.keys() >= REPORT_KEYS
    assert all(node.keys() >= NODE_KEYS for node in first["nodes"])
    assert {value["node_name"] for value in first["inputs"]} == set(site.cluster.nodes)
    assert first["makespan_over_bound"] >= 1
    assert first["bytes_moved"] >= first["bytes_moved_optimal"]
    assert "classes mean nothing" in first["weights"]["meaning"]
    with site.hdfs().read("/out/even/report.html", encoding="utf-8") as page:
        assert first["job_id"] in page.read()


def test_the_plan_is_what_the_nodes_did(first: dict[str, Any]) -> None:
    assert all(node["images"] == node["planned_images"] for node in first["nodes"])
    assert {node["images"] for node in first["nodes"]} <= {10, 11}


def test_speeds_are_written_back_and_become_the_next_judgement(site: Site, first: dict[str, Any]) -> None:
    speeds = {datum.node_name: datum.number() for datum in site.client().data("images_per_second:mxnet_alexnet")}
    assert speeds == pytest.approx({node["node_name"]: node["images_per_second"] for node in first["nodes"]})

    lent = [token for token in site.client().tokens() if token.name == f"job {first['job_id']}"]
    assert [(token.role, token.revoked_at is None) for token in lent] == [(Role.PROCESSOR, False)]

    report = json.loads(succeed(site.submit("hdfs:///out/history", capability="perf_history")))

    judged = {node["node_name"]: node["capability"] for node in report["nodes"]}
    assert judged == pytest.approx(speeds, rel=1e-4)


def test_another_capability_is_another_plan_and_no_other_code(site: Site) -> None:
    client = site.client()
    client.put_producer(Producer("my_own_judgement", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for weight, node in enumerate(site.cluster.nodes):
        client.put_value("my_own_judgement", node, weight)

    report = json.loads(succeed(site.submit("hdfs:///out/own", capability="my_own_judgement")))

    assert [node["planned_images"] for node in report["nodes"]] == [0, 7, 14, 21]
    assert len(rows(site, "/out/own")) == PICTURES + len(BROKEN)


def test_own_labels_name_the_classes(site: Site, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"thing {number}" for number in range(1000)))

    succeed(site.submit("hdfs:///out/labels", "--labels", str(labels), "--policy", "local_only"))

    named = [row for row in rows(site, "/out/labels") if not row["error"]]
    assert all(row["class_name"] == f"thing {row['class_id']}" for row in named)


def test_weights_that_do_not_fit_end_the_job_with_their_name(site: Site, tmp_path: Path) -> None:
    weights = tmp_path / "cat.params"
    weights.write_bytes(b"no parameters")

    done = site.submit("hdfs:///out/weights", "--weights", str(weights))

    assert done.returncode == 1
    assert "does not fit AlexNet" in done.stderr
    assert left_behind(site, "/out/weights") == []


def test_an_operator_s_own_collector_runs_under_its_own_absolute_path(site: Site) -> None:
    script = EXAMPLES / "getCpuUsage.sh"
    put = ["producer", "put", "getCpuUsage", "--cmd", str(script), "--time-max", "1", "--unit", "ratio"]
    succeed(site.nodewise(*put))
    succeed(site.nodewise("slot", "start", "getCpuUsage"))

    def measured() -> bool:
        return {datum.node_name for datum in site.client().data("getCpuUsage") if datum.state == "fresh"} == nodes

    nodes = set(site.cluster.nodes)
    until(measured)
    assert all(0 <= datum.number() <= 1 for datum in site.client().data("getCpuUsage"))


def test_the_block_distribution_is_measured_by_one_node_for_all(site: Site) -> None:
    cmd = f"processors/block_distribution.py http://{site.cluster.master}:9870 /data/images"
    succeed(site.nodewise("producer", "put", "block_distribution", "--cmd", cmd, "--time-max", "2"))
    succeed(site.nodewise("slot", "start", "block_distribution"))

    until(lambda: [datum for datum in site.client().data("block_distribution") if datum.state == "fresh"])

    (datum,) = site.client().data("block_distribution")
    held = json.loads(str(datum.data_value))
    assert set(held) <= set(site.cluster.nodes)
    assert sum(node["blocks"] for node in held.values()) == 2 * (PICTURES + len(BROKEN))


REFUSALS = {
    "data name": (["--capability", "perf_evne"], "perf_evne"),
    "policy": (["--policy", "best"], "best"),
    "engine": (["--engine", "vgg"], "vgg"),
    "path": (["--input", "hdfs:///no/such"], "/no/such"),
    "file system": (["--input", "s3://bucket/x"], "s3://bucket/x"),
    "service": (["--url", "http://127.0.0.1:9"], "http://127.0.0.1:9"),
    "value": (["--capability", "never_measured", "--capability-wait", "0"], "never_measured"),
    "site files": (["--hadoop-conf", "/no/conf"], "/no/conf"),
}


@pytest.mark.parametrize(("words", "named"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_work_is_refused_in_one_sentence(site: Site, words: list[str], named: str) -> None:
    site.client().put_producer(Producer("never_measured", cmd="", time_max=3600, kind=Kind.PROGRAM))

    done = site.submit("hdfs:///out/refused", *words)

    assert done.returncode == 1
    sentence = done.stderr.strip().splitlines()[-1]
    assert sentence.startswith("Error: ")
    assert named in sentence
    assert "Traceback" not in done.stderr
    assert left_behind(site, "/out/refused") == []


def test_results_are_never_overwritten(site: Site, first: dict[str, Any]) -> None:
    done = site.submit("hdfs:///out/even")

    assert done.returncode == 1
    assert "/out/even exists already" in done.stderr
    assert len(rows(site, "/out/even")) == PICTURES + len(BROKEN)


def test_the_logs_of_a_job_are_kept_and_found(site: Site, first: dict[str, Any]) -> None:
    text = succeed(site.nodewise("job", "logs", first["job_id"]))

    assert "plan: " in text
    assert all(f"{worker:06}" in text for worker in range(2, 6)), "the master's container is 1, the workers' follow"


def test_a_job_s_state_is_shown_to_programs(site: Site, first: dict[str, Any]) -> None:
    status = json.loads(succeed(site.nodewise("job", "status", first["job_id"], "--json")))
    listed = json.loads(succeed(site.nodewise("job", "list", "--json")))

    assert status["final"] == "SUCCEEDED"
    assert first["job_id"] in [job["application_id"] for job in listed]


def master_node(site: Site) -> str | None:
    """The node that was chosen for the application master of the job under way, once there is one."""
    url = f"http://{site.cluster.master}:8088/ws/v1/cluster/apps?states=ACCEPTED,RUNNING"
    with urlopen(url, timeout=10) as answer:
        under_way = (json.load(answer)["apps"] or {}).get("app", [])
    addresses = [job.get("amHostHttpAddress", "").partition(":")[0] for job in under_way]
    return next((address for address in addresses if address), None)


def test_a_node_that_dies_before_its_container_starts_costs_the_job_a_sentence(site: Site) -> None:
    with ThreadPoolExecutor(1) as background:
        submitted = background.submit(site.submit, "hdfs:///out/dead")
        master = until(lambda: master_node(site))
        node = next(name for name in site.cluster.nodes if name != master)
        # Frozen, it still counts as alive when the plan is made; then it misses its heartbeats and is lost.
        victim = daemons.running(site.cluster)[daemons.Daemon(site.cluster, "nodemanager", node)]
        victim.send_signal(signal.SIGSTOP)
        try:
            done = submitted.result()
        finally:
            victim.send_signal(signal.SIGCONT)

    assert done.returncode == 1
    assert f"{node} was lost before its container started" in done.stderr
    assert left_behind(site, "/out/dead") == []
