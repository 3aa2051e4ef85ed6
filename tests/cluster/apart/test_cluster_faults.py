"""Clusters that crash, that cannot start, that are stopped half-way, and two at once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hdfs import InsecureClient

from bench.stage import START_SECONDS
from hadoop.client import class_archives
from hadoop.errors import HadoopError
from hadoop.local import daemons, health, lifecycle, ports, processes, state
from hadoop.local.lifecycle import Cluster

COMMAND = """
import sys, pathlib
from hadoop.local.command import cluster
cluster(sys.argv[2:], obj=pathlib.Path(sys.argv[1]))
"""

SSHDS = """
import sys, time
from pathlib import Path
from hadoop.local import daemons, health, lifecycle, sshd

cluster = lifecycle.load(Path(sys.argv[1]))
cluster.logs.mkdir()
sshd.prepare(cluster)
daemons.start(daemons.Daemon(cluster, "sshd", cluster.nodes[0]))
deadline = time.monotonic() + 180
while not health.answers_ssh(cluster.nodes[0]) and time.monotonic() < deadline:
    time.sleep(0.05)
sshd.check_logins(cluster)
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters side by side, each in a home of its own; the node of the first has one CPU.

    While the second starts, services of others listen on the ten subnets that come after the first one's.
    """
    homes = [tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")]
    try:
        pinned = (min(os.sched_getaffinity(0)),)
        one = lifecycle.up(homes[0], nodes=1, cpus=pinned, ready_seconds=START_SECONDS)
        with ExitStack() as strangers:
            for subnet in _next_subnets(one):
                stranger = strangers.enter_context(socket.socket())
                with suppress(OSError):  # somebody listens there already
                    stranger.bind((f"{subnet}.1", ports.INFOSVC))
                    stranger.listen(1)
            two = lifecycle.up(homes[1], nodes=1, ready_seconds=START_SECONDS)
        yield one, two
    finally:
        for home in homes:
            lifecycle.down(home)


def _next_subnets(cluster: Cluster) -> tuple[str, ...]:
    first = ports.SUBNETS.index(cluster.subnet) + 1
    return ports.SUBNETS[first : first + 10]


def _left(cluster: Cluster) -> list[psutil.Process]:
    return processes.of_cluster(cluster.home, cluster.subnet)


def _names(cluster: Cluster) -> set[str]:
    """The names of what is left; one that ends while it is asked has none."""
    names = set()
    for process in _left(cluster):
        with suppress(psutil.NoSuchProcess):
            names.add(process.name().partition("-")[0])
    return names


def _states(cluster: Cluster) -> dict[tuple[str, str | None], bool]:
    return {(daemon.kind, daemon.node): daemon.ready for daemon in lifecycle.status(cluster)}


@pytest.mark.usefixtures("patient")
def test_two_clusters_do_not_disturb_each_other(pair: tuple[Cluster, Cluster], eventually: Callable[..., None]) -> None:
    one, two = pair
    assert two.subnet not in (one.subnet, *_next_subnets(one))
    assert one.id != two.id
    InsecureClient(one.namenode_http, user=one.user).write("/kept", data=b"here")
    assert InsecureClient(two.namenode_http, user=two.user).status("/kept", strict=False) is None
    eventually(lambda: len(_left(two)) == 2 + 4)  # an sshd that was asked for its greeting has one more to go
    assert lifecycle.down(two.home) == 2 + 4
    assert _left(two) == []
    assert all(_states(one).values())


@pytest.mark.usefixtures("patient")
def test_a_stopped_cluster_does_not_claim_the_sshds_of_one_that_took_over_its_subnet(
    pair: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    one, _ = pair
    stopped = replace(one, home=tmp_path)
    stopped.state.mkdir()
    state.save(stopped)
    argv = ["ssh", "-F", str(one.ssh_config), one.nodes[0], "echo in; cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout
        assert session.stdout.readline() == "in\n"
        assert _left(stopped) == []
        assert lifecycle.down(tmp_path) == 0
        said, _ = session.communicate("still open", timeout=180)
        assert said == "still open"
    assert all(_states(one).values())


def test_up_starts_again_what_has_died(pair: tuple[Cluster, Cluster], eventually: Callable[..., None]) -> None:
    one, _ = pair
    before = daemons.find_running(one)
    victim = next(daemon for daemon in before if daemon.kind == "nodemanager")
    before[victim].kill()
    before[victim].wait()
    assert _states(one)["nodemanager", victim.node] is False
    lifecycle.up(one.home, ready_seconds=START_SECONDS)
    after = daemons.find_running(one)
    assert after.pop(victim).pid != before.pop(victim).pid
    assert {daemon: process.pid for daemon, process in after.items()} == {d: p.pid for d, p in before.items()}


def test_a_machine_crash_keeps_the_data(pair: tuple[Cluster, Cluster]) -> None:
    first, _ = pair
    InsecureClient(first.namenode_http, user=first.user).write("/before", data=b"here")
    for process in daemons.find_running(first).values():
        assert process.cpu_affinity() == [first.cpus[0]] or process.name() == "java"
        process.kill()
        process.wait()
    again = lifecycle.up(first.home, ready_seconds=START_SECONDS)
    assert again == first
    with InsecureClient(again.namenode_http, user=again.user).read("/before") as reader:
        assert reader.read() == b"here"
    for daemon, process in daemons.find_running(again).items():
        if daemon.node:
            assert process.cpu_affinity() == [first.cpus[0]]
        if process.name() == "java":
            maps = Path("/proc", str(process.pid), "maps").read_text()
            assert f"/{class_archives.FOLDER}/{daemon.kind}-" in maps


def test_after_a_crash_down_leaves_nothing_and_up_finds_the_data(
    pair: tuple[Cluster, Cluster], eventually: Callable[..., None]
) -> None:
    one, _ = pair
    argv = ["ssh", "-F", str(one.ssh_config), one.nodes[0]]
    subprocess.run([*argv, "setsid sleep 300 > /dev/null 2>&1 &"], check=True)
    with subprocess.Popen([*argv, "echo in; sleep 300"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        assert session.stdout
        assert session.stdout.readline() == b"in\n"
        for process in daemons.find_running(one).values():
            process.kill()
            process.wait()
        eventually(lambda: {"sshd", "sleep"} <= _names(one))  # a shell that has forked is not yet what it runs
        (one.state / "cluster.json").write_text('{"subnet":', encoding="utf-8")
        lifecycle.down(one.home)
        session.wait(timeout=180)
    assert _left(one) == []
    assert lifecycle.down(one.home) == 0


def test_a_damaged_record_is_reported_and_the_data_are_kept(pair: tuple[Cluster, Cluster]) -> None:
    one, _ = pair
    lifecycle.down(one.home)
    record = one.state / "cluster.json"
    record.write_text('{"subnet":', encoding="utf-8")
    with pytest.raises(HadoopError, match=r"cluster\.json is damaged.*nodewise cluster down"):
        lifecycle.up(one.home)


@pytest.fixture
def free_subnet() -> str:
    """A subnet from the end of the list, where no cluster that starts meanwhile looks."""
    highest = reversed(ports.SUBNETS[:-1])
    return next(s for s in highest if ports.find_taken([(f"{s}.1", ports.NAMENODE)]) is None)


@pytest.fixture
def subnet(free_subnet: str) -> Iterator[str]:
    """A subnet on which one program sits on the NameNode's port."""
    with socket.create_server((f"{free_subnet}.1", ports.NAMENODE)):
        yield free_subnet


