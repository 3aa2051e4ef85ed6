"""A cluster that changes while it works: one worker more, one less, one dead, and all programs new."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lab
from lab.places import PLAYBOOKS
from tests.lab import playbooks
from tests.lab.playbooks import agents, changes, datanodes, everywhere, fsck, nodemanagers, nowhere, play, sweep, until

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(3600)]

NAMES = ("master", "worker1", "worker2", "worker3", "worker4")
PICTURES = 2400  # so much work for all four workers that whoever asks a few times finds them in the middle of it
STOP = "/var/lib/nodewise/stop-writing"
# Writes numbers until it is told to end, and says which of them were acknowledged.
WRITER = f"""
import json, pathlib, time
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer

token = pathlib.Path("/var/lib/nodewise/service/token").read_text().strip()
client = InfoClient("https://master:8400", token, ca_file="/etc/nodewise/tls/ca.pem")
client.put_producer(Producer("written", cmd="", time_max=3600, kind=Kind.PROGRAM, keep=7200))
acknowledged, refused, number = [], 0, 0
while not pathlib.Path("{STOP}").exists():
    number += 1
    try:
        client.put_value("written", "writer", number)
        acknowledged.append(number)
    except InfoError:
        refused += 1
    time.sleep(0.05)
stored = [int(value) for _, value in client.history("written", "writer").points]
client.delete_producer("written")
print(json.dumps({{"acknowledged": acknowledged, "refused": refused, "stored": stored}}))
"""


def as_nodewise(*argv: str) -> list[str]:
    """A program of the master with the service's Python and code."""
    return ["sudo", "-u", "nodewise", "env", "PYTHONPATH=/opt/nodewise/code", *argv]


