"""What each check makes of what was read, and how reading fails."""

from __future__ import annotations

import threading
import time
import zipfile
from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from hadoop.rest.namenode import NameNodeInfo
from hadoop.rest.resourcemanager import ResourceManagerInfo
from infosvc.wire.errors import Unauthorized
from infosvc.wire.records import Node
from jobs.application.package import NO_PYTHON
from nodewise.doctor import agents, cluster, local_cluster, machine, service
from nodewise.doctor.clock import clock, offset
from nodewise.doctor.cluster import NameNode, ResourceManager
from nodewise.doctor.finding import Finding, Problem, Reading, State, problem
from nodewise.doctor.local_cluster import LocalCluster
from nodewise.doctor.machine import Disk, Jars
from nodewise.doctor.service import Service, TokenFile

BROKEN = Problem("it broke", "mend it")
URL = "http://127.0.0.1:8400"
NN, RM = "http://nn:9870", "http://rm:8088"
READY, LOST, STALE = (Node(state[0], "a:1", state, 1.0, "v1") for state in ("ready", "lost", "stale"))
WORKER = Path("/w/bin/python")
PLUGIN = "nodewise.yarn.FirstOrder"


def namenode(safemode: str = "", live: int = 2, dead: int = 0, missing: int = 0) -> NameNode:
    return NameNode(NameNodeInfo(NN, "3.5.0", safemode, live, dead, missing))


def resourcemanager(order: str = "", **states: int) -> ResourceManager:
    return ResourceManager(ResourceManagerInfo(RM, "3.5.0", states), order)


