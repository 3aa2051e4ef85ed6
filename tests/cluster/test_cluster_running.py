"""What the running cluster offers, and that it keeps to itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import paramiko
import psutil
import pytest
from click.testing import CliRunner
from hdfs import InsecureClient

from bench.stage import START_SECONDS
from hadoop.errors import HadoopError
from hadoop.local import command, daemons, lifecycle, processes
from hadoop.local.lifecycle import Cluster
from hadoop.local.state import MARKER
from tests.cluster.site import until

# A JVM cannot be started twice in a process nor survive a fork, so it gets a process of its own.
SUBMIT = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.yarn import Launch, Yarn

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
yarn = Yarn()
application_id, context = yarn.new_application()
yarn.submit(context, "marker", Launch(sys.argv[4:], {}, {}, 64, 1), FileSystem())
yarn.close()
"""


@pytest.mark.usefixtures("patient")
def test_a_second_up_changes_nothing(cluster: Cluster) -> None:
    before = {daemon: process.pid for daemon, process in daemons.find_running(cluster).items()}
    news: list[str] = []
    assert lifecycle.up(cluster.home, say=news.append) == cluster
    assert {daemon: process.pid for daemon, process in daemons.find_running(cluster).items()} == before
    assert news == ["The cluster is running already"]


def test_status_names_prints_node_names_and_nothing_else(cluster: Cluster) -> None:
    result = CliRunner().invoke(command.cluster, ["status", "--names"], obj=cluster.home)
    assert result.output.split("\n") == [*cluster.nodes, ""]


@pytest.fixture
def mounters(cluster: Cluster) -> None:
    """All mounters serve: `up` starts them, and waits for none."""
    until(lambda: all(one.ready for one in lifecycle.status_of_mounters(cluster)))


@pytest.mark.usefixtures("patient", "mounters")
def test_status_as_json_shows_every_daemon_at_work(cluster: Cluster) -> None:
    found = json.loads(CliRunner().invoke(command.cluster, ["status", "--json"], obj=cluster.home).output)
    assert found["state"] == "running"
    assert len(found["daemons"]) == 2 + 3 * 4
    assert all(daemon["pid"] and daemon["ready"] for daemon in found["daemons"])
    assert [node["node_name"] for node in found["nodes"]] == list(cluster.nodes)
    assert [mounter["node"] for mounter in found["mounters"]] == list(cluster.nodes)
    assert all(mounter["pid"] and mounter["ready"] for mounter in found["mounters"])


@pytest.mark.usefixtures("patient", "mounters")
def test_status_names_the_mounter_that_was_killed_and_the_cluster_runs_on(cluster: Cluster) -> None:
    psutil.Process(lifecycle.status_of_mounters(cluster)[0].pid).kill()
    try:
        until(lambda: [one.ready for one in lifecycle.status_of_mounters(cluster)] == [False, True, True, True])
        shown = CliRunner().invoke(command.cluster, ["status"], obj=cluster.home).output
    finally:
        lifecycle.up(cluster.home, ready_seconds=START_SECONDS)

    assert re.search(rf"mounter +│ {re.escape(cluster.nodes[0])} +│ [0-9 ]+│ (stopped|not ready)", shown)
    assert "running" in shown and "degraded" not in shown
    until(lambda: all(one.ready for one in lifecycle.status_of_mounters(cluster)))


@pytest.mark.usefixtures("patient")
def test_status_for_people_names_the_ways_in(cluster: Cluster) -> None:
    output = CliRunner().invoke(command.cluster, ["status"], obj=cluster.home).output
    assert "running" in output
    assert cluster.namenode_url in output
    assert str(cluster.ssh_config) in output


def _listening(process: psutil.Process) -> list[str]:
    """Where a process listens; one that has ended since it was found listens nowhere."""
    try:
        sockets = process.net_connections("tcp")
    except psutil.NoSuchProcess:
        return []
    return [socket.laddr.ip.removeprefix("::ffff:") for socket in sockets if socket.status == psutil.CONN_LISTEN]


def test_nothing_listens_beyond_loopback(cluster: Cluster) -> None:
    listening = [
        address for process in processes.of_cluster(cluster.home, cluster.subnet) for address in _listening(process)
    ]
    assert len(listening) > 20
    assert {address for address in listening if not address.startswith("127.")} == set()


