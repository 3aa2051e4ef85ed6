"""One slot with real processes and a clock of the test's own."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from collectors.agent.run import child
from collectors.agent.run.outcome import OUTPUT_LIMIT
from collectors.agent.schedule import QUARANTINE_FAILURES
from collectors.agent.slot import GRACE_SECONDS, REAP_SECONDS, Ended, RunSlot
from infosvc.wire.records import Outcome, Run, Slot

Finish = Callable[[RunSlot, float], Run]
Wait = Callable[[Callable[[], Any]], Any]


def alive(pid_file: Path) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{int(pid_file.read_text())}/status").read_text()
    except (OSError, ValueError):
        return False


def test_a_run_brings_its_value_and_its_duration(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", "echo 0.5", 5), shell, first=10.0)

    assert slot.step(9.9) is None
    assert not slot.running
    assert slot.step(10.0) is None
    run = finish(slot, 10.2)

    assert run == Run("a", Outcome.OK, 0.2, "0.5", exit_status=0)


def test_a_run_that_brings_several_values_is_worth_their_number(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", "echo y 2; echo x 0.5", 5, emits=("x", "y", "z")), shell, 10.0)
    slot.step(10.0)
    run = finish(slot, 10.1)

    assert (run.outcome, run.value, run.values) == (Outcome.OK, "2", {"x": "0.5", "y": "2"})


def test_missed_ticks_are_skipped_and_counted_and_the_schedule_does_not_drift(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", "echo 1", 5), shell, first=10.0)

    slot.step(10.3)
    assert slot.due == 15.0
    assert finish(slot, 10.4).skipped == 0
    slot.step(31.0)
    assert slot.due == 35.0
    assert finish(slot, 31.1).skipped == 3


def test_after_a_first_run_out_of_turn_the_schedule_keeps_its_phase(shell: Any, finish: Finish, wait_for: Wait) -> None:
    early = RunSlot(Slot("a", "echo 1", 5), shell, first=11.0, phase=3.0)
    late = RunSlot(Slot("a", "echo 1", 5), shell, first=12.5, phase=3.0)
    for slot in (early, late):
        slot.step(slot.due)

    assert (early.due, late.due) == (18.0, 18.0)  # at 13 it would measure next to nothing
    finish(early, 12.0)
    early.step(18.0)
    assert early.due == 23.0
    for slot in (early, late):
        slot.end()
        wait_for(slot.is_gone)


def failing(finish: Finish, slot: RunSlot, times: int) -> list[tuple[float, Run]]:
    """When each run started, and how it ended."""
    done = []
    for _ in range(times):
        start = slot.due
        ended = slot.step(start)
        done.append((start, ended.run if ended else finish(slot, start)))
    return done


def test_after_three_failures_in_a_row_a_slot_runs_ever_less_often_and_after_ten_no_more(
    shell: Any, finish: Finish
) -> None:
    slot = RunSlot(Slot("a", "echo why >&2; exit 2", 5), shell, 0.0)
    runs = failing(finish, slot, QUARANTINE_FAILURES)

    gaps = [(later - earlier) / 5 for (earlier, _), (later, _) in pairwise(runs)]
    assert gaps == [1, 1, 1, 2, 4, 8, 8, 8, 8]
    assert [run.outcome for _, run in runs] == [Outcome.FAILED] * 9 + [Outcome.QUARANTINED]
    assert "10 times" in str(runs[-1][1].reason)
    assert "why" in str(runs[-1][1].reason)
    assert "nodewise slot lift NODE a" in str(runs[-1][1].reason)
    assert slot.step(1e9) is None
    assert len(shell.starts) == QUARANTINE_FAILURES


def test_one_good_run_ends_the_back_off(shell: Any, tmp_path: Path, finish: Finish) -> None:
    slot = RunSlot(Slot("a", f"test -e {tmp_path}/mended && echo 1", 5), shell, 0.0)
    failing(finish, slot, 6)
    (tmp_path / "mended").touch()
    now = slot.due
    slot.step(now)

    assert finish(slot, now).outcome is Outcome.OK
    assert slot.due == now + 5
    (tmp_path / "mended").unlink()
    first, second = failing(finish, slot, 2)
    assert second[0] - first[0] == 5


def test_what_is_refused_backs_off_but_never_rests(shell: Any, finish: Finish) -> None:
    runs = failing(finish, RunSlot(Slot("a", "refuse", 5), shell, 0.0), 2 * QUARANTINE_FAILURES)

    assert {run.outcome for _, run in runs} == {Outcome.REFUSED}
    assert runs[-1][0] - runs[-2][0] == 40


def test_a_changed_input_runs_a_processor_soon_but_not_too_often(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", "echo 1", 20, inputs=("x",)), shell, 0.0)
    slot.step(0.0)
    slot.trigger()  # while it runs: once more afterwards
    slot.trigger()
    finish(slot, 0.5)
    assert slot.due == 2.0
    slot.step(2.0)
    finish(slot, 2.1)

    assert slot.due == 22.0  # nothing has changed since, so an interval passes
    slot.trigger()
    assert slot.due == 4.0


def test_a_processor_that_fails_is_not_run_more_often_by_its_inputs(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", "exit 1", 20, inputs=("x",)), shell, 0.0)
    failing(finish, slot, 5)
    due = slot.due
    slot.trigger()

    assert slot.due == due


def test_a_refused_and_an_unstartable_command_are_outcomes_with_reasons(shell: Any) -> None:
    refused = RunSlot(Slot("a", "refuse", 5), shell, 0.0).step(0.0)
    missing = RunSlot(Slot("a", "missing", 5), shell, 0.0).step(0.0)

    assert refused == Ended(Run("a", Outcome.REFUSED, 0.0, None, "not here"), Outcome.REFUSED)
    assert missing is not None
    assert (missing.outcome, "No such file" in str(missing.run.reason)) == (Outcome.FAILED, True)


def test_a_run_that_breaks_before_its_command_is_an_outcome_with_a_reason(shell: Any) -> None:
    ended = RunSlot(Slot("a", "unlimited", 5), shell, 0.0).step(0.0)

    assert ended is not None
    assert (ended.outcome, "preexec_fn" in str(ended.run.reason)) == (Outcome.FAILED, True)


def test_a_timeout_ends_the_whole_group_gently_and_keeps_no_value(
    shell: Any, tmp_path: Path, finish: Finish, wait_for: Wait
) -> None:
    cmd = f"sleep 600 & echo $! > {tmp_path}/grandchild; echo 0.5; trap 'exit 0' TERM; wait"
    slot = RunSlot(Slot("a", cmd, 5, timeout=1.0), shell, 0.0)
    slot.step(0.0)
    wait_for(lambda: alive(tmp_path / "grandchild"))

    assert slot.step(0.9) is None
    run = finish(slot, 1.0)

    assert (run.outcome, run.value) == (Outcome.TIMEOUT, None)
    assert "1 s" in str(run.reason)
    wait_for(lambda: not alive(tmp_path / "grandchild"))


def test_what_ignores_sigterm_is_killed_after_the_grace_time(
    shell: Any, tmp_path: Path, finish: Finish, wait_for: Wait
) -> None:
    cmd = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"
    slot = RunSlot(Slot("a", cmd, 5, timeout=1.0), shell, 0.0)
    slot.step(0.0)
    wait_for(lambda: alive(tmp_path / "pid"))

    slot.step(1.0)
    assert slot.step(1.0 + GRACE_SECONDS / 2) is None
    assert alive(tmp_path / "pid")
    run = finish(slot, 1.0 + GRACE_SECONDS)

    assert run.outcome is Outcome.TIMEOUT
    assert not alive(tmp_path / "pid")


def test_what_even_sigkill_does_not_end_is_reported_and_keeps_its_slot_until_it_is_gone(
    shell: Any, finish: Finish, wait_for: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that waits in the kernel for a dead disk: the signals come to nothing."""
    slot = RunSlot(Slot("a", "sleep 600", 5, timeout=1.0), shell, 0.0)
    with monkeypatch.context() as kernel:
        kernel.setattr(child, "kill_group", lambda *_: None)
        slot.step(0.0)
        slot.step(1.0)
        slot.step(1.0 + GRACE_SECONDS)
        assert (slot.step(1.1 + GRACE_SECONDS), slot.running) == (None, True)
        ended = slot.step(1.0 + GRACE_SECONDS + REAP_SECONDS)
        assert ended is not None
        assert (ended.outcome, "cannot be killed" in str(ended.run.reason)) == (Outcome.TIMEOUT, True)
        assert (slot.running, slot.busy, slot.deadline) == (False, True, math.inf)
        assert slot.step(100.0) is None
        assert len(shell.starts) == 1
    slot.end()
    wait_for(lambda: slot.step(100.0) is None and not slot.busy)
    slot.step(100.0)

    assert len(shell.starts) == 2
    slot.end()
    wait_for(slot.is_gone)