TABLE: list[tuple[Finding, State, str]] = [
    (machine.python((3, 11), "0.1.0"), State.OK, "Python 3.11, nodewise 0.1.0"),
    (machine.python((3, 10), ""), State.FAIL, "install Python 3.11"),
    (machine.worker_python(WORKER, (3, 11), False), State.OK, "Python 3.11"),
    (machine.worker_python(WORKER, (3, 13), False), State.OK, "mxnet needs Python 3.11"),
    (machine.worker_python(WORKER, (3, 14), False), State.FAIL, "do not run on"),
    (machine.worker_python(WORKER, None, False), State.FAIL, "scripts/setup"),
    (machine.worker_python(WORKER, None, True), State.SKIPPED, "on the nodes only"),
    (machine.worker_python(Path(NO_PYTHON), None, False), State.SKIPPED, "--env NAME@VERSION"),
    (machine.worker_python(WORKER, BROKEN, False), State.FAIL, "mend it"),
    (machine.java(Path("/jvm/bin/java")), State.OK, "/jvm/bin/java"),
    (machine.java(BROKEN), State.FAIL, "mend it"),
    (machine.jars(Jars(Path("/j"), ("3.5.0",), (), "3.5.0")), State.OK, "Hadoop 3.5.0"),
    (machine.jars(Jars(Path("/j"), ("3.5.0",), (), None)), State.OK, "Hadoop 3.5.0"),
    (machine.jars(Jars(Path("/j"), ("3.4.2",), (), "3.5.0")), State.WARN, "3.5.0 is expected"),
    (machine.jars(Jars(Path("/j"), ("3.4.2", "3.5.0"), ())), State.FAIL, "mixes Hadoop 3.4.2 and 3.5.0"),
    (machine.jars(Jars(Path("/j"), ("3.5.0",), ("a.jar", "b.jar"))), State.FAIL, "a.jar and 1 more"),
    (machine.jars(BROKEN), State.FAIL, "mend it"),
    (machine.disk(Disk(Path("/h"), 5_000_000_000, True)), State.OK, "5.0 GB"),
    (machine.disk(Disk(Path("/h"), 1_900_000_000, True)), State.WARN, "needs 2.0 GB"),
    (machine.disk(Disk(Path("/h"), 0, True)), State.FAIL, "free some space"),
    (machine.disk(Disk(Path("/h"), 5_000_000_000, False)), State.FAIL, "cannot be written"),
    (local_cluster.cluster_ports(LocalCluster("127.0.2"), False), State.OK, "free for a cluster on 127.0.2.*"),
    (local_cluster.cluster_ports(LocalCluster("127.0.2", 14), False), State.OK, "free for the 14 daemons"),
    (local_cluster.cluster_ports(LocalCluster("127.0.2", 14, 14), False), State.OK, "held by the 14 daemons"),
    (local_cluster.cluster_ports(LocalCluster("127.0.2", 14, 13), False), State.WARN, "1 of 14 daemons"),
    (local_cluster.cluster_ports(LocalCluster("127.0.2", 14, 0, BROKEN), False), State.FAIL, "mend it"),
    (local_cluster.cluster_ports(LocalCluster("127.0.2", 14, 0, BROKEN), True), State.SKIPPED, "not one of this home"),
    (cluster.hdfs(namenode(), None), State.OK, "live DataNodes: 2"),
    (cluster.hdfs(namenode(dead=1), None), State.WARN, "dead ones: 1"),
    (cluster.hdfs(namenode(live=0, dead=2), None), State.FAIL, "no live DataNode"),
    (cluster.hdfs(namenode(missing=3), None), State.FAIL, "missing blocks: 3"),
    (cluster.hdfs(namenode("Safe mode is ON."), None), State.FAIL, "Safe mode is ON."),
    (cluster.hdfs(BROKEN, None), State.FAIL, "mend it"),
    (cluster.hdfs(BROKEN, cluster.explain_absence("hdfs", False, False, False)), State.SKIPPED, "nodewise cluster up"),
    (cluster.hdfs(BROKEN, cluster.explain_absence("hdfs", False, True, True)), State.WARN, "the cluster is stopped"),
    (cluster.hdfs(BROKEN, cluster.explain_absence("hdfs", False, True, False)), State.FAIL, "mend it"),
    (cluster.hdfs(BROKEN, cluster.explain_absence("hdfs", True, False, False)), State.FAIL, "mend it"),
    (cluster.yarn(resourcemanager(RUNNING=4), None), State.OK, "RUNNING nodes: 4; stock order"),
    (cluster.yarn(resourcemanager(PLUGIN, RUNNING=4), None), State.OK, "the plug-in orders them"),
    (cluster.yarn(resourcemanager(RUNNING=3, LOST=1), None), State.WARN, "LOST: 1"),
    (cluster.yarn(resourcemanager(LOST=1), None), State.FAIL, "no RUNNING node, LOST: 1"),
    (cluster.yarn(resourcemanager(), None), State.FAIL, "no RUNNING node"),
    (cluster.hadoop_version("3.5.0", {"NameNode": "3.5.0"}), State.OK, "3.5.0 here and there"),
    (cluster.hadoop_version("3.5.0", {"NameNode": "3.3.6"}), State.WARN, "NameNode 3.3.6"),
    (cluster.hadoop_version("3.5.0", {}), State.SKIPPED, "no server"),
    (cluster.hadoop_version(None, {"NameNode": "3.5.0"}), State.SKIPPED, "no jars"),
    (service.service(Service(URL, 200), None), State.OK, "is ready"),
    (service.service(Service(URL, 401, BROKEN), None), State.OK, "to known tokens only"),
    (service.service(Service(URL, 503, BROKEN), None), State.FAIL, "mend it"),
    (service.service(Service(URL, 0, BROKEN, heard=False), None), State.FAIL, "mend it"),
    (service.service(Service(URL, 0, BROKEN, heard=True), service.explain_absence(False, True)), State.FAIL, "mend it"),
    (
        service.service(Service(URL, 0, BROKEN, heard=False), service.explain_absence(False, True)),
        State.WARN,
        "stopped",
    ),
    (
        service.service(Service(URL, 0, BROKEN, heard=False), service.explain_absence(False, False)),
        State.SKIPPED,
        "serve",
    ),
    (service.service(BROKEN, None), State.FAIL, "mend it"),
    (service.token(Service(URL, 200, token=True, role="reader")), State.OK, "accepted, role reader"),
    (service.token(Service(URL, 200, token=True)), State.OK, "accepted"),
    (service.token(Service(URL, 200)), State.WARN, "one can only read"),
    (service.token(Service(URL, 401, BROKEN)), State.FAIL, "none is here"),
    (service.token(Service(URL, 401, BROKEN, token=True)), State.FAIL, "it broke"),
    (service.token(Service(URL, 503, BROKEN, token=True)), State.SKIPPED, "not ready"),
    (service.token(Service(URL, 0, BROKEN, heard=False)), State.SKIPPED, "no service answered"),
    (service.token_file(TokenFile(Path("/t"), 0o600, True)), State.OK, "0600"),
    (service.token_file(TokenFile(Path("/t"), 0o400, True)), State.OK, "0400"),
    (service.token_file(TokenFile(Path("/t"), 0o640, False)), State.OK, "0640"),
    (service.token_file(TokenFile(Path("/t"), 0o640, True)), State.FAIL, "chmod 600 /t"),
    (service.token_file(TokenFile(Path("/t"), 0o644, False)), State.FAIL, "chmod 640 /t"),
    (service.token_file(TokenFile(Path("/t"), 0o660, False)), State.FAIL, "chmod 640 /t"),
    (service.token_file(TokenFile(Path("/t"), None, True)), State.SKIPPED, "nodewise serve"),
    (service.token_file(TokenFile(Path("/t"), None, False)), State.FAIL, "--token-file"),
    (service.service_port(URL, True, Service(URL, 0, BROKEN, heard=False)), State.OK, "free"),
    (service.service_port(URL, False, Service(URL, 200)), State.OK, "is the information service's"),
    (service.service_port(URL, False, Service(URL, 0, BROKEN, heard=False)), State.FAIL, "ss -ltnp"),
    (service.service_port(URL, None, Service(URL, 200)), State.SKIPPED, "not this machine"),
    (service.service_port(URL, False, BROKEN), State.SKIPPED, "could not be asked"),
    (agents.agents([READY]), State.OK, "1 ready"),
    (agents.agents([READY, STALE]), State.WARN, "1 ready, 1 stale: s"),
    (agents.agents([READY, LOST, STALE]), State.FAIL, "1 ready, 1 stale, 1 lost: l, s"),
    (agents.agents([]), State.SKIPPED, "nodewise node add"),
    (agents.agents(None), State.SKIPPED, "did not name its nodes"),
    (agents.agent_versions([READY], "v1"), State.OK, "v1"),
    (agents.agent_versions([READY], "v2"), State.WARN, "r run v1, and v2 would be pushed"),
    (agents.agent_versions([Node("n", "a:1")], "v2"), State.OK, "v2"),
    (agents.agent_versions([READY], BROKEN), State.FAIL, "mend it"),
    (agents.agent_versions([], ""), State.SKIPPED, "no node"),
    (agents.ssh(None), State.SKIPPED, "nodewise doctor --ssh"),
    (agents.ssh({}), State.SKIPPED, "no node"),
    (agents.ssh({"a": None, "b": None}), State.OK, "logged in to 2 of 2"),
    (agents.ssh({"a": None, "b": BROKEN}), State.FAIL, "1 of 2 logins failed (b): it broke"),
    (clock({}), State.SKIPPED, "tells its time"),
    (clock({"NameNode": 0.9, "ResourceManager": -4.9}), State.OK, "within 5 s of NameNode, ResourceManager"),
    (clock({"NameNode": 0.9, "ResourceManager": -5.1}), State.WARN, "ResourceManager is 5 s behind"),
    (clock({"NameNode": 61.0, "ResourceManager": -5.1}), State.FAIL, "NameNode is 61 s ahead of"),
]


