"""nodewise installed from its wheel as docs/operate.md shows: no checkout is on its path, and all of it works.

Its home is one that version 0.1 has left, as after an upgrade: what that service knew is still there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hadoop.local.lifecycle import Cluster
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer
from tests.cluster.site import succeed, until
from tests.cluster.small_network import small_network
from tests.cluster.standing import Standing
from tests.ports import free_port
from tests.recipes.pages import ROOT, block
from tests.wheels.built import Environment, build, run
from tests.wheels.hadoop_home import lay_out

pytestmark = pytest.mark.cluster

BEFORE = ROOT / "tests" / "fixtures" / "before_rooms" / "infosvc.db"
WORKER = str(ROOT / ".venv-worker" / "bin" / "python")


@dataclass(frozen=True)
class Installation:
    """An environment with nodewise, its service, and the cluster that it works on."""

    environment: Environment
    cluster: Cluster
    url: str

    @property
    def home(self) -> Path:
        return self.environment.work() / "home"

    def nodewise(self, *words: str | Path) -> str:
        cluster = {"HADOOP_CONF_DIR": str(self.cluster.conf_dir), "HADOOP_USER_NAME": self.cluster.user}
        told = {"NODEWISE_URL": self.url, "NODEWISE_WORKER_PYTHON": WORKER, **cluster}
        return succeed(self.environment.nodewise(*words, **told))

    def client(self) -> InfoClient:
        return InfoClient.from_token_file(self.url, self.home / "service" / "token", 60.0)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What the lines of the page make."""
    folder = tmp_path_factory.mktemp("installed")
    made = Environment(folder / "work" / "nodewise")
    made.work()
    wheel = build(folder).main
    shutil.copy(wheel, made.work())
    settings = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "NODEWISE_WORKER_PYTHON": WORKER}
    variables = made.variables() | settings
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    text = block("install-wheel").replace("/opt/hadoop", str(lay_out(folder / "hadoop")))
    first, others = text.split("\n", 1)
    run(["bash", "-euc", first], made.work(), variables)
    # What nodewise depends on, and nothing of the checkout: .pth files there are not read.
    (made.packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(["bash", "-euc", f"{first}\n{others}".replace("python3 -m venv ~/nodewise && ", "")], made.work(), variables)
    return made


@pytest.fixture(scope="module")
def installation(installed: Environment, cluster: Cluster, standing: Standing) -> Iterator[Installation]:
    standing.end_site()
    made = Installation(installed, cluster, f"http://127.0.0.1:{free_port()}")
    (made.home / "service").mkdir(parents=True)
    shutil.copy(BEFORE, made.home / "service")
    port = made.url.rpartition(":")[2]
    argv: list[str | Path] = [installed.folder / "bin" / "nodewise", "serve", "--port", port]
    service = subprocess.Popen(argv, cwd=installed.work(), env=installed.variables())
    try:
        until(lambda: _answers(made), 120)
        yield made
    finally:
        service.terminate()
        service.wait(60)


def _answers(made: Installation) -> bool:
    with suppress(InfoError, OSError):
        return bool(made.client().producers())
    return False


def test_nothing_of_the_checkout_is_on_its_path(installed: Environment) -> None:
    found = installed.python("import sys, jobs; print(jobs.__file__, *sys.path, sep='\\n')").splitlines()

    assert Path(found[0]).is_relative_to(installed.packages)
    assert [place for place in filter(None, found) if (Path(place) / "pyproject.toml").exists()] == []
    assert installed.nodewise("--help").returncode == 0


def test_the_service_has_what_version_0_1_knew(installation: Installation) -> None:
    client = installation.client()

    assert {"cost", "cpu", "cpu.cores", "perf"} <= {one.data_name for one in client.producers()}
    assert [one.data_value for one in client.data("images_per_second:mxnet_alexnet:32")] == ["13.5"]
    assert installation.nodewise("audit", "verify")


def test_an_agent_reports_and_a_job_runs(installation: Installation, tmp_path: Path) -> None:
    client, cluster = installation.client(), installation.cluster
    node = cluster.nodes[0]
    reaching = ("-F", cluster.home / "cluster/ssh/config", "--directory", installation.home / "agents" / "{node}")
    installation.nodewise("node", "add", *reaching, node)
    try:
        until(lambda: any(one.data_value for one in client.data("cpu_count", node=node)), 120)
        client.put_producer(Producer("worth", "", 3600.0, kind=Kind.PROGRAM))
        for name in cluster.nodes:
            client.put_value("worth", name, 1.0)
        installation.nodewise("images", "make", tmp_path / "pictures", "-n", "8")
        installation.nodewise("images", "load", tmp_path / "pictures", "hdfs:///installed/images")
        where = ("--input", "hdfs:///installed/images", "--output", "hdfs:///installed/out")
        how = ("--capability", "worth", *small_network(tmp_path))
        report = json.loads(installation.nodewise("job", "submit", *where, *how, "--wait", "--json"))
        assert (report["images"], report["errors"]) == (8, 0)
    finally:
        installation.nodewise("uninstall", "--yes", *reaching, node)
