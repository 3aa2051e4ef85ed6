"""Slots with real processes, a clock of the test's own, and real files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.agent.child import Child
from collectors.agent.guard import Guard
from collectors.agent.outcome import OUTPUT_LIMIT
from collectors.agent.slot import GRACE_SECONDS, RunSlot
from collectors.agent.slots import MAX_RUNNING, Slots
from collectors.agent.trust import Refused
from infosvc.records import Outcome, Run, Slot, Wanted

DEADLINE_SECONDS = 20.0


class NoGuard(Guard):
    """The tests of the guard itself run a whole agent."""

    def __init__(self) -> None:
        """Nothing to tell."""

    def _tell(self, line: str) -> None:
        pass


class Shell:
    """Starts `sh -c CMD`, which no agent would do, and counts the starts."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.starts: list[str] = []

    def start(self, slot: Slot) -> Child:
        self.starts.append(slot.data_name)
        if slot.cmd == "refuse":
            raise Refused("not here")
        if slot.cmd == "missing":
            raise FileNotFoundError(2, "No such file or directory")
        state = self.state / slot.data_name
        state.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "STATE_DIR": str(state)}
        return Child(["sh", "-c", slot.cmd], environment, NoGuard())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def slots(shell: Shell) -> Iterator[tuple[Slots, list[Run]]]:
    runs: list[Run] = []
    made = Slots(shell, runs.append, jitter=lambda: 0.0)
    yield made, runs
    made.end()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "this never came"
        time.sleep(0.01)


