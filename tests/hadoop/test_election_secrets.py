"""Where two masters look which of them is active: a real ZooKeeper, which neither shows nor changes it for others."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hadoop.client.jars import JARS
from hadoop.client.jre import find_java
from hadoop.local import daemons, formatting, ports, site
from hadoop.local.daemons import Daemon
from hadoop.local.state import Cluster
from tests.ports import free_port

PLACE = "/hadoop-ha/nodewise"


@pytest.fixture
def zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster with two masters of which ZooKeeper alone runs, and has the place of their elections."""
    monkeypatch.setattr(ports, "ZOOKEEPER", free_port())
    cluster = Cluster(tmp_path, "127.0.9", 1, "me", JARS, find_java(None), ha=True)
    cluster.logs.mkdir(parents=True)
    site.scratch(cluster).mkdir()
    site.render(cluster)
    daemon = Daemon(cluster, "zookeeper")
    words = daemons.command(daemon, str(site.zookeeper(cluster) / "zoo.cfg"))
    with (cluster.logs / "zookeeper.out").open("wb") as out:
        process = subprocess.Popen(words, cwd=cluster.state, env=daemons.environment(cluster), stdout=out, stderr=out)
    try:
        _wait_for((cluster.master, ports.ZOOKEEPER))
        formatting._make_elections(cluster)
        yield cluster
    finally:
        process.kill()
        process.wait()


def _wait_for(address: tuple[str, int]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(address, timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on {address}")


def say(cluster: Cluster, *commands: str) -> str:
    """What ZooKeeper's own client prints to commands."""
    words = [str(cluster.java), "-cp", f"{JARS}/*", "org.apache.zookeeper.ZooKeeperMain"]
    done = subprocess.run(
        [*words, "-server", f"{cluster.master}:{ports.ZOOKEEPER}"],
        input="\n".join([*commands, "quit"]) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_nobody_else_reads_or_changes_who_is_active(zookeeper: Cluster) -> None:
    secrets = site.zookeeper(zookeeper) / "secrets"
    shown = (secrets / "hdfs.auth").read_text().strip().removeprefix("digest:")

    refused = say(zookeeper, f"ls {PLACE}", f"create {PLACE}/ActiveBreadCrumb mine")
    allowed = say(zookeeper, f"addauth digest {shown}", f"ls {PLACE}", f"getAcl {PLACE}")

    assert refused.count(f"Insufficient permission : {PLACE}") == 2, refused
    assert "Insufficient permission" not in allowed
    assert (secrets / "hdfs.acl").read_text().strip().split(":")[2] in allowed
    assert "world" not in allowed


def test_passwords_are_for_the_owner_and_stay(zookeeper: Cluster) -> None:
    secrets = site.zookeeper(zookeeper) / "secrets"
    before = {file.name: file.read_text() for file in secrets.iterdir()}

    site.render(zookeeper)

    assert {file.name: file.read_text() for file in secrets.iterdir()} == before
    assert before.keys() == {f"{user}.{kind}" for user in ("hdfs", "yarn") for kind in ("auth", "acl")}
    assert {file.stat().st_mode & 0o777 for file in secrets.iterdir()} == {0o600}
    assert secrets.stat().st_mode & 0o777 == 0o700


def test_masters_alone_are_told_of_them(zookeeper: Cluster) -> None:
    named = {file.parent for file in zookeeper.state.rglob("*-site.xml") if "zookeeper/secrets" in file.read_text()}

    assert named == {site.conf_dir(zookeeper, master) for master in zookeeper.masters}
