"""An environment that this machine makes in the lab's HDFS: workers run in it, and need none of its packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import lab
from lab.places import ROOT
from tests.lab.playbooks import changes, pictures, play, ran, results, sweep, until

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

WORKERS = ("worker1", "worker2", "worker3", "worker4")
PYTHON = "/opt/nodewise/worker"
"""That of containers without an environment, with MXNet and its packages."""
PREFIX, KEPT = "/opt/nodewise", "/opt/nodewise/kept"
AWAY = f"mkdir {KEPT} && mv {PREFIX}/worker {PREFIX}/releases/worker-* {KEPT}"
BACK = (
    f"[ ! -d {KEPT} ] || {{ rm -rf {PREFIX}/worker {PREFIX}/releases/worker-* && mv {KEPT}/worker {PREFIX}"
    f" && mv {KEPT}/worker-* {PREFIX}/releases && rmdir {KEPT}; }}"
)
"""All of that Python, out of the playbook's sight, so that it need not be unpacked again."""
MXNET = "import mxnet; print(mxnet.__file__.startswith('/opt/env/'), mxnet.nd.ones(3).sum().asscalar())"
OWN = "import sys, onnxruntime; print(sys.prefix, onnxruntime.__file__.startswith(sys.prefix))"


@pytest.fixture(scope="module")
def made(cluster: list[lab.Machine], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of all that workers need. Who makes it needs the cluster's site files, and to find its machines."""
    folder = tmp_path_factory.mktemp("client")
    for name in ("core-site.xml", "hdfs-site.xml", "yarn-site.xml"):
        (folder / name).write_text(lab.run("master", ["cat", f"/etc/hadoop/{name}"]))
    hosts = folder / "hosts"
    hosts.write_text("".join(f"{one.address} {one.name}\n" for one in cluster))
    told = {"HADOOP_CONF_DIR": str(folder), "HADOOP_USER_NAME": "nodewise"}
    words = ["env", "make", "workers", "--version", "1", "--requirements", str(ROOT / "requirements" / "worker.txt")]
    subprocess.run(
        [sys.executable, "-m", "nodewise", "--home", str(folder), *words],
        env={**os.environ, **told, "JAVA_TOOL_OPTIONS": f"-Djdk.net.hosts.file={hosts}"},
        check=True,
    )
    yield "workers@1"
    lab.nodewise("env", "rm", "workers@1", "--force")


def test_a_task_sees_its_packages_and_leaves_no_mount_but_the_shared_one(made: str) -> None:
    printed, node = ran("--env", made, "--", "python", "-c", OWN)

    assert printed == "/opt/env True\n"
    assert lab.run(node, ["sh", "-c", "pgrep -c squashfuse || true"]).strip() == "1"
    lab.run(node, ["sudo", "systemctl", "restart", "nodewise-mounts"])
    until(lambda: lab.run(node, ["sh", "-c", "pgrep -c squashfuse || true"]).strip() == "0", 30)


@pytest.fixture
def bare_workers(cluster: list[lab.Machine]) -> Iterator[None]:
    """No worker has a Python with packages for containers while the test runs."""
    try:
        for node in WORKERS:
            lab.run(node, ["sudo", "mv", PYTHON, f"{PYTHON}.away"])
        yield
    finally:
        for node in WORKERS:
            lab.run(node, ["sudo", "sh", "-c", f"[ ! -e {PYTHON}.away ] || mv {PYTHON}.away {PYTHON}"])


@pytest.mark.usefixtures("bare_workers")
def test_workers_without_packages_classify_in_it(made: str) -> None:
    sweep("/data/twenty", "/out/twenty")
    pictures(20, "/data/twenty")
    words = ["--input", "hdfs:///data/twenty", "--output", "hdfs:///out/twenty", "--capability", "perf_cpu"]
    report = json.loads(lab.nodewise("job", "submit", *words, "--env", made, "--wait", "--json"))
    rows = results("/out/twenty")
    sweep("/data/twenty", "/out/twenty")

    assert report["images"] == len(rows) == 20
    assert [row["error"] for row in rows if row["error"]] == []


@pytest.fixture
def bare_worker(cluster: list[lab.Machine]) -> Iterator[str]:
    """One worker of which nobody knows that it has ever had that Python."""
    name = WORKERS[-1]
    try:
        lab.run(name, ["sudo", "sh", "-c", AWAY])
        yield name
    finally:
        lab.run(name, ["sudo", "sh", "-c", BACK])


def test_a_worker_that_shall_have_no_python_of_its_own_gets_none_and_runs_what_is_in_it(
    made: str, bare_worker: str
) -> None:
    words = ["--tags", "jobs", "--limit", bare_worker, "-e", "nodewise_worker_python=false"]
    changed = changes(play("site.yml", *words))
    there = lab.run(bare_worker, ["ls", PREFIX, f"{PREFIX}/releases"]).split()
    printed, node = ran("--memory", "768", "--node", bare_worker, "--env", made, "--", "python", "-c", MXNET)

    assert changed == {bare_worker: 0}
    assert [one for one in there if one.startswith("worker")] == []
    assert (printed, node) == ("True 3.0\n", bare_worker)


def test_each_worker_tells_that_it_can_run_it(made: str) -> None:
    told = json.loads(lab.nodewise("env", "fit", made, "--json"))["nodes"]

    assert {node: told[node] for node in WORKERS} == dict.fromkeys(WORKERS, "")