def began(name: str, unit: str) -> str:
    """When a unit was started last."""
    return lab.run(name, ["systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "--value", unit]).strip()


@pytest.fixture
def grown() -> Iterator[str]:
    """A fifth worker beside the four; it is gone at the end, unless a test has removed it."""
    lab.up(provision=False, spare=True)
    made = changes(play("site.yml", "--limit", "worker5", spare=True))
    assert set(made) == {"worker5"}
    yield "worker5"
    if "worker5" in agents():
        changes(play("remove.yml", "-e", "node=worker5", spare=True))


def test_a_worker_is_added_gets_blocks_and_is_removed_with_all_blocks_still_there(grown: str) -> None:
    before = {name: began(name, "hadoop-datanode") for name in NAMES[1:]}
    until(lambda: everywhere(grown), 120)
    sweep("/data/grown")
    playbooks.pictures(40, "/data/grown")
    address = lab.machine(grown).address
    assert address in fsck()

    changes(play("remove.yml", "-e", f"node={grown}", spare=True))

    assert nowhere(grown)
    until(lambda: address not in fsck(), 60)  # HDFS calls a node dead a moment before it forgets what that held
    found = fsck()
    assert "is HEALTHY" in found
    assert found.count("/data/grown/") == 40
    for unit in ("nodewise-agent", "hadoop-datanode", "hadoop-nodemanager"):
        assert lab.run(grown, ["sh", "-c", f"systemctl is-active {unit} || true"]).strip() == "inactive"
        assert lab.run(grown, ["sh", "-c", f"systemctl is-enabled {unit} || true"]).strip() == "disabled"
    assert {name: began(name, "hadoop-datanode") for name in NAMES[1:]} == before
    sweep("/data/grown")

    changes(play("site.yml", "--limit", grown, spare=True))

    until(lambda: everywhere(grown), 120)


@pytest.mark.long
def test_a_worker_that_is_dead_is_removed_without_it(grown: str) -> None:
    until(lambda: everywhere(grown), 120)
    lab.kill(grown)
    run = play("remove.yml", "-e", f"node={grown}", "-e", "gone=true", spare=True)

    assert changes(run)["master"] > 0
    assert nowhere(grown)
    assert "is HEALTHY" in fsck()


@pytest.mark.parametrize("name", ["worker9", "master", ""])
def test_who_is_no_worker_is_not_removed(name: str) -> None:
    run = play("remove.yml", "-e", f"node={name}")

    assert run.returncode != 0
    assert "is none of the workers (worker1, worker2, worker3, worker4)" in run.stdout
    assert nodemanagers() == set(NAMES[1:])


def test_a_job_ends_whole_although_a_worker_dies_in_the_middle_of_it() -> None:
    sweep("/data/killed", "/out/killed")
    playbooks.pictures(PICTURES, "/data/killed")
    words = ["--input", "hdfs:///data/killed", "--output", "hdfs:///out/killed", "--policy", "maxflow", "--batch", "8"]
    job = json.loads(lab.nodewise("job", "submit", *words, "--capability", "perf_cpu", "--json"))["job_id"]

    busy: list[str] = []

    def in_the_middle() -> bool:
        """Whether a worker has done some of its part and not all; those who have are `busy`."""
        said = json.loads(lab.nodewise("job", "status", job, "--json"))["status"]
        nodes = said["nodes"] if said else []
        busy[:] = sorted(node["node_name"] for node in nodes if 0 < node["images"] < node["planned"])
        return bool(busy)

    until(in_the_middle, 300)
    victim = busy[0]
    lab.kill(victim)
    lab.nodewise("job", "status", job, "--watch", timeout=1200)
    rows = playbooks.results("/out/killed")
    lab.start(victim)
    until(lambda: everywhere(victim), 240)
    sweep("/data/killed", "/out/killed")

    assert len({row["path"] for row in rows}) == len(rows) == PICTURES
    assert [row["error"] for row in rows if row["error"]] == []


def with_one_file_more(archive: Path, made: Path) -> None:
    """The same archive with a file that nobody reads, so that it is another release."""
    note = tarfile.TarInfo("UPGRADED")
    with gzip.open(made, "wb", compresslevel=1) as packed, tarfile.open(fileobj=packed, mode="w") as new:
        with tarfile.open(archive) as old:
            for member in old:
                new.addfile(member, old.extractfile(member) if member.isfile() else None)
        new.addfile(note, io.BytesIO())


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A payload whose code and Hadoop are new."""
    usual = PLAYBOOKS / "payload"
    listed = json.loads((usual / "payload.json").read_text())
    for name in listed:
        if name in ("code.tar.gz", "hadoop.tar.gz"):
            with_one_file_more(usual / name, tmp_path / name)
        else:
            (tmp_path / name).symlink_to(usual / name)
        content = (tmp_path / name).read_bytes()
        listed[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (tmp_path / "payload.json").write_text(json.dumps(listed))
    return tmp_path


@pytest.mark.long
def test_an_upgrade_restarts_all_and_loses_no_acknowledged_write(newer: Path) -> None:
    units = [("master", unit) for unit in ("nodewise-infosvc", "hadoop-namenode", "hadoop-resourcemanager")]
    units += [(name, unit) for name in NAMES[1:] for unit in ("hadoop-datanode", "hadoop-nodemanager")]
    before = {unit: began(*unit) for unit in units}
    sweep("/data/upgraded")
    playbooks.pictures(20, "/data/upgraded")
    lab.run("master", ["sudo", "rm", "-f", STOP])

    with ThreadPoolExecutor() as pool:
        python = as_nodewise("/opt/nodewise/service/bin/python", "-P", "-c", WRITER)
        writing = pool.submit(lab.run, "master", python, 3000.0)
        try:
            changes(play("upgrade.yml", "-e", f"nodewise_payload={newer}"))
        finally:
            lab.run("master", as_nodewise("touch", STOP))
        written = json.loads(writing.result())
    lab.run("master", ["sudo", "rm", "-f", STOP])

    assert len(written["acknowledged"]) > 100
    assert set(written["acknowledged"]) - set(written["stored"]) == set()
    assert [unit for unit in before if began(*unit) == before[unit]] == []
    found = fsck()
    assert "is HEALTHY" in found
    assert found.count("/data/upgraded/") == 20
    assert datanodes() == nodemanagers() == {name for name, state in agents().items() if state == "ready"}
    sweep("/data/upgraded")
