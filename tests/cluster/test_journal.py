"""The journal in a real HDFS: a later attempt takes over from one that still lives, and nothing is lost or doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

import pytest

from hadoop.local.daemons import Daemon, find_running
from hadoop.local.lifecycle import Cluster
from tests.cluster.site import until

# Each attempt is a process of its own with a JVM, as on a cluster; it does what it reads line by line.
ATTEMPT = """
import json, sys, threading
from pathlib import Path
from hadoop.client.append_stream import children, take_away
from hadoop.client.datanodes import last_holders
from hadoop.errors import HadoopError
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from jobs.application.journal import Journal, Record, read
from jobs.kinds.__main__ import HDFS_PATIENCE_SECONDS

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
fs = FileSystem(HDFS_PATIENCE_SECONDS)

def become(*what):
    global folder, attempt
    folder, attempt = what

def append(*numbers):
    for n in numbers:
        journal.append(Record("number", {"n": n}, bytes(1000)))

def append_by_threads(*numbers):
    threads = [threading.Thread(target=append, args=(n,)) for n in numbers]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

def open_journal():
    global journal
    journal = Journal.open(fs, folder, attempt)

def earlier():
    return [record.body["n"] for record in journal.earlier()]

def everything():
    found = list(read(fs, folder))
    assert all(record.payload == bytes(1000) for record in found)
    return [record.body["n"] for record in found]

def take_own_segment_away():
    own = f"{folder}/attempt-{attempt}"
    take_away(fs, f"{own}/{children(fs, own)[-1]}")

def safe_mode(action):
    import jpype
    fs.java.setSafeMode(jpype.JClass("org.apache.hadoop.fs.SafeModeAction").valueOf(action))

def leave_safe_mode_soon():
    threading.Timer(2.0, safe_mode, ["LEAVE"]).start()

def segments():
    return sum(len(children(fs, f"{folder}/{name}")) for name in children(fs, folder))

def holders():
    own = f"{folder}/attempt-{attempt}"
    return last_holders(fs, f"{own}/{children(fs, own)[-1]}")

def close():
    journal.close()

for line in sys.stdin:
    name, *words = json.loads(line)
    try:
        print(json.dumps(["ok", globals()[name](*words)]), flush=True)
    except HadoopError as error:
        print(json.dumps(["refused", str(error)]), flush=True)
