"""What goes wrong on a node, done to real agents: bad collectors, kills, a full disk, a service that is away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from collectors.agent.run import guard
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.records import Datum, Outcome, Producer
from tests.collectors.test_agent import alive
from tests.ports import free_port

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Wait = Callable[[Callable[[], Any]], Any]

TOKEN = "a-token-of-the-tests"
RESTART_SECONDS = 10.0
"""Less than an agent waits for another one to give its state directory up."""


def processes_of(folder: Path) -> list[int]:
    """Every live process that runs in, or for, a slot folder."""
    mark = f"\0STATE_DIR={folder}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in b"\0" + (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def start(service: InfoClient, name: str, cmd: str, **more: Any) -> None:
    service.put_producer(Producer(name, cmd, **({"time_max": 0.5, "timeout": 60.0} | more)))
    service.put_slot("n1", name, running=True)


def value(service: InfoClient, name: str) -> Datum | None:
    try:
        return next(iter(service.data(name, node="n1")), None)
    except NotFound:
        return None


def lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


HANGING = [f"hangs_{number}" for number in range(4)]  # as many as there are places
BAD = {
    **dict.fromkeys(HANGING, ("trap '' TERM; while :; do sleep 1; done", Outcome.TIMEOUT, "timeout")),
    "forks": ("i=0; while [ $i -lt 100 ]; do sleep 321 & i=$((i+1)); done; echo 1", Outcome.OK, None),
    "floods": ("dd if=/dev/zero bs=1M count=1024 2>/dev/null | tr '\\0' x", Outcome.FAILED, "more than 65535 bytes"),
    "complains": ("yes >&2", Outcome.FAILED, "too much"),
    "says_nothing": (":", Outcome.FAILED, "nothing was printed"),
    "binary": ("printf '\\377\\376\\000'", Outcome.FAILED, "UTF-8"),
    "not_a_number": ("echo nan", Outcome.FAILED, "not a finite number"),
    "dies": ("printf 'half a li'; kill -KILL $$", Outcome.FAILED, "ended by signal 9"),
}


def timeouts(service: InfoClient) -> int:
    return sum(len(service.slot_log("n1", name)) for name in HANGING)


def test_beside_collectors_that_go_wrong_the_others_stay_on_time(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    ran = node.base / "ran"
    start(service, "steady", node.script("steady.sh", f"echo >>{ran}; echo 1"))
    for name, (text, _, _) in BAD.items():
        usual = {"time_max": 600 if name == "forks" else 1, "timeout": 1 if name in HANGING else 30}
        start(service, name, node.script(f"{name}.sh", text), **usual)
    node.launch()

    seen = {name: wait_for(partial(value, service, name)) for name in BAD}
    assert {name: datum.outcome for name, datum in seen.items()} == {name: BAD[name][1] for name in BAD}
    assert not [name for name in BAD if BAD[name][2] and BAD[name][2] not in seen[name].reason]
    wait_for(lambda: not processes_of(node.base / "state" / "forks"))

    before, ended = lines(ran), timeouts(service)
    wait_for(lambda: timeouts(service) >= ended + 3 and lines(ran) >= before + 5)
    assert timeouts(service) - ended < 3 * (lines(ran) - before), (
        "four for each run would mean that they take all places"
    )
    wait_for(lambda: value(service, "steady").state == "fresh")  # type: ignore[union-attr]


def test_after_a_kill_the_agent_is_back_soon_and_nothing_runs_twice(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    start(service, "long", node.script("long.sh", "sleep 300; echo 1"), timeout=600)
    start(service, "quick", node.script("quick.sh", "echo $$"))
    began = time.monotonic()
    node.launch()
    wait_for(lambda: value(service, "quick"))
    usual = time.monotonic() - began
    folder = node.base / "state" / "long"
    wait_for(lambda: len(processes_of(folder)) == 2)
    first = processes_of(folder)
    before = value(service, "quick").data_value  # type: ignore[union-attr]

    os.kill(node.pid, signal.SIGKILL)
    began = time.monotonic()
    assert node.launch().returncode == 0

    wait_for(lambda: value(service, "quick").data_value != before)  # type: ignore[union-attr]
    assert time.monotonic() - began < 2 * usual + RESTART_SECONDS
    # The shell and its sleep.
    wait_for(lambda: len([pid for pid in processes_of(folder) if pid not in first]) == 2)
    wait_for(lambda: not set(first) & set(processes_of(folder)))  # who is killed may take a while to be gone
    assert len(processes_of(folder)) == 2


def test_two_agents_cannot_use_one_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LOCK_SECONDS", 0.1)
    first = guard.Guard.start(tmp_path)
    with pytest.raises(OSError, match="another agent works with"):
        guard.Guard.start(tmp_path)
    first.close()

    guard.Guard.start(tmp_path).close()


@pytest.fixture
def full_disk(node: Any) -> Iterator[Path]:
    """The node's state directory on a disk of its own without room for a single byte."""
    state = node.base / "state"
    state.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(state)], check=False)
    if mounted.returncode != 0:
        pytest.skip("only who may mount has a disk to fill")
    with (state / "filling").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(b"x" * 4096)
    yield state
    node.kill()
    subprocess.run(["umount", "-l", str(state)], check=True)


