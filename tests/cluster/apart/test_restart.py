"""Daemons of YARN that are killed while an application runs, and started again by `cluster up`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.stage import PATIENT, START_SECONDS
from hadoop.local import daemons, health, lifecycle, ports, processes, site
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from hadoop.rest import site_files
from hadoop.rest.pages import Pages
from hadoop.rest.resourcemanager import ResourceManager
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.site import add_properties
from tests.command_lines import command_line

Eventually = Callable[..., None]
ROOT = Path(__file__).resolve().parents[3]
SLEEPER = ROOT / "tests" / "cluster" / "sleeper.py"
EXPIRY = "yarn.nm.liveness-monitor.expiry-interval-ms"
SUBMIT = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.yarn import Launch, Yarn

conf_dir, jars, user = sys.argv[1:]
start(HadoopHome(Path(conf_dir), Path(jars), user))
yarn = Yarn()
found, context = yarn.new_application()
environment = {"PYTHONPATH": root, "HADOOP_USER_NAME": user}
yarn.submit(context, "sleeper", Launch(argv, environment, {}, 640, 1), FileSystem(), attempts=2)
yarn.close()
"""


@dataclass(frozen=True)
class Sleepers:
    """A running application with one sleeping container on each node."""

    cluster: Cluster
    application_id: str
    folder: Path

    def events(self, word: str) -> list[list[str]]:
        noted = (self.folder / "events").read_text() if (self.folder / "events").exists() else ""
        return [rest for first, *rest in map(str.split, noted.splitlines()) if first == word]

    def application(self) -> dict[str, Any]:
        return ResourceManager(self.cluster.rm_http, limits=PATIENT).application(self.application_id)

    def other_node(self) -> str:
        """The node on which its application master does not run."""
        master = self.application()["amHostHttpAddress"].partition(":")[0]
        return next(node for node in self.cluster.nodes if node != master)

    def processes(self) -> dict[str, psutil.Process]:
        """The sleeping process of each container."""
        found, number = {}, self.application_id.removeprefix("application")
        for process in processes.of_cluster(self.cluster.home, self.cluster.subnet):
            with suppress(psutil.Error):  # it has ended meanwhile
                container = process.environ().get("CONTAINER_ID", "")
                if process.cmdline()[:1] == ["sleep"] and f"{number}_" in container:
                    found[container] = process
        return found

    def end(self, eventually: Eventually) -> str:
        (self.folder / "stop").touch()
        eventually(lambda: self.application()["state"] in ("FINISHED", "FAILED", "KILLED"))
        return str(self.application()["finalStatus"])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two nodes for the tests here, which break it.

    Its first ResourceManager gives up no node, however long that needs for a start; those after it do so as usual.
    """
    home, render = tmp_path_factory.mktemp("restart"), site.render

    def render_patiently(cluster: Cluster) -> None:
        render(cluster)
        add_properties(cluster.conf_dir / "yarn-site.xml", {EXPIRY: "600000"})

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(site, "render", render_patiently)
            started = lifecycle.up(home, nodes=2, ready_seconds=START_SECONDS)
        site.render(started)
        yield started
    finally:
        lifecycle.down(home)


@pytest.fixture(scope="module", autouse=True)
def patient_manager(pair: Cluster) -> psutil.Process:
    """The ResourceManager that is patient."""
    return daemons.find_running(pair)[Daemon(pair, "resourcemanager")]


@pytest.fixture
def usual_manager(pair: Cluster, patient_manager: psutil.Process) -> None:
    """One that is not: a test before has started it, or it is started now."""
    if patient_manager.is_running():
        _kill(pair, "resourcemanager")
        lifecycle.up(pair.home, ready_seconds=START_SECONDS)


@pytest.fixture(scope="module")
def pair_scripts(pair: Cluster) -> Iterator[Scripts]:
    with scripts_of(pair) as made:
        yield made


@pytest.fixture
def sleepers(pair: Cluster, pair_scripts: Scripts, tmp_path: Path, eventually: Eventually) -> Sleepers:
    """An application that sleeps on both nodes of a cluster that is whole."""
    lifecycle.up(pair.home, ready_seconds=START_SECONDS)
    return _sleep(pair, pair_scripts, tmp_path, eventually)


def _sleep(cluster: Cluster, scripts: Scripts, folder: Path, eventually: Eventually) -> Sleepers:
    argv = [sys.executable, str(SLEEPER), str(cluster.conf_dir), str(cluster.jars), cluster.user, str(folder)]
    application_id = scripts.find(SUBMIT, root=str(ROOT), argv=[*argv, *cluster.nodes])
    started = Sleepers(cluster, application_id, folder)
    eventually(lambda: len(started.processes()) == 2)
    return started


def _kill(cluster: Cluster, kind: str, node: str | None = None) -> float:
    """End a daemon at once and tell when."""
    process = daemons.find_running(cluster)[Daemon(cluster, kind, node)]
    process.kill()
    process.wait()
    return time.monotonic()


def test_a_container_outlives_its_nodemanager(sleepers: Sleepers, eventually: Eventually) -> None:
    before = sleepers.processes()
    node = sleepers.other_node()
    _kill(sleepers.cluster, "nodemanager", node)
    lifecycle.up(sleepers.cluster.home, ready_seconds=START_SECONDS)
    kept = {container for container, where in sleepers.events("started") if where == node}
    eventually(lambda: kept <= _containers(node))
    assert sleepers.processes() == before
    assert sleepers.end(eventually) == "SUCCEEDED"
    eventually(lambda: not sleepers.processes())


def _containers(node: str) -> set[str]:
    """The containers that the NodeManager of a node has running."""
    manager = Pages("NodeManager", f"http://{node}:{ports.NODEMANAGER_HTTP}", PATIENT)
    found = manager.read_json("/ws/v1/node/containers", "the containers")["containers"] or {}
    return {one["id"] for one in found.get("container", []) if one["state"] == "RUNNING"}


def test_an_application_goes_on_when_the_resourcemanager_is_killed_and_started_again(
    sleepers: Sleepers, eventually: Eventually
) -> None:
    before = sleepers.processes()
    _kill(sleepers.cluster, "resourcemanager")
    lifecycle.up(sleepers.cluster.home, ready_seconds=START_SECONDS)
    eventually(lambda: sleepers.application()["state"] == "RUNNING")
    eventually(lambda: sleepers.application()["runningContainers"] == 3)
    assert sleepers.processes() == before
    assert sleepers.events("ended") == []
    assert sleepers.end(eventually) == "SUCCEEDED"
    assert (
        len(ResourceManager(sleepers.cluster.rm_http, limits=PATIENT).master_containers(sleepers.application_id)) == 1
    )


@pytest.mark.usefixtures("usual_manager")
def test_the_loss_of_a_node_is_noticed_within_fifteen_seconds(sleepers: Sleepers, eventually: Eventually) -> None:
    other = sleepers.other_node()
    killed = _kill(sleepers.cluster, "nodemanager", other)
    # YARN looks every third of it.
    assert 4 / 3 * _site_number(sleepers.cluster, "yarn", EXPIRY) < 15_000
    eventually(lambda: [other] in sleepers.events("lost"))
    print(f"node lost after {time.monotonic() - killed:.1f} s")
    (container,) = (container for container, node in sleepers.events("started") if node == other)
    eventually(lambda: [container, "-100"] in sleepers.events("ended"))
    assert sleepers.end(eventually) == "SUCCEEDED"


def test_the_loss_of_a_datanode_is_noticed_within_twenty_seconds(pair: Cluster, eventually: Eventually) -> None:
    lifecycle.up(pair.home, ready_seconds=START_SECONDS)
    killed = _kill(pair, "datanode", pair.nodes[0])
    recheck = _site_number(pair, "hdfs", "dfs.namenode.heartbeat.recheck-interval") / 1000
    # The NameNode looks every five seconds.
    assert 2 * recheck + 10 * _site_number(pair, "hdfs", "dfs.heartbeat.interval") + 5 < 20
    eventually(lambda: pair.nodes[0] not in (health.live_datanodes(pair) or ()))
    print(f"DataNode dead after {time.monotonic() - killed:.1f} s")


def _site_number(cluster: Cluster, of: str, key: str) -> float:
    return float(site_files.value(cluster.conf_dir / f"{of}-site.xml", key))


def _is_known_to_run(cluster: Cluster, container: str) -> bool:
    """Whether the ResourceManager has heard of it from its NodeManager; only its log tells that apart from starting."""
    log = Daemon(cluster, "resourcemanager").log.read_text()
    return f"{container} Container Transitioned from ACQUIRED to RUNNING" in log


def test_the_containers_of_an_application_master_that_died_go_on_in_the_next_attempt(
    sleepers: Sleepers, eventually: Eventually
) -> None:
    before = sleepers.processes()
    running = processes.of_cluster(sleepers.cluster.home, None)
    masters = [p for p in running if str(SLEEPER) in command_line(p)[1:2] and str(sleepers.folder) in command_line(p)]
    assert len(masters) == 1
    # YARN keeps only those of which it has heard that they run; the others it ends and forgets.
    eventually(lambda: all(_is_known_to_run(sleepers.cluster, container) for container in before))
    masters[0].kill()
    eventually(lambda: len(sleepers.events("kept")) == 2)
    assert sleepers.processes() == before
    assert (
        len(ResourceManager(sleepers.cluster.rm_http, limits=PATIENT).master_containers(sleepers.application_id)) == 2
    )
    assert sleepers.end(eventually) == "SUCCEEDED"


def test_what_runs_when_the_cluster_is_stopped_is_ended_and_not_begun_again(
    sleepers: Sleepers, eventually: Eventually
) -> None:
    cluster = sleepers.cluster
    _kill(cluster, "nodemanager", cluster.nodes[0])
    lifecycle.down(cluster.home)
    assert processes.of_cluster(cluster.home, cluster.subnet) == []
    lifecycle.up(cluster.home, ready_seconds=START_SECONDS)
    manager = Pages("ResourceManager", cluster.rm_http, PATIENT)
    assert not manager.read_json("/ws/v1/cluster/apps", "the applications")["apps"]
    assert sleepers.processes() == {}