def test_a_background_child_does_not_outlive_its_run_nor_hold_it_up(
    shell: Any, tmp_path: Path, finish: Finish, wait_for: Wait
) -> None:
    slot = RunSlot(Slot("a", f"sleep 600 & echo $! > {tmp_path}/left; echo 1", 5), shell, 0.0)
    slot.step(0.0)

    assert finish(slot, 0.1).outcome is Outcome.OK
    wait_for(lambda: not alive(tmp_path / "left"))


def test_at_a_timeout_even_what_left_the_group_is_killed(
    shell: Any, tmp_path: Path, finish: Finish, wait_for: Wait
) -> None:
    slot = RunSlot(
        Slot("a", f"setsid sh -c 'echo $$ > {tmp_path}/left; sleep 600' & sleep 600", 5, timeout=1), shell, 0.0
    )
    slot.step(0.0)
    wait_for(lambda: alive(tmp_path / "left"))

    finish(slot, 1.0)

    wait_for(lambda: not alive(tmp_path / "left"))


def test_more_output_than_the_limit_fails_and_does_not_block(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", f"{sys.executable} -c 'print(\"x\" * 1000000)'", 5, timeout=30), shell, 0.0)
    slot.step(0.0)

    run = finish(slot, 0.1)

    assert (run.outcome, run.reason) == (Outcome.FAILED, f"more than {OUTPUT_LIMIT} bytes were printed")


def test_the_longest_value_comes_through_whole(shell: Any, finish: Finish) -> None:
    slot = RunSlot(Slot("a", f"{sys.executable} -c 'print(\"x\" * {OUTPUT_LIMIT - 1})'", 5, timeout=30), shell, 0.0)
    slot.step(0.0)

    assert finish(slot, 0.1).value == "x" * (OUTPUT_LIMIT - 1)


def test_a_run_that_floods_an_output_is_ended_at_once(shell: Any, finish: Finish) -> None:
    for stream, said in ((1, "more than"), (2, "too much")):
        slot = RunSlot(Slot("a", f"yes >&{stream}", 5, timeout=1000), shell, 0.0)
        slot.step(0.0)
        run = finish(slot, 0.1)

        assert (run.outcome, said in str(run.reason)) == (Outcome.FAILED, True)