def test_on_a_full_disk_the_agent_goes_on(node: Any, service: InfoClient, full_disk: Path, wait_for: Wait) -> None:
    start(service, "a", node.script("a.sh", "echo $$"))
    assert node.launch().returncode == 0
    first = wait_for(lambda: value(service, "a"))

    wait_for(lambda: value(service, "a").data_value != first.data_value)  # type: ignore[union-attr]
    assert "No space left" in (node.base / "agent.log").read_text()
    assert node.call("GET", "/api/v1/slots/a/log")[1]["runs"] == []
    (full_disk / "filling").unlink()
    wait_for(lambda: node.call("GET", "/api/v1/slots/a/log")[1]["runs"])


def test_of_a_slot_that_is_taken_away_nothing_stays_on_the_node(node: Any, service: InfoClient, wait_for: Wait) -> None:
    escaped = f"setsid sh -c 'echo $$ > {node.base}/escaped; sleep 300' >&- 2>&- &"
    await_it = f"while ! [ -s {node.base}/escaped ]; do sleep 0.05; done"
    start(service, "a", node.script("a.sh", f"{escaped} {await_it}; echo 1"), time_max=600)
    start(service, "b", node.script("b.sh", "echo 1"))
    node.launch()
    folder, log = node.base / "state" / "a", node.base / "state" / ".log" / "a.jsonl"
    wait_for(lambda: value(service, "a") and log.exists())
    service.put_slot("n1", "a", running=False)
    assert wait_for(lambda: processes_of(folder))
    service.delete_slot("n1", "a")

    wait_for(lambda: not folder.exists() and not log.exists() and not processes_of(folder))
    assert (node.base / "state" / "b").is_dir()


def test_what_ran_while_the_service_was_away_reaches_it_in_order_and_with_its_age(
    tmp_path: Path, serving: Any, make_node: Any, wait_for: Wait
) -> None:
    port = free_port()
    with ExitStack() as first, InfoClient(f"http://127.0.0.1:{port}", TOKEN, 60) as service:
        first.enter_context(serving(tmp_path, port))
        node = make_node(service.url)
        service.put_node("n1", f"127.0.78.11:{node.port}")
        count = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n >n.new; mv n.new n; echo $n"
        start(service, "count", node.script("count.sh", count), keep=600, time_max=0.2)
        node.launch()
        wait_for(lambda: value(service, "count"))
        first.close()

        number = node.base / "state" / "count" / "n"
        gone = int(number.read_text())
        spool = node.base / "state" / ".spool"
        wait_for(lambda: len(list(spool.glob("*.jsonl"))) > 1 and len(numbers_in(spool)) > 2)
        wait_for(lambda: int(number.read_text()) > gone + 10)
        agent = node.pid
        os.kill(agent, signal.SIGKILL)  # what is on disk outlives this agent, too
        wait_for(lambda: not alive(agent))
        stored = numbers_in(spool)
        node.launch()
        with serving(tmp_path, port):
            wait_for(partial(arrived, service, max(stored)))
            wait_for(lambda: not list(spool.glob("*.jsonl")))
            points = [int(text) for _, text in service.history("count", "n1").points]
            times = [at for at, _ in service.history("count", "n1").points]
            assert points == sorted(points)
            assert len(stored) > 2 and stored <= set(points)
            assert times == sorted(times)
            node.launch("--stop")


def numbers_in(spool: Path) -> set[int]:
    """What the runs printed that wait there; the first line of a file is about all of them."""
    lines = [line for file in spool.glob("*.jsonl") for line in file.read_text().splitlines()[1:]]
    return {int(json.loads(line)[1]["value"]) for line in lines}


def arrived(service: InfoClient, number: int) -> bool:
    try:
        datum = value(service, "count")
    except InfoError:
        return False
    return datum is not None and datum.data_value is not None and int(datum.data_value) > number


def test_a_processor_runs_soon_after_what_it_reads_has_changed(node: Any, service: InfoClient, wait_for: Wait) -> None:
    source = node.base / "source"
    source.write_text("1")
    start(service, "read", node.script("read.sh", f"cat {source}"), time_max=0.3)
    # Its own turn would come after the test has given up; what it reads lets it run each tenth of that.
    derived = {"kind": "processor", "inputs": ("read",), "time_max": 150}
    start(service, "derived", node.script("derived.sh", f"cat {source}"), **derived)
    node.launch()
    for text in ("1", "2", "3"):
        source.write_text(text)
        wait_for(partial(reads, service, "derived", text))


def reads(service: InfoClient, name: str, text: str) -> bool:
    datum = value(service, name)
    return datum is not None and datum.data_value == text


def test_a_slot_that_only_fails_comes_to_rest_and_can_be_lifted(node: Any, service: InfoClient, wait_for: Wait) -> None:
    ran = node.base / "ran"
    start(service, "bad", node.script("bad.sh", f"echo >>{ran}; [ -e {node.base}/mended ] && echo 1"), time_max=0.1)
    node.launch()
    rests = wait_for(lambda: (datum := value(service, "bad")) and datum.outcome is Outcome.QUARANTINED and datum)
    assert "nodewise slot lift NODE bad" in rests.reason
    assert lines(ran) == 10

    node.launch()  # another agent leaves it at rest
    start(service, "quick", node.script("quick.sh", "echo 1"))
    wait_for(lambda: value(service, "quick"))
    assert lines(ran) == 10
    (node.base / "mended").touch()
    service.put_slot("n1", "bad", running=True, lift=True)
    assert wait_for(lambda: (datum := value(service, "bad")) and datum.data_value) == "1"