def finish(slot: RunSlot, now: float) -> Run:
    """Step at one instant until the run that is under way has ended."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (run := slot.step(now)) is None:
        assert time.monotonic() < deadline, "this run never ended"
        time.sleep(0.01)
    return run


def alive(pid_file: Path) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{int(pid_file.read_text())}/status").read_text()
    except (OSError, ValueError):
        return False


def test_a_run_brings_its_value_and_its_duration(shell: Shell) -> None:
    slot = RunSlot(Slot("a", "echo 0.5", 5), shell, due=10.0)

    assert slot.step(9.9) is None
    assert not slot.running
    assert slot.step(10.0) is None
    run = finish(slot, 10.2)

    assert (run.data_name, run.outcome, run.value, run.duration) == ("a", Outcome.OK, "0.5", 0.2)


def test_missed_ticks_are_skipped_and_the_schedule_does_not_drift(shell: Shell) -> None:
    slot = RunSlot(Slot("a", "echo 1", 5), shell, due=10.0)

    slot.step(10.3)
    assert slot.due == 15.0
    finish(slot, 10.4)
    slot.step(31.0)
    assert slot.due == 35.0
    finish(slot, 31.1)


def test_a_refused_and_an_unstartable_command_are_outcomes_with_reasons(shell: Shell) -> None:
    refused = RunSlot(Slot("a", "refuse", 5), shell, 0.0).step(0.0)
    missing = RunSlot(Slot("a", "missing", 5), shell, 0.0).step(0.0)

    assert refused == Run("a", Outcome.REFUSED, 0.0, None, "not here")
    assert missing is not None
    assert (missing.outcome, "No such file" in str(missing.reason)) == (Outcome.FAILED, True)


def test_a_timeout_ends_the_whole_group_gently_and_keeps_no_value(shell: Shell, tmp_path: Path) -> None:
    cmd = f"sleep 100 & echo $! > {tmp_path}/grandchild; echo 0.5; trap 'exit 0' TERM; wait"
    slot = RunSlot(Slot("a", cmd, 5, timeout=1.0), shell, 0.0)
    slot.step(0.0)
    wait_for(lambda: alive(tmp_path / "grandchild"))

    assert slot.step(0.9) is None
    run = finish(slot, 1.0)

    assert (run.outcome, run.value) == (Outcome.TIMEOUT, None)
    assert "1 s" in str(run.reason)
    assert not alive(tmp_path / "grandchild")


def test_what_ignores_sigterm_is_killed_after_the_grace_time(shell: Shell, tmp_path: Path) -> None:
    cmd = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"
    slot = RunSlot(Slot("a", cmd, 5, timeout=1.0), shell, 0.0)
    slot.step(0.0)
    wait_for(lambda: alive(tmp_path / "pid"))

    slot.step(1.0)
    assert slot.step(1.0 + GRACE_SECONDS / 2) is None
    assert alive(tmp_path / "pid")
    run = slot.step(1.0 + GRACE_SECONDS)

    assert run is not None
    assert run.outcome is Outcome.TIMEOUT
    assert not alive(tmp_path / "pid")


def test_a_background_child_does_not_outlive_its_run_nor_hold_it_up(shell: Shell, tmp_path: Path) -> None:
    slot = RunSlot(Slot("a", f"sleep 100 & echo $! > {tmp_path}/left; echo 1", 5), shell, 0.0)
    slot.step(0.0)

    assert finish(slot, 0.1).outcome is Outcome.OK
    wait_for(lambda: not alive(tmp_path / "left"))


def test_at_a_timeout_even_what_left_the_group_is_killed(shell: Shell, tmp_path: Path) -> None:
    slot = RunSlot(
        Slot("a", f"setsid sh -c 'echo $$ > {tmp_path}/left; sleep 100' & sleep 100", 5, timeout=1), shell, 0.0
    )
    slot.step(0.0)
    wait_for(lambda: alive(tmp_path / "left"))

    finish(slot, 1.0)

    wait_for(lambda: not alive(tmp_path / "left"))


def test_more_output_than_the_limit_fails_and_does_not_block(shell: Shell) -> None:
    slot = RunSlot(Slot("a", f"{sys.executable} -c 'print(\"x\" * 1000000)'", 5, timeout=30), shell, 0.0)
    slot.step(0.0)

    run = finish(slot, 0.1)

    assert (run.outcome, run.reason) == (Outcome.FAILED, f"more than {OUTPUT_LIMIT} bytes were printed")


def test_the_longest_value_comes_through_whole(shell: Shell) -> None:
    slot = RunSlot(Slot("a", f"{sys.executable} -c 'print(\"x\" * {OUTPUT_LIMIT - 1})'", 5, timeout=30), shell, 0.0)
    slot.step(0.0)

    assert finish(slot, 0.1).value == "x" * (OUTPUT_LIMIT - 1)


def test_only_a_few_runs_are_under_way_at_once_and_the_others_follow(slots: tuple[Slots, list[Run]]) -> None:
    made, runs = slots
    names = [f"s{i}" for i in range(MAX_RUNNING + 3)]
    made.want(Wanted(1, tuple(Slot(name, "sleep 0.3; echo 1", 1000, timeout=30) for name in names)))
    most = 0

    def all_done() -> bool:
        nonlocal most
        made.step(1.0)
        most = max(most, sum(slot.running for slot in made._slots.values()))
        return len(runs) == len(names)

    wait_for(all_done)
    assert most == MAX_RUNNING
    assert {run.outcome for run in runs} == {Outcome.OK}


def test_a_new_wish_stops_what_is_gone_and_leaves_what_stayed(slots: tuple[Slots, list[Run]], shell: Shell) -> None:
    made, _ = slots
    long = "sleep 100"
    made.want(Wanted(1, (Slot("stays", long, 5), Slot("stops", long, 5), Slot("changes", long, 5))))
    made.step(0.0)
    stays = Slot("stays", long, 5, outcome=Outcome.FAILED, age=3.0)  # what was reported is no new wish
    made.want(Wanted(2, (stays, Slot("stops", long, 5, running=False), Slot("changes", long, 6))))
    made.step(0.1)

    assert made.version == 2
    assert sorted(shell.starts) == ["changes", "changes", "stays", "stops"]
    assert set(made._slots) == {"stays", "changes"}


def test_one_broken_slot_does_not_stop_the_others(slots: tuple[Slots, list[Run]], shell: Shell) -> None:
    made, runs = slots
    start = shell.start

    def start_or_break(slot: Slot) -> Child:
        if slot.data_name == "broken":
            raise RuntimeError("boom")
        return start(slot)

    shell.start = start_or_break  # type: ignore[method-assign]
    made.want(Wanted(1, (Slot("broken", "x", 1), Slot("works", "echo 1", 1000))))

    wait_for(lambda: made.step(0.0) and runs)
    assert [run.data_name for run in runs] == ["works"]


def test_the_loop_may_sleep_until_the_next_run_is_due(slots: tuple[Slots, list[Run]]) -> None:
    made, runs = slots
    assert made.step(0.0) == 1.0
    made.want(Wanted(1, (Slot("a", "echo 1", 0.4),)))
    wait_for(lambda: made.step(0.0) and runs)

    assert made.step(0.1) == pytest.approx(0.3)