def test_each_node_lets_in_only_who_knows_its_host_key_and_has_the_key(cluster: Cluster) -> None:
    config = paramiko.SSHConfig.from_path(str(cluster.ssh_config))
    for node in cluster.nodes:
        entry = config.lookup(node)
        with paramiko.SSHClient() as client:
            client.set_missing_host_key_policy(paramiko.RejectPolicy())
            connect = partial(
                client.connect,
                entry["hostname"],
                port=int(entry["port"]),
                username=entry["user"],
                look_for_keys=False,
                allow_agent=False,
                banner_timeout=120,
                auth_timeout=120,
            )
            with pytest.raises(paramiko.SSHException, match="not found in known_hosts"):
                connect(key_filename=entry["identityfile"])
            client.load_host_keys(entry["userknownhostsfile"])
            with pytest.raises(paramiko.SSHException):
                connect(password="guess")
            connect(key_filename=entry["identityfile"])
            _, stdout, _ = client.exec_command("printenv NODEWISE_CLUSTER")
            assert stdout.read().decode().strip() == cluster.id
            with client.open_sftp() as sftp:
                assert sftp.stat("/").st_mode


def test_every_node_has_host_keys_of_its_own(cluster: Cluster) -> None:
    known = (cluster.ssh_config.parent / "known_hosts").read_text(encoding="ascii").splitlines()
    assert len({line.split()[2] for line in known}) == len(cluster.nodes)


def test_hdfs_keeps_each_block_on_two_nodes(cluster: Cluster) -> None:
    client = InsecureClient(cluster.namenode_http, user=cluster.user)
    client.write("/two/file", data=b"nodewise" * 500, overwrite=True)
    with client.read("/two/file") as reader:
        assert reader.read() == b"nodewise" * 500
    assert client.status("/two/file")["replication"] == 2


def test_files_that_open_doors_are_the_owners_alone(cluster: Cluster) -> None:
    secrets = [cluster.ssh_config.parent / "id_ed25519", *cluster.state.glob("nodes/*/ssh/host_key")]
    assert len(secrets) == 5
    assert {oct(path.stat().st_mode & 0o777) for path in secrets} == {"0o600"}
    assert cluster.state.stat().st_mode & 0o077 == 0


def test_an_unknown_home_has_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(HadoopError, match=r"no cluster under .*nodewise cluster up"):
        lifecycle.load(tmp_path)


def test_a_cluster_that_runs_keeps_its_place(cluster: Cluster) -> None:
    with pytest.raises(HadoopError, match=r"--subnet cannot change while the cluster runs"):
        lifecycle.up(cluster.home, subnet="127.0.253")
    with pytest.raises(HadoopError, match=r"--cpus cannot change while the cluster runs"):
        lifecycle.up(cluster.home, cpus=(0, 0, 0, 0))
    with pytest.raises(HadoopError, match="cannot shrink to 2"):
        lifecycle.up(cluster.home, nodes=2)


def _with_argument(cluster: Cluster, argument: str) -> list[psutil.Process]:
    """The processes of the cluster that have this argument, as a shell or as itself."""
    return [p for p in processes.of_cluster(cluster.home, cluster.subnet) if argument in " ".join(_words(p))]


def _words(process: psutil.Process) -> list[str]:
    """The command of a process, nothing of one that has ended since it was found."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _marks(cluster: Cluster, argument: str) -> set[str | None]:
    """The clusters to which the processes with this argument say that they belong."""
    found = set()
    for process in _with_argument(cluster, argument):
        with suppress(psutil.NoSuchProcess):
            found.add(process.environ().get(MARKER))
    return found


def test_a_process_started_over_ssh_belongs_to_the_cluster(cluster: Cluster, eventually: Callable[..., None]) -> None:
    argv = ["ssh", "-F", str(cluster.ssh_config), cluster.nodes[0], "setsid sleep 600.25 > /dev/null 2>&1 &"]
    subprocess.run(argv, check=True)
    # The shell that started it may end just now.
    eventually(lambda: _marks(cluster, "sleep 600.25") == {cluster.id})
    processes.end(lambda: _with_argument(cluster, "sleep 600.25"))


def test_what_runs_in_a_container_belongs_to_the_cluster(cluster: Cluster, eventually: Callable[..., None]) -> None:
    argv = [sys.executable, "-c", SUBMIT, str(cluster.conf_dir), str(cluster.jars), cluster.user, "sleep", "600.5"]
    subprocess.run(argv, check=True)
    eventually(lambda: any(_words(p)[:1] == ["sleep"] for p in _with_argument(cluster, "sleep 600.5")))
    assert _marks(cluster, "sleep 600.5") == {cluster.id}
    processes.end(lambda: _with_argument(cluster, "sleep 600.5"))