@pytest.mark.parametrize(("finding", "state", "said"), TABLE, ids=lambda value: getattr(value, "name", None))
def test_a_check_judges_what_was_read(finding: Finding, state: State, said: str) -> None:
    assert finding.state is state
    assert said in f"{finding.what} {finding.remedy}"


@pytest.mark.parametrize("finding", [row[0] for row in TABLE], ids=lambda finding: finding.name)
def test_what_is_wrong_comes_with_what_to_do_and_what_is_well_does_not(finding: Finding) -> None:
    if finding.state in (State.WARN, State.FAIL):
        assert finding.remedy
    if finding.state is State.OK:
        assert not finding.remedy


def test_our_errors_are_taken_apart_into_what_and_remedy() -> None:
    said = problem(HadoopError("Java is missing at 127.0.0.1:80 (a: b)", remedy="install it"))
    assert (said.what, said.remedy) == ("Java is missing at 127.0.0.1:80 (a: b)", "install it")
    assert problem(Unauthorized("it is unknown", remedy="send `A: B` with it")).remedy == "send `A: B` with it"
    assert problem(Unauthorized("no: as the service said it")).what == "no: as the service said it"
    assert problem(Unauthorized("no")).remedy
    assert "sudo -u nodewise" in problem(PermissionError(13, "denied", "/etc/secret")).remedy
    assert "ZeroDivisionError" in problem(ZeroDivisionError("x")).what


