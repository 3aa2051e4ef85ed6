"""All slots of a node with real processes and a clock of the test's own."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collectors.agent import slots as slots_module
from collectors.agent.run import child
from collectors.agent.run.child import Child
from collectors.agent.schedule import QUARANTINE_FAILURES, node_phase
from collectors.agent.slots import IDLE_SECONDS, MAX_RUNNING, Slots
from infosvc.wire.records import Outcome, Run, Scope, Slot, Wanted

DEADLINE_SECONDS = 90.0

Wait = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def slots(shell: Any, wait_for: Wait) -> Iterator[tuple[Slots, list[Run]]]:
    runs: list[Run] = []
    made = Slots(shell, lambda ended: runs.append(ended.run))
    yield made, runs
    made.end()
    wait_for(lambda: all(slot.is_gone() for slot in made._leaving))  # an agent would not wait for so long


def test_only_a_few_runs_are_under_way_at_once_and_the_others_follow(
    slots: tuple[Slots, list[Run]], wait_for: Wait
) -> None:
    made, runs = slots
    names = [f"s{i}" for i in range(MAX_RUNNING + 3)]
    made.want(Wanted("n1", 1, tuple(Slot(name, "sleep 0.3; echo 1", 1000, timeout=30) for name in names)))
    most = 0

    def all_done() -> bool:
        nonlocal most
        made.step(1.0)
        most = max(most, sum(slot.running for slot in made._slots.values()))
        return len(runs) == len(names)

    wait_for(all_done)
    assert most == MAX_RUNNING
    assert {run.outcome for run in runs} == {Outcome.OK}


def test_a_new_wish_stops_what_is_gone_and_leaves_what_stayed(
    slots: tuple[Slots, list[Run]], shell: Any, wait_for: Wait
) -> None:
    made, _ = slots
    long = "sleep 600"
    made.want(Wanted("n1", 1, (Slot("stays", long, 5), Slot("stops", long, 5), Slot("changes", long, 5))))
    made.step(0.0)
    stays = Slot("stays", long, 5, skipped=4, outcome=Outcome.FAILED, age=3.0)  # what was reported is not a new wish
    made.want(Wanted("n1", 2, (stays, Slot("stops", long, 5, running=False), Slot("changes", long, 6))))
    wait_for(lambda: made.step(0.5) and len(shell.starts) == 4)

    assert made.version == 2
    assert sorted(shell.starts) == ["changes", "changes", "stays", "stops"]
    assert set(made._slots) == {"stays", "changes"}


def test_what_does_not_die_holds_up_nothing_but_a_new_slot_of_its_name(
    slots: tuple[Slots, list[Run]], shell: Any, wait_for: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, runs = slots
    with monkeypatch.context() as kernel:
        kernel.setattr(child, "kill_group", lambda *_: None)
        made.want(Wanted("n1", 1, (Slot("a", "sleep 600", 5),)))
        made.step(0.0)
        made.want(Wanted("n1", 2, (Slot("a", "echo 1", 5), Slot("b", "echo 1", 5))))
        wait_for(lambda: made.step(1.0) and runs)
        assert shell.starts == ["a", "b"]
        assert made.step(1.0) == made.quiet_seconds(1.0) == pytest.approx(4.0)  # until b's next turn
        left = made._leaving
    assert len(left) == 1
    left[0].end()
    wait_for(lambda: made.step(1.0) and len(runs) == 2)

    assert shell.starts == ["a", "b", "a"]


def test_an_agent_that_ends_does_not_wait_for_what_does_not_die(
    slots: tuple[Slots, list[Run]], wait_for: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = slots
    made.want(Wanted("n1", 1, (Slot("a", "sleep 600", 5),)))
    made.step(0.0)
    left = list(made._slots.values())
    with monkeypatch.context() as kernel:
        kernel.setattr(child, "kill_group", lambda *_: None)
        kernel.setattr(slots_module, "END_SECONDS", 0.1)
        made.end()

    assert left[0].busy
    left[0].end()
    wait_for(left[0].is_gone)


def test_slots_that_fail_have_one_place_together(
    slots: tuple[Slots, list[Run]], shell: Any, tmp_path: Path, wait_for: Wait
) -> None:
    made, runs = slots
    hangs = f"test -e {tmp_path}/again && sleep 600"
    names = [f"bad{number}" for number in range(MAX_RUNNING)]
    made.want(Wanted("n1", 1, (*(Slot(name, hangs, 5) for name in names), Slot("good", "echo 1", 1000))))
    wait_for(lambda: made.step(1.0) and len(runs) == len(names) + 1)
    (tmp_path / "again").touch()
    del shell.starts[:], runs[:]
    made.want(Wanted("n1", 2, (*(Slot(name, hangs, 5) for name in names), Slot("good", "echo 2", 1000))))
    wait_for(lambda: made.step(7.0) and runs)

    assert [run.data_name for run in runs] == ["good"]
    assert (len(shell.starts), "good" in shell.starts) == (2, True)
    assert made.step(7.0) > 0  # the other three wait for the end of the first, without a busy loop


def test_one_broken_slot_does_not_stop_the_others(slots: tuple[Slots, list[Run]], shell: Any, wait_for: Wait) -> None:
    made, runs = slots
    start: Callable[[Slot], Child] = shell.start

    def start_or_break(slot: Slot) -> Child:
        if slot.data_name == "broken":
            raise RuntimeError("boom")
        return start(slot)

    shell.start = start_or_break
    made.want(Wanted("n1", 1, (Slot("broken", "x", 1), Slot("works", "echo 1", 1000))))

    wait_for(lambda: made.step(0.0) and runs)
    assert [run.data_name for run in runs] == ["works"]


def test_the_loop_may_sleep_until_the_next_run_is_due(slots: tuple[Slots, list[Run]], wait_for: Wait) -> None:
    made, runs = slots
    assert made.step(0.0) == IDLE_SECONDS
    made.want(Wanted("n1", 1, (Slot("a", "echo 1", 0.4),)))
    wait_for(lambda: made.step(0.0) and runs)

    assert made.step(0.1) == pytest.approx(0.3)


def test_the_loop_wakes_for_the_end_of_a_run_and_for_its_timeout(
    slots: tuple[Slots, list[Run]], wait_for: Wait
) -> None:
    made, runs = slots
    made.want(Wanted("n1", 1, (Slot("a", "echo 1", 1000, timeout=7),)))
    assert made.step(0.0) == pytest.approx(7.0)

    poll = select.poll()
    for descriptor in made.descriptors:
        poll.register(descriptor, select.POLLIN)
    assert poll.poll(DEADLINE_SECONDS * 1000)
    wait_for(lambda: made.step(0.0) and runs)
    assert made.descriptors == []


def test_a_closed_output_does_not_keep_the_loop_awake(slots: tuple[Slots, list[Run]], wait_for: Wait) -> None:
    made, _ = slots
    made.want(Wanted("n1", 1, (Slot("a", "exec >&- 2>&-; sleep 600", 1000, timeout=7),)))

    wait_for(lambda: made.step(0.0) and len(made.descriptors) == 1)


def test_the_node_is_quiet_only_between_runs(slots: tuple[Slots, list[Run]], wait_for: Wait) -> None:
    made, runs = slots
    made.want(Wanted("n1", 1, (Slot("a", "echo 1", 3),)))
    made.step(0.0)
    assert made.quiet_seconds(0.1) == 0
    wait_for(lambda: made.step(0.1) and runs)

    assert made.quiet_seconds(1.0) == 2.0


def test_slots_of_one_interval_share_a_phase_that_differs_between_nodes(shell: Any) -> None:
    ticks = set()
    for node_name in ("n1", "n2"):
        made = Slots(shell, lambda ended: None, node_phase(node_name))
        made.want(Wanted(node_name, 1, (Slot("a", "refuse", 5), Slot("b", "refuse", 5))))
        made.step(100.0)  # the first runs come within half a second
        made.step(100.6)
        dues = {slot.due for slot in made._slots.values()}
        assert len(dues) == 1
        ticks |= dues

    assert len(ticks) == 2
    assert len(shell.starts) == 4


def test_what_the_service_has_received_runs_the_processors_that_read_it(
    slots: tuple[Slots, list[Run]], shell: Any, wait_for: Wait
) -> None:
    made, runs = slots
    wished = (Slot("p", "echo 1", 100, inputs=("x",)), Slot("q", "echo 1", 100, scope=Scope.CLUSTER, inputs=("x", "y")))
    made.want(Wanted("n1", 1, wished))
    wait_for(lambda: made.step(0.0) and len(runs) == 2)

    def started_at(now: float) -> list[str]:
        del shell.starts[:]
        made.step(now)
        begun = list(shell.starts)
        wait_for(lambda: made.step(now) and not made.descriptors)
        return begun

    made.note_delivered([Run("x", Outcome.OK, 0.1, "1")])
    assert started_at(20.0) == ["p"]
    made.note_delivered([Run("x", Outcome.OK, 0.1, "1"), Run("z", Outcome.OK, 0.1, "7")])
    assert started_at(40.0) == []
    made.note_delivered([Run("several", Outcome.OK, 0.1, "2", values={"x": "2", "z": "1"})])
    assert started_at(60.0) == ["p"]
    made.note_counts({"y": 5})  # a first count tells no change
    assert started_at(70.0) == []
    made.note_counts({"y": 6})
    assert started_at(80.0) == ["q"]


def rest(made: Slots, runs: list[Run], slot: Slot) -> float:
    """Step until the slot is in quarantine; the moment at which it is."""
    now = 0.0
    made.want(Wanted("n1", 1, (slot,)))
    while not (runs and runs[-1].outcome is Outcome.QUARANTINED):
        made.step(now)
        now += slot.interval
    return now


def test_a_quarantine_lasts_until_the_epoch_grows(slots: tuple[Slots, list[Run]], shell: Any) -> None:
    made, runs = slots
    slot = Slot("a", "missing", 1.0)
    now = rest(made, runs, slot)
    for again in (slot, replace(slot, interval=2.0), replace(slot, running=False), slot):
        made.want(Wanted("n1", 2, (again,)))
        made.step(now)
        made.step(now + 100)
    assert len(shell.starts) == len(runs) == QUARANTINE_FAILURES

    made.want(Wanted("n1", 3, (replace(slot, epoch=1),)))
    made.step(now)
    assert [run.outcome for run in runs[QUARANTINE_FAILURES:]] == [Outcome.FAILED]


def test_an_agent_that_starts_leaves_a_slot_in_its_quarantine(
    slots: tuple[Slots, list[Run]], shell: Any, wait_for: Wait
) -> None:
    made, runs = slots
    resting = Slot("a", "echo 1", 1.0, outcome=Outcome.QUARANTINED, epoch=4)
    made.want(Wanted("n1", 1, (resting,)))
    made.step(0.0)
    assert shell.starts == []

    made.want(Wanted("n1", 2, (replace(resting, epoch=5),)))
    wait_for(lambda: made.step(0.0) and runs)
    assert runs[0].outcome is Outcome.OK