"""


class Attempt:
    """A process with a journal; calls answer ("ok", value) or ("refused", sentence)."""

    def __init__(self, cluster: Cluster) -> None:
        where = [str(cluster.conf_dir), str(cluster.jars), cluster.user]
        self._process = subprocess.Popen(
            [sys.executable, "-c", ATTEMPT, *where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *line: Any) -> tuple[str, Any]:
        assert self._process.stdin and self._process.stdout
        print(json.dumps(line), file=self._process.stdin, flush=True)
        outcome, value = json.loads(self._process.stdout.readline())
        return outcome, value

    def kill(self) -> None:
        """As a node does that loses its power."""
        self._process.kill()
        self._process.communicate()

    def is_alive(self) -> bool:
        """Whether nobody has killed it."""
        return self._process.poll() is None


Attempts = Callable[[str, int], Attempt]


@pytest.fixture(scope="module")
def idle() -> Iterator[list[Attempt]]:
    """Processes that tests are done with, for the next one, which begins in a folder of its own."""
    kept: list[Attempt] = []
    yield kept
    for one in kept:
        one.kill()


@pytest.fixture
def attempts(cluster: Cluster, idle: list[Attempt]) -> Iterator[Attempts]:
    """attempts(folder, number): an attempt in a process that no other attempt of the test has."""
    begun: list[Attempt] = []

    def begin(folder: str, number: int) -> Attempt:
        begun.append(idle.pop() if idle else Attempt(cluster))
        assert begun[-1]("become", folder, number) == ("ok", None)
        return begun[-1]

    yield begin
    idle += [one for one in begun if one.is_alive()]


def test_an_attempt_that_still_lives_can_record_nothing_once_a_later_one_has_begun(attempts: Attempts) -> None:
    old, new = attempts("/journal/fenced", 1), attempts("/journal/fenced", 2)
    assert old("open_journal") == ("ok", None)
    assert old("append_by_threads", *range(40)) == ("ok", None)

    assert new("open_journal") == ("ok", None)
    outcome, why = old("append", 100)

    assert (outcome, "a later attempt has taken over" in why) == ("refused", True)
    outcome, earlier = new("earlier")
    assert sorted(earlier) == list(range(40))
    assert new("append", 200) == new("close") == ("ok", None)
    assert old("append", 101)[0] == "refused"
    assert new("everything") == ("ok", [*earlier, 200])


def _forced(cluster: Cluster) -> int:
    """How often DataNodes have forced a file onto the disk."""
    total = 0
    for node in cluster.nodes:
        address, port = Daemon(cluster, "datanode", node).addresses[1]
        page = f"http://{address}:{port}/jmx?qry=Hadoop:service=DataNode,name=DataNodeActivity-*"
        with urlopen(page, timeout=60) as answer:
            total += sum(bean["FsyncCount"] for bean in json.load(answer)["beans"])
    return total


def test_what_is_recorded_has_been_forced_onto_the_disks(attempts: Attempts, cluster: Cluster) -> None:
    only = attempts("/journal/forced", 1)
    assert only("open_journal") == only("append", 0) == ("ok", None)
    before = _forced(cluster)
    assert only("append", 1, 2, 3) == ("ok", None)
    assert until(lambda: _forced(cluster) - before >= 3)  # they renew their figures every 10 s


def test_attempts_that_died_before_they_recorded_anything_are_no_hindrance(attempts: Attempts) -> None:
    dead = attempts("/journal/dead", 1)
    assert dead("open_journal") == ("ok", None)
    dead.kill()
    second = attempts("/journal/dead", 2)
    assert second("open_journal") == second("append", 1) == ("ok", None)
    second.kill()
    third = attempts("/journal/dead", 3)

    assert third("open_journal") == ("ok", None)
    assert third("earlier") == ("ok", [1])
    assert third("append", 2) == ("ok", None)
    assert third("everything") == ("ok", [1, 2]), "a file that is still written is read up to what was recorded"


def test_an_attempt_waits_for_a_namenode_in_safe_mode_as_it_is_while_it_starts(attempts: Attempts) -> None:
    only, operator = attempts("/journal/safe", 1), attempts("/journal/safe", 2)
    assert operator("safe_mode", "ENTER") == operator("leave_safe_mode_soon") == ("ok", None)

    assert only("open_journal") == only("append", 1) == ("ok", None)

    assert only("everything") == ("ok", [1])


def test_a_segment_that_hdfs_refuses_is_followed_by_another_one(attempts: Attempts) -> None:
    only = attempts("/journal/broken", 1)
    assert only("open_journal") == only("append", 1, 2) == only("take_own_segment_away") == ("ok", None)

    assert only("append", 3) == only("append_by_threads", 4) == only("close") == ("ok", None)

    assert only("segments")[1] >= 2, "more where HDFS needs more than two seconds"
    assert only("everything") == ("ok", [1, 2, 3, 4])


@contextmanager
def frozen(cluster: Cluster, node: str) -> Iterator[None]:
    """The DataNode of a node stands still."""
    process = find_running(cluster)[Daemon(cluster, "datanode", node)]
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("place", [0, 1])
def test_a_datanode_that_stands_still_does_not_hold_the_journal_up(
    attempts: Attempts, cluster: Cluster, place: int
) -> None:
    only = attempts(f"/journal/silent{place}", 1)
    assert only("open_journal") == only("append", 1) == ("ok", None)
    _, holders = only("holders")

    with frozen(cluster, holders[place][-1]):
        begun = time.monotonic()
        assert only("append", 2) == only("append", 3) == ("ok", None)
        seconds = time.monotonic() - begun
        assert holders[place] not in only("holders")[1]

    assert seconds < 15, "HDFS alone waits for 20 s"
    assert only("append", 4) == only("close") == ("ok", None)
    assert only("everything") == ("ok", [1, 2, 3, 4])
