"""Generations: who is a member, when one ends, and what an earlier attempt may not decide."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from locality.training.generation_events import (
    Began,
    Checkpointed,
    EndAnnounced,
    Event,
    Generation,
    Lost,
    from_body,
    to_body,
)
from locality.training.generations import Generations, MemberRules, Phase, Refused
from locality.training.regrouping import NO_STATE
from locality.types import PlanError

RULES = MemberRules(least=2, most=3, gather_seconds=10.0, silence_seconds=5.0, suspect_seconds=1.0, stop_seconds=20.0)


def settle(run: Generations, now: float, wanted: Iterable[str] | None = None) -> list[Event]:
    """Apply all that is due."""
    events: list[Event] = []
    while event := run.due(now, None if wanted is None else frozenset(wanted)):
        run.apply(event, now)
        events.append(event)
    return events


def begin(*names: str, rules: MemberRules = RULES) -> Generations:
    """A run whose first generation has these members, from second 0 on."""
    run = Generations(rules)
    run.apply(Began(1), 0.0)
    for name in names:
        run.join(name, f"{name}:1", 0.0)
    if len(names) < rules.most:
        beat(run, rules.gather_seconds, *names)
    settle(run, 0.0 if len(names) >= rules.most else rules.gather_seconds)
    assert set(run.members) == set(names)
    return run


def beat(run: Generations, now: float, *names: str) -> None:
    for name in names:
        run.beat(name, now)


def stop(run: Generations, now: float, **steps: int) -> None:
    assert run.current is not None
    for name, count in steps.items():
        run.stop(name, run.current.number, count, f"{name}:2", now)


def current(run: Generations) -> Generation:
    assert run.current is not None
    return run.current


def test_the_first_generation_begins_at_once_with_the_maximum_and_with_fewer_after_a_while() -> None:
    assert current(begin("a", "b", "c")).members == ("a", "b", "c")

    run = Generations(RULES)
    run.apply(Began(1), 0.0)
    for now, name in [(0.0, "a"), (4.0, "b")]:
        run.join(name, f"{name}:1", now)
    beat(run, 9.0, "a", "b")
    assert settle(run, 9.0) == []
    assert settle(run, 10.0) == [Generation(1, 1, ("a", "b"), 0, True, ("b",), "a:1")]


def test_fewer_than_the_minimum_wait() -> None:
    run = Generations(RULES)
    run.apply(Began(1), 0.0)
    run.join("a", "a:1", 0.0)
    run.beat("a", 1000.0)

    assert settle(run, 1000.0) == []
    assert run.phase is Phase.GATHERING


def test_a_member_whose_container_ended_is_lost_and_the_others_repeat_the_failed_step() -> None:
    run = begin("a", "b", "c")
    lost = run.lose("b", "exit code 137")
    assert lost is not None
    run.apply(lost, 1.0)

    assert settle(run, 1.0) == [EndAnnounced(1, 1, True, "lost b")]
    stop(run, 1.2, a=17, c=17)
    assert settle(run, 1.2) == [Generation(1, 2, ("a", "c"), 17, False, (), "a:2")]


def test_who_is_a_step_behind_gets_the_state_of_one_that_is_not_which_then_has_rank_0() -> None:
    run = begin("a", "b", "c")
    run.apply(Lost(1, "b", ""), 1.0)
    settle(run, 1.0)
    stop(run, 1.2, a=16, c=17)

    assert settle(run, 1.2) == [Generation(1, 2, ("c", "a"), 17, False, ("a",), "c:2")]


def test_a_frozen_member_is_lost_after_the_silence_and_refused_when_it_thaws() -> None:
    run = begin("a", "b", "c")
    beat(run, 4.9, "a", "b")
    assert settle(run, 5.0) == []
    assert settle(run, 5.1)[0] == Lost(1, "c", "silent for 5.1 s")
    stop(run, 5.2, a=3, b=3)
    settle(run, 5.2)

    refused = pytest.raises(Refused, match=r"c takes part no more: silent for 5.1 s")
    with refused:
        run.beat("c", 6.0)
    with refused:
        run.join("c", "c:1", 6.0)
    with refused:
        run.stop("c", 1, 3, "c:1", 6.0)


def test_when_a_member_tells_that_the_group_broke_silence_counts_sooner() -> None:
    run = begin("a", "b", "c")
    beat(run, 2.0, "a", "b", "c")
    stop(run, 2.5, a=8)
    beat(run, 2.9, "b")

    assert settle(run, 2.9) == [EndAnnounced(1, 1, True, "a could not go on")]
    beat(run, 3.9, "a", "b")
    assert settle(run, 3.9) == []
    assert settle(run, 4.0) == [Lost(1, "c", "silent for 2.0 s")]
    stop(run, 4.1, b=8)
    assert [type(event) for event in settle(run, 4.1)] == [Generation]


def test_one_that_lives_but_does_not_stop_is_lost_in_the_end() -> None:
    run = begin("a", "b", "c")
    stop(run, 1.0, a=8, b=8)
    settle(run, 1.0)
    for now in range(2, 21):
        beat(run, now, "a", "b", "c")
        assert settle(run, now) == []
    beat(run, 21.1, "a", "b", "c")

    assert settle(run, 21.1)[0] == Lost(1, "c", "did not stop within 20 s")
    assert run.members == ("a", "b")


def test_one_that_is_up_joins_after_a_step_and_gets_the_state() -> None:
    run = begin("a", "b")
    run.join("c", "c:1", 11.0)

    assert settle(run, 11.0) == [EndAnnounced(1, 1, False, "c joins")]
    assert run.phase is Phase.ENDING
    stop(run, 12.0, a=40)
    assert settle(run, 12.0) == []
    stop(run, 12.1, b=40)
    assert settle(run, 12.1) == [Generation(1, 2, ("a", "b", "c"), 40, False, ("c",), "a:2")]


def test_one_that_is_not_wanted_waits_until_it_is_or_until_another_is_lost() -> None:
    run = begin("a", "b")
    run.join("c", "c:1", 11.0)
    assert settle(run, 11.0, wanted="ab") == []

    run.apply(Lost(1, "b", ""), 12.0)
    settle(run, 12.0, wanted="ab")
    stop(run, 12.0, a=5)
    assert settle(run, 12.0, wanted="ab")[-1] == Generation(1, 2, ("a", "c"), 5, False, ("c",), "a:2")


def test_no_more_than_the_maximum_take_part_and_one_that_waits_replaces_a_lost_one() -> None:
    run = begin("a", "b", "c")
    run.join("d", "d:1", 1.0)
    assert settle(run, 1.0) == []

    run.apply(Lost(1, "a", ""), 2.0)
    settle(run, 2.0)
    stop(run, 2.0, b=5, c=5)
    assert settle(run, 2.0)[-1] == Generation(1, 2, ("b", "c", "d"), 5, False, ("d",), "b:2")


def test_a_member_that_is_not_wanted_leaves_after_a_step_and_may_come_back() -> None:
    run = begin("a", "b", "c")

    assert settle(run, 1.0, wanted="bc") == [EndAnnounced(1, 1, False, "a leaves")]
    stop(run, 2.0, a=9, b=9, c=9)
    assert settle(run, 2.0, wanted="bc") == [Generation(1, 2, ("b", "c"), 9, False, (), "b:2")]
    assert run.waiting == ("a",)
    assert settle(run, 3.0) == [EndAnnounced(1, 2, False, "a joins")]


def test_whoever_is_wanted_one_with_the_state_stays() -> None:
    run = begin("a", "b", "c")
    run.join("d", "d:1", 1.0)
    run.join("e", "e:1", 1.0)
    settle(run, 1.0, wanted="de")
    stop(run, 2.0, a=9, b=9, c=9)

    assert settle(run, 2.0, wanted="de") == [
        Generation(1, 2, ("a", "d", "e"), 9, False, ("d", "e"), "a:2"),
        EndAnnounced(1, 2, False, "a leaves"),
    ]


def test_a_loss_while_a_generation_ends_after_a_step_ends_it_at_once() -> None:
    run = begin("a", "b", "c")
    settle(run, 1.0, wanted="ab")
    run.apply(Lost(1, "c", "exit code 1"), 1.5)

    assert settle(run, 1.5, wanted="ab") == [EndAnnounced(1, 1, True, "lost c")]


def test_where_nobody_is_left_who_has_the_state_all_begin_with_the_checkpoint() -> None:
    run = begin("a", "b")
    run.apply(Checkpointed(1, 30), 11.0)
    for name in "ab":
        run.apply(Lost(1, name, ""), 12.0)
    settle(run, 12.0)
    run.join("c", "c:1", 13.0)
    run.join("d", "d:1", 13.0)

    assert settle(run, 13.0) == [Generation(1, 2, ("c", "d"), 30, True, ("d",), "c:1")]


def test_a_checkpoint_later_than_any_survivor_is_where_they_go_on() -> None:
    run = begin("a", "b", "c")
    run.apply(Checkpointed(1, 30), 1.0)
    run.apply(Lost(1, "a", ""), 1.0)
    settle(run, 1.0)
    stop(run, 1.0, b=NO_STATE, c=12)

    assert settle(run, 1.0) == [Generation(1, 2, ("c", "b"), 30, True, ("b",), "c:2")]


def test_generations_that_bring_no_step_are_counted() -> None:
    run = begin("a", "b", "c")
    for steps, fruitless in [(0, 1), (0, 2), (1, 0), (1, 1)]:
        stop(run, 1.0, a=steps, b=steps, c=steps)
        settle(run, 1.0)
        assert run.fruitless == fruitless


def test_one_that_missed_a_generation_stops_for_the_one_before_and_nothing_changes() -> None:
    run = begin("a", "b", "c")
    run.doubt(1, "nothing moves")
    settle(run, 1.0)
    stop(run, 1.0, a=1, b=1, c=1)
    settle(run, 1.0)
    run.stop("a", 1, 1, "a:2", 1.1)

    assert current(run).number == 2
    assert settle(run, 1.1) == []


def test_a_doubt_of_an_earlier_generation_is_passed_over() -> None:
    run = begin("a", "b", "c")
    run.doubt(0, "nothing moves")

    assert settle(run, 1.0) == []


def test_an_event_of_an_earlier_attempt_is_refused_and_nothing_changes() -> None:
    run = begin("a", "b", "c")
    run.apply(Began(2), 1.0)
    before = run.members, run.phase, run.checkpoint
    old: list[Event] = [
        Lost(1, "a", ""),
        EndAnnounced(1, 1, True, ""),
        Generation(1, 2, ("a",), 0, False, (), ""),
        Checkpointed(1, 9),
    ]
    for event in old:
        with pytest.raises(Refused, match="attempt 1 has decided this, but attempt 2 leads the run"):
            run.apply(event, 1.0)
    with pytest.raises(Refused, match="attempt 2 cannot take over from attempt 2"):
        run.apply(Began(2), 1.0)

    assert (run.members, run.phase, run.checkpoint) == before


def test_no_generation_is_made_while_another_runs_nor_with_a_gap_nor_with_one_that_was_lost() -> None:
    run = begin("a", "b", "c")
    with pytest.raises(Refused, match="generation 2 cannot follow generation 1, which computes"):
        run.apply(Generation(1, 2, ("a", "b"), 0, False, (), ""), 1.0)
    run.apply(Lost(1, "c", ""), 1.0)
    settle(run, 1.0)
    with pytest.raises(Refused, match="generation 3 cannot follow"):
        run.apply(Generation(1, 3, ("a", "b"), 0, False, (), ""), 1.0)
    with pytest.raises(Refused, match="generation 2 cannot have c: lost before"):
        run.apply(Generation(1, 2, ("a", "c"), 0, False, (), ""), 1.0)
    with pytest.raises(Refused, match="generation 1 cannot end"):
        run.apply(EndAnnounced(1, 1, True, ""), 1.0)


def test_a_later_attempt_waits_for_members_to_turn_to_it_and_then_misses_the_others_soon() -> None:
    run = begin("a", "b", "c")
    run.apply(Began(2), 100.0)
    assert settle(run, 130.0) == []

    stop(run, 131.0, a=50)
    assert settle(run, 131.0) == [EndAnnounced(2, 1, True, "a could not go on")]
    run.beat("b", 131.5)
    assert settle(run, 132.1) == [Lost(2, "c", "silent for 1.1 s")]
    assert run.members == ("a", "b")


def test_a_later_attempt_gives_up_members_that_never_turn_to_it() -> None:
    run = begin("a", "b", "c")
    run.apply(Began(2), 100.0)

    assert settle(run, 164.9) == []
    assert [event for event in settle(run, 165.1) if isinstance(event, Lost)] == [
        Lost(2, name, "silent for 5.1 s") for name in "abc"
    ]


def test_losing_who_is_unknown_or_lost_already_is_no_event() -> None:
    run = begin("a", "b", "c")

    assert run.lose("x", "") is None
    run.apply(Lost(1, "a", ""), 1.0)
    assert run.lose("a", "") is None


def test_impossible_rules_are_refused() -> None:
    for least, most in [(0, 1), (3, 2)]:
        with pytest.raises(PlanError, match=f"cannot have {least} to {most} members"):
            Generations(MemberRules(least=least, most=most))


@pytest.mark.parametrize(
    "event",
    [
        Began(2),
        Generation(2, 5, ("a", "b"), 7, False, ("b",), "a:1"),
        EndAnnounced(2, 5, True, "lost b"),
        Lost(2, "b", "exit code 1"),
        Checkpointed(2, 30),
    ],
)
def test_an_event_comes_back_from_its_record(event: Event) -> None:
    assert from_body(event.kind, json.loads(json.dumps(to_body(event)))) == event


@pytest.mark.parametrize(("kind", "body"), [("nothing", {}), ("lost", {}), ("began", {"attempt": 1, "more": 2})])
def test_a_record_of_another_version_is_named(kind: str, body: dict[str, int]) -> None:
    with pytest.raises(PlanError, match=f"the journal has a record '{kind}' with .* which cannot be read"):
        from_body(kind, body)


def complain(run: Generations, now: float, **cut_off: str) -> None:
    """Each, by its name, of those whose names are a letter of the text; all live."""
    assert run.current is not None
    for name in run.members:
        run.beat(name, now)
        run.complain(name, run.current.number, list(cut_off.get(name, "")), now)


def test_of_two_that_do_not_reach_each_other_the_one_with_the_higher_rank_goes() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0, b="a")
    assert not settle(run, 20.9), "others may have something to say, too"

    lost, end = settle(run, 21.1)

    assert lost == Lost(1, "b", "it and a do not reach each other")
    assert isinstance(end, EndAnnounced)
    assert end.at_once
    stop(run, 21.2, a=5, c=5)
    assert [made.members for made in settle(run, 21.2) if isinstance(made, Generation)] == [("a", "c")]


def test_who_reaches_nobody_goes_whatever_its_rank() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0, a="bc", b="a")

    assert [event.member for event in settle(run, 21.1) if isinstance(event, Lost)] == ["a"]


def test_halves_that_do_not_reach_each_other_lose_one_of_them_at_once() -> None:
    run = begin("a", "b", "c", "d", rules=MemberRules(least=2, most=4, gather_seconds=10.0))
    complain(run, 20.0, a="cd", b="cd", c="ab", d="ab")

    assert [event.member for event in settle(run, 21.1) if isinstance(event, Lost)] == ["d", "c"]
    assert run.members == ("a", "b")


def test_who_is_silent_goes_before_the_one_that_complains_of_it() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0)
    beat(run, 22.5, "b", "c")
    run.complain("b", 1, ["a"], 22.5)
    beat(run, 23.4, "b", "c")

    assert [event.member for event in settle(run, 23.6) if isinstance(event, Lost)] == ["a"]


def test_a_complaint_that_ends_costs_nobody_anything() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0, b="a")
    complain(run, 20.5)
    assert not settle(run, 21.5)

    complain(run, 21.5, b="a")
    assert not settle(run, 22.4), "a new complaint counts from its own beginning"
    assert settle(run, 22.6)


def test_complaints_of_an_earlier_generation_or_of_strangers_count_for_nothing() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0)
    run.complain("b", 0, ["a"], 20.0)
    run.complain("c", 1, ["x", "c"], 20.0)
    run.complain("x", 1, ["a"], 20.0)

    assert not settle(run, 21.5)


def test_a_later_attempt_begins_without_complaints() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0, b="a")
    run.apply(Began(2), 20.5)
    beat(run, 20.6, "a", "b", "c")

    assert not settle(run, 22.0)


def test_who_has_stopped_complains_of_nobody_in_the_next_generation() -> None:
    run = begin("a", "b", "c")
    complain(run, 20.0, b="a")
    stop(run, 20.5, a=5, b=5, c=5)
    assert [type(event) for event in settle(run, 20.5)] == [EndAnnounced, Generation]

    beat(run, 21.6, "a", "b", "c")
    assert not settle(run, 21.6)