def test_a_port_in_use_is_named_with_its_holder(own_home: Path, subnet: str) -> None:
    with pytest.raises(HadoopError, match=rf"port 8020 of {subnet}\.1 is in use by pid {os.getpid()} \(.*--subnet"):
        lifecycle.up(own_home, subnet=subnet)
    assert processes.of_cluster(own_home, subnet) == []


def test_two_starts_never_take_the_same_subnet(subnet: str) -> None:
    with ports.claim(subnet, []), pytest.raises(HadoopError, match="port 8019 of"), ports.claim(subnet, []):
        pass


def test_a_daemon_that_ends_while_starting_is_named_and_the_rest_is_stopped(own_home: Path) -> None:
    in_the_way = own_home / "cluster" / "nodes" / "1" / "data"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("not a directory", encoding="utf-8")
    with pytest.raises(HadoopError, match=r"DataNode 127\.0\.\d+\.11 ended while starting: .*datanode-127"):
        lifecycle.up(own_home, nodes=1, ready_seconds=START_SECONDS)
    assert processes.of_cluster(own_home, lifecycle.load(own_home).subnet) == []


def names_of(found: list[psutil.Process]) -> set[str]:
    """What the processes are called that have not ended since they were found."""
    names = set()
    for process in found:
        with suppress(psutil.NoSuchProcess):
            names.add(process.name())
    return names


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_interrupted_leaves_nothing_running(
    own_home: Path, number: signal.Signals, eventually: Callable[..., None]
) -> None:
    argv = [sys.executable, "-c", COMMAND, str(own_home), "up", "--nodes", "1"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as starting:
        eventually(lambda: "java" in names_of(processes.of_cluster(own_home, None)))
        starting.send_signal(number)
        _, said = starting.communicate(timeout=240)
    assert starting.returncode != 0
    assert "Stopping what was started" in said
    if number is signal.SIGINT:
        assert "interrupted: everything that this start had begun is ended" in said
    assert processes.of_cluster(own_home, lifecycle.load(own_home).subnet) == []


def test_only_one_command_at_a_time_changes_a_cluster(own_home: Path, eventually: Callable[..., None]) -> None:
    argv = [sys.executable, "-c", COMMAND, str(own_home), "up", "--nodes", "1"]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as starting:
        eventually(lambda: processes.of_cluster(own_home, None))
        starting.send_signal(signal.SIGSTOP)  # lest it is done before the other begins
        try:
            with pytest.raises(HadoopError, match="another nodewise command is starting or stopping"):
                lifecycle.up(own_home)
        finally:
            starting.send_signal(signal.SIGCONT)
            starting.terminate()


def test_root_with_a_locked_password_is_let_in_by_key_alone(own_home: Path, subnet: str) -> None:
    # A mount of its own, so that only what this test starts sees the changed file.
    shadow = own_home / "shadow"
    script = 'sed "s/^root:[^:]*/root:!/" /etc/shadow > "$1" && mount --bind "$1" /etc/shadow && shift && exec "$@"'
    locked = ["unshare", "--mount", "sh", "-c", script, "sh", str(shadow)]
    if subprocess.run([*locked, "true"], capture_output=True).returncode != 0:
        pytest.skip("only root can have mounts of its own")
    with state.lock(own_home):
        cluster = Cluster(own_home, subnet, 1, "root", Path("/jars"), Path("/jvm/bin/java"))
        state.save(cluster)
    subprocess.run([*locked, sys.executable, "-c", SSHDS, str(own_home)], check=True, timeout=240)
    argv = ["ssh", "-F", str(cluster.ssh_config), "-o", "BatchMode=no", "-o", "PubkeyAuthentication=no"]
    refused = subprocess.run(
        [*argv, cluster.nodes[0], "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert "Permission denied (publickey)." in refused.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with next to no room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        yield disk
    finally:
        lifecycle.down(disk)
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_without_room_is_refused_before_anything_starts(small_disk: Path) -> None:
    with pytest.raises(HadoopError, match=r"disk under .* is full: 0 MB are free.*needs 2,000 MB.*--home"):
        lifecycle.up(small_disk)


def test_a_disk_that_fills_up_during_the_start_is_named(small_disk: Path) -> None:
    with pytest.raises(HadoopError, match=r"disk under .* is full.*--home"):
        lifecycle.up(small_disk, nodes=1, min_free_bytes=0, ready_seconds=START_SECONDS)
    assert processes.of_cluster(small_disk, None) == []


def test_not_ready_in_time_names_what_is_missing_and_stops_it(own_home: Path, free_subnet: str) -> None:
    with pytest.raises(HadoopError, match=r"not ready after 0 s, waiting for (NameNode|ResourceManager|1 of 1 )"):
        lifecycle.up(own_home, nodes=1, subnet=free_subnet, ready_seconds=0)
    assert processes.of_cluster(own_home, lifecycle.load(own_home).subnet) == []
    assert not health.answers_ssh(lifecycle.load(own_home).nodes[0])