def test_what_takes_too_long_is_not_waited_for() -> None:
    hold = threading.Event()
    begun = time.monotonic()
    found = Reading(hold.wait).result(begun + 0.05)
    hold.set()
    assert time.monotonic() - begun < 60
    assert isinstance(found, Problem)
    assert "too long" in found.what


def test_the_order_of_nodes_is_read_from_the_site_files(tmp_path: Path) -> None:
    assert cluster.read_order(tmp_path) == ""
    key = "yarn.scheduler.capacity.multi-node-sorting.policy"
    lines = [(key, "first"), (f"{key}.first.class", PLUGIN)]
    text = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in lines)
    (tmp_path / "capacity-scheduler.xml").write_text(f"<configuration>{text}</configuration>")
    assert cluster.read_order(tmp_path) == PLUGIN


def test_jars_that_were_cut_off_and_of_two_versions_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "hadoop-common-3.5.0.jar",
        "hadoop-hdfs-3.5.0-tests.jar",
        "hadoop-yarn-server-nodemanager-3.4.2.jar",
        "hadoop-yarn-server-resourcemanager-3.5.0.jar",
        "hadoop-yarn-server-timelineservice-3.5.0.jar",
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as jar:
            jar.writestr("x", "y")
    (tmp_path / "guava-1.jar").write_bytes(b"PK\x03\x04 and no more")
    found = machine.read_jars(tmp_path)
    assert (found.versions, found.broken) == (("3.4.2", "3.5.0"), ("guava-1.jar",))
    assert found.expected is None, "a folder that somebody named has the version that it has"
    monkeypatch.setattr(machine, "JARS", tmp_path)
    assert machine.read_jars(tmp_path).expected == "3.5.0"
    linked = tmp_path / "linked"
    linked.mkdir()
    for file in tmp_path.glob("*.jar"):
        (linked / file.name).symlink_to(file)
    monkeypatch.setattr(machine, "JARS", linked)
    assert machine.read_jars(linked).expected is None, "a Hadoop of this machine has the version that it has"
    (tmp_path / "hadoop-common-3.5.0.jar").unlink()
    with pytest.raises(HadoopError, match="hadoop-common"):
        machine.read_jars(tmp_path)


def test_the_disk_is_that_on_which_the_home_would_be_made(tmp_path: Path) -> None:
    assert machine.read_disk(tmp_path / "not" / "there").directory == tmp_path


def test_a_worker_is_asked_for_its_version(tmp_path: Path) -> None:
    program = tmp_path / "python"
    assert machine.read_worker(program) is None
    program.write_text("#!/bin/sh\necho Python 3.12.1\n")
    program.chmod(0o755)
    assert machine.read_worker(program) == (3, 12)
    program.chmod(0o644)
    with pytest.raises(HadoopError, match="does not run"):
        machine.read_worker(program)
    assert machine.parse_python("no Python") == (0, 0)


def test_a_date_of_the_web_gives_the_offset_of_its_clock() -> None:
    assert offset("Thu, 01 Jan 1970 00:01:00 GMT", now=50.5) == 10.0
    assert offset(None) is None
    assert offset("yesterday") is None


def test_a_token_names_its_role_only_when_the_service_made_it() -> None:
    assert service.role_of("nw_scheduler_x_y") == "scheduler"
    assert [service.role_of(text) for text in ("", "secret", "nw_king_x", "xx_admin_y")] == [""] * 4


def test_the_address_of_a_url_needs_no_port() -> None:
    assert service.address("https://master") == ("master", 443)
    assert service.address("http://[::1]:99999") == ("", 0)
