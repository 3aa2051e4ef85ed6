"""Leads runs with a clock of its own: who is lost, when a run is done, and what a later attempt knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jobs.application.calls import Gone, Request
from jobs.kinds.train.hearing import RunHearing
from jobs.kinds.train.news import sentence
from learning.lead.calls import MEMBER, Answer, Doing, Done, Say, Share
from learning.lead.lead import Alone
from learning.lead.leader import Inconsistent, Leader, Unwanted
from locality.training.generation_events import (
    Checkpointed,
    EndAnnounced,
    Event,
    Finished,
    Generation,
    Lost,
    StopAsked,
    from_body,
    to_body,
)
from locality.training.generations import MemberRules, Phase

RULES = MemberRules(
    least=1,
    most=3,
    gather_seconds=2.0,
    silence_seconds=5.0,
    suspect_seconds=0.7,
    stop_seconds=10.0,
    takeover_seconds=20.0,
)
ALL = Done(steps=40, steps_in_all=40)


class Played:
    """A run whose members call five times a second, as long as they do, in a time that only goes on when it shall."""

    def __init__(self, *members: str) -> None:
        self.now = 1000.0
        self.journal: list[Event] = []
        self.on_record: Callable[[Event], None] = lambda event: None
        self.calls = 0
        self.begin()
        for name in members:
            self.say(name, Doing.WAITS, store=f"{name}:1", steps=-1)
        if members:
            self.go_on(3.0, *members)
            assert set(self.generation.members) == set(members)

    def begin(self, attempt: int = 1) -> None:
        """Another attempt, with what stands in the journal."""
        earlier = [from_body(event.kind, json.loads(json.dumps(to_body(event)))) for event in self.journal]
        self.leader = Leader(attempt, RULES, self.record, lambda: self.now, earlier)

    def record(self, event: Event) -> None:
        self.on_record(event)
        self.journal.append(event)

    def say(self, process: str, doing: Doing = Doing.COMPUTES, number: int = 0, steps: int = 0, **more: Any) -> Answer:
        self.calls += 1
        return self.leader.hear(Say(process, doing, number, steps, **{"call": self.calls, **more}))

    def go_on(self, seconds: float, *members: str, **more: Any) -> None:
        """All that call compute."""
        for _ in range(round(seconds / 0.2)):
            self.now += 0.2
            for name in members:
                self.say(name, **more)
            self.leader.tick()

    def stop(self, *members: str, steps: int) -> None:
        for name in members:
            self.say(name, Doing.WAITS, self.generation.number, steps, store=f"{name}:1")

    @property
    def generation(self) -> Generation:
        return [event for event in self.journal if isinstance(event, Generation)][-1]

    @property
    def lost(self) -> list[str]:
        return [event.member for event in self.journal if isinstance(event, Lost)]


def test_a_journal_that_takes_long_loses_nobody() -> None:
    run = Played("a", "b", "c")

    def take_long(event: Event) -> None:
        run.now += 6.0

    run.on_record = take_long
    run.say("c", Doing.FAILED, why="killed")
    run.leader.tick()

    assert run.lost == ["c"]
    run.stop("a", "b", steps=7)
    assert (run.generation.number, run.generation.members) == (2, ("a", "b"))
    run.go_on(1.0, "a", "b")
    assert run.lost == ["c"]


def test_a_journal_that_is_slow_again_and_again_loses_nobody() -> None:
    run = Played("a", "b")

    def take_time(event: Event) -> None:
        run.now += 0.45

    run.on_record = take_time
    for steps in range(1, 20):
        run.say("a", checkpoint=steps)
    run.leader.tick()

    assert run.lost == []


def test_a_journal_that_fails_after_long_loses_nobody() -> None:
    run = Played("a", "b", "c")

    def fail(event: Event) -> None:
        run.now += 6.0
        raise OSError("the journal is away")

    run.on_record = fail
    with pytest.raises(OSError, match="is away"):
        run.say("c", Doing.FAILED, why="killed")
    run.on_record = lambda event: None
    run.go_on(0.6, "a", "b")
    run.say("c", Doing.FAILED, why="killed")

    assert run.lost == ["c"]
    assert run.leader.members()["c"].said == "killed"


def test_a_leader_that_was_stopped_loses_nobody_even_while_a_generation_ends() -> None:
    run = Played("a", "b", "c")
    run.now += 6.0
    run.leader.tick()
    run.stop("a", steps=7)
    assert run.leader.phase is Phase.OVER
    for _ in range(3):
        run.now += 60.0
        run.leader.tick()

    assert run.lost == []
    run.stop("b", "c", steps=7)
    assert run.generation.number == 2


def test_who_is_silent_is_lost_all_the_same() -> None:
    run = Played("a", "b", "c")
    run.go_on(4.8, "a", "b")
    assert run.lost == []
    run.go_on(0.6, "a", "b")

    assert run.lost == ["c"]


def test_only_a_tick_judges_silence_as_others_may_have_called_and_wait() -> None:
    run = Played("a", "b")
    for _ in range(30):
        run.now += 0.2
        run.say("a")
    run.leader.lose("nobody", "never heard of")
    assert run.lost == []
    run.say("b")
    run.leader.tick()
    assert run.lost == []


def test_who_computes_a_long_step_has_time_to_stop() -> None:
    run = Played("a", "b")
    done = Done(steps=1, longest_step_seconds=8.0)
    run.say("b", done=done)
    run.stop("a", steps=7)
    number = run.generation.number

    def live_on(seconds: float) -> None:
        for _ in range(round(seconds / 0.2)):
            run.now += 0.2
            run.say("a", Doing.WAITS, number, 7, store="a:1")
            run.say("b", done=done)
            run.leader.tick()

    live_on(23.0)
    assert run.lost == []
    with pytest.raises(Unwanted, match="b takes part no more: did not stop within 24 s"):
        live_on(2.0)

    assert run.lost == ["b"]


def test_a_step_that_was_long_once_gives_no_time_for_ever() -> None:
    run = Played("a", "b", "c")
    run.say("b", done=Done(steps=1, longest_step_seconds=8.0))
    run.say("c", done=Done(steps=1, longest_step_seconds=8.0))
    run.say("b", done=Done(steps=200, longest_step_seconds=0.1))
    run.say("c", Doing.FAILED, why="killed")
    run.stop("a", steps=200)
    number = run.generation.number

    def live_on(seconds: float) -> None:
        for _ in range(round(seconds / 0.2)):
            run.now += 0.2
            run.say("a", Doing.WAITS, number, 200, store="a:1")
            run.say("b", done=Done(steps=200, longest_step_seconds=0.1))
            run.leader.tick()

    live_on(9.8)
    assert run.lost == ["c"]
    with pytest.raises(Unwanted, match="b takes part no more: did not stop within 10 s"):
        live_on(0.6)


def test_a_run_is_done_when_a_member_has_done_all_and_stays_so() -> None:
    run = Played("a", "b")
    assert run.say("a", done=replace(ALL, steps=39)).is_done is False
    assert run.say("a", Doing.DONE, done=ALL).is_done

    assert run.leader.is_done
    assert run.journal[-1] == Finished(1, 40) and sentence(run.journal[-1]) == "all 40 steps are done"
    run.go_on(60.0)
    run.say("b", Doing.FAILED, why="killed while it left")
    assert run.say("c", Doing.WAITS, steps=-1, store="c:1").is_done
    assert run.leader.is_done
    assert [event for event in run.journal if isinstance(event, Finished | EndAnnounced)] == [Finished(1, 40)]


def test_a_run_that_shall_stop_does_so_when_a_member_says_that_all_have() -> None:
    run = Played("a", "b")
    assert not run.say("a").is_stopping
    run.leader.stop()
    run.leader.stop()
    assert run.say("a").is_stopping and not run.leader.is_done
    run.begin(2)
    assert run.say("a").is_stopping
    answer = run.say("b", Doing.DONE, done=replace(ALL, steps=7, is_stopped=True))

    assert (answer.is_done, answer.finished) == (True, 7)
    assert run.leader.is_stopped and run.journal[-1] == Finished(2, 7, is_stopped=True)
    assert [event for event in run.journal if isinstance(event, StopAsked)] == [StopAsked(1)]
    run.leader.stop()
    run.begin(3)
    assert (run.leader.is_done, run.leader.is_stopped, run.leader.steps) == (True, True, 7)
    assert run.say("c", Doing.WAITS, steps=-1, store="c:1").finished == 7


def test_a_later_attempt_knows_that_the_run_is_done() -> None:
    run = Played("a", "b")
    run.say("a", Doing.DONE, done=ALL)
    run.begin(2)

    assert run.leader.is_done
    assert (run.leader.steps, run.leader.steps_in_all) == (40, 40)
    answer = run.say("b", Doing.WAITS, 1, 40, store="b:1")
    assert (answer.is_done, answer.attempt) == (True, 2)
    run.go_on(60.0)
    assert run.lost == []


def test_a_lost_member_cannot_end_the_run() -> None:
    run = Played("a", "b")
    run.say("b", done=Done(steps=3, steps_in_all=40))
    run.leader.lose("b", "exit code 137")
    with pytest.raises(Unwanted, match="b takes part no more: exit code 137"):
        run.say("b", Doing.DONE, done=ALL)

    assert not run.leader.is_done
    assert (run.leader.members()["b"].doing, run.leader.steps) == (Doing.COMPUTES, 3)


UNDONE = {"too early": replace(ALL, steps=39), "of nothing": Done(), "beyond the end": replace(ALL, steps=41)}


@pytest.mark.parametrize("done", UNDONE.values(), ids=UNDONE)
def test_a_member_that_ends_before_all_is_done_is_lost(done: Done) -> None:
    run = Played("a", "b")
    run.say("a", Doing.DONE, done=done)

    assert not run.leader.is_done
    assert run.lost == ["a"] and not any(isinstance(event, Finished) for event in run.journal)
    assert run.leader.members()["a"].said == "it has ended before all steps were done"


def test_who_is_no_member_of_the_current_generation_cannot_end_the_run() -> None:
    run = Played("a", "b", "c")
    run.say("d", Doing.WAITS, steps=-1, store="d:1")
    run.say("d", Doing.DONE, done=ALL)

    assert not run.leader.is_done


def test_a_call_that_comes_late_does_not_undo_a_later_one() -> None:
    run = Played("a", "b")
    run.say("a", done=Done(steps=9), call=1000)
    run.say("a", done=Done(steps=8), call=999)
    assert run.leader.members()["a"].done.steps == 9
    run.say("a", Doing.WAITS, 1, 9, call=998)
    assert run.leader.phase is Phase.RUNNING

    run.say("a", Doing.DONE, done=ALL, call=1001)
    run.say("a", done=Done(steps=9), call=1002)
    assert run.leader.members()["a"].doing is Doing.DONE


def test_who_has_failed_says_nothing_more() -> None:
    run = Played("a", "b")
    run.say("b", Doing.FAILED, why="ValueError: no")
    run.say("b", Doing.FAILED, why="the program ended with exit status 1", call=0)
    run.say("never-heard", Doing.FAILED, why="it did not start", call=0)

    assert run.leader.members()["b"].said == "ValueError: no"
    for name, why in [("b", "ValueError: no"), ("never-heard", "it did not start")]:
        with pytest.raises(Unwanted, match=f"{name} takes part no more: {why}"):
            run.say(name, Doing.WAITS, 1, 3)


@pytest.mark.parametrize("doing", [Doing.DONE, Doing.FAILED])
def test_a_last_word_that_could_not_be_recorded_counts_when_it_is_said_again(doing: Doing) -> None:
    run = Played("a", "b")

    def fail(event: Event) -> None:
        raise OSError("the journal is away")

    run.on_record = fail
    with pytest.raises(OSError, match="is away"):
        run.say("a", doing, done=ALL)
    assert not run.leader.is_done
    run.on_record = lambda event: None
    run.say("a", doing, done=ALL)

    assert (run.leader.is_done, run.lost) == ((True, []) if doing is Doing.DONE else (False, ["a"]))


def test_what_the_leader_cannot_do_is_no_fault_of_who_calls() -> None:
    run = Played("a", "b")
    run.leader.lose("b", "exit code 137")

    def interfere(event: Event) -> None:
        if isinstance(event, Generation):
            run.leader.lose("a", "lost while it was recorded")

    run.on_record = interfere
    say = Say("a", Doing.WAITS, 1, 7, "a:1", call=run.calls + 1)
    with pytest.raises(Inconsistent, match="generation 2 cannot have a: lost before"):
        RunHearing(run.leader).hear(MEMBER, Request("", json.dumps(say.to_json()).encode()))
    with pytest.raises(Gone, match="a takes part no more: lost while it was recorded"):
        RunHearing(run.leader).hear(MEMBER, Request("", json.dumps(replace(say, call=999).to_json()).encode()))


def test_a_connection_that_ends_when_its_process_has_another_is_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Played("a", "b")
    hearing, old, new = RunHearing(run.leader), object(), object()

    def call(connection: object) -> None:
        run.calls += 1
        body = json.dumps(Say("b", Doing.COMPUTES, 1, 0, call=run.calls).to_json()).encode()
        hearing.hear(MEMBER, Request("", body, connection))

    call(old)
    hang_up = run.leader.hang_up

    def come_back_first(*told: Any) -> None:
        call(new)  # between the look at who called by the connection, and what follows from it
        hang_up(*told)

    with monkeypatch.context() as patched:
        patched.setattr(run.leader, "hang_up", come_back_first)
        hearing.hang_up(old)
    run.go_on(0.8, "a")
    assert run.lost == []
    hearing.hang_up(new)
    run.go_on(0.8, "a")

    assert run.lost == ["b"]


def test_three_generations_without_a_step_are_hopeless() -> None:
    run = Played("a", "b")
    run.go_on(0.4, "a", "b", done=Done(steps=7, steps_in_all=40))
    for _ in range(3):
        assert run.leader.hopeless == ""
        run.stop("a", "b", steps=7)
    assert run.leader.hopeless == ""
    run.stop("a", "b", steps=7)

    assert run.leader.hopeless == "generations 2 to 4 did not get beyond step 7; the members of the next are a, b"
    run.begin(2)
    assert run.leader.hopeless
    run.stop("a", "b", steps=7)
    run.stop("a", "b", steps=8)
    assert run.leader.hopeless == ""


def test_a_later_attempt_knows_how_far_the_run_is() -> None:
    run = Played("a", "b")
    assert (run.leader.steps, run.leader.steps_in_all) == (0, 0)
    run.say("a", done=Done(steps=12, steps_in_all=40), checkpoint=10)
    assert (run.leader.steps, run.leader.steps_in_all) == (12, 40)
    run.begin(2)
    assert run.leader.steps == 10
    run.begin(3)
    run.stop("a", "b", steps=13)
    run.begin(4)
    assert run.leader.steps == 13


def test_an_answer_tells_who_leads_and_the_checkpoint_that_is_recorded() -> None:
    run = Played("a", "b")
    run.begin(2)
    answer = run.say("a", checkpoint=20)

    assert (answer.attempt, answer.checkpoint) == (2, 20)
    assert run.journal[-1] == Checkpointed(2, 20)
    assert run.say("b", checkpoint=10).checkpoint == 20


def test_who_knows_the_generation_is_told_the_rest_and_everybody_else_all() -> None:
    run = Played("a", "b", "c")
    run.leader.judge({"a": 2.0})
    whole = run.say("a", Doing.WAITS, 0, -1, node="n1")
    assert (whole.generation, whole.measures, whole.is_same) == (run.generation, {"a": 2.0}, False)
    assert whole.nodes == {"a": "n1", "b": "", "c": ""}
    assert run.say("a", Doing.WAITS, 0, -1) == whole, "an answer may get lost"

    known = run.say("a", attempt=1, known=1)
    assert (known.generation, known.is_same, dict(known.measures), dict(known.nodes)) == (None, True, {}, {})
    assert known.complete(whole) == whole
    assert run.say("b", attempt=0, known=1).generation == run.generation
    assert run.say("b", attempt=1, known=0).generation == run.generation


def test_who_knows_an_earlier_generation_is_told_the_next_and_what_changes_is_told_to_all() -> None:
    run = Played("a", "b")
    assert not run.say("a", attempt=1, known=1).is_over
    run.stop("a", steps=7)
    over = run.say("b", attempt=1, known=1)
    assert (over.is_same, over.is_over) == (True, True)
    run.stop("b", steps=7)

    later = run.say("b", attempt=1, known=1)
    assert (later.generation, later.is_same, later.is_over) == (run.generation, False, False)
    assert run.generation.number == 2
    assert run.say("b", attempt=1, known=2, checkpoint=9).checkpoint == 9


def test_a_later_attempt_tells_all_members_the_whole() -> None:
    run = Played("a", "b")
    assert run.say("a", attempt=1, known=1).is_same
    run.begin(2)

    answer = run.say("a", attempt=1, known=1)
    assert (answer.attempt, answer.generation) == (2, run.generation)
    assert run.say("a", attempt=2, known=1).is_same
    assert run.say("b", attempt=1, known=1).generation == run.generation


def test_the_answer_to_who_knows_does_not_grow_with_the_run() -> None:
    run = Played("a", "b", "c")
    content = json.dumps(run.say("a", attempt=1, known=1, checkpoint=1000).to_json())

    assert content == '{"attempt": 1, "checkpoint": 1000, "is_same": true}'


def test_nobody_is_told_a_generation_before_there_is_one() -> None:
    run = Played()
    answer = run.say("a", Doing.WAITS, steps=-1, store="a:1")

    assert (answer.generation, answer.is_same) == (None, False)


def test_a_new_process_tells_of_its_checkpoint_before_a_generation_is_made() -> None:
    run = Played()
    for name in "abc":
        run.say(name, Doing.WAITS, steps=-1, store=f"{name}:1", checkpoint=30)

    assert (run.generation.first_step, run.generation.from_checkpoint) == (30, True)


def test_who_is_alone_confirms_its_own_checkpoint() -> None:
    alone = Alone()
    assert alone.confirmed() == 0
    alone.tell(Done(steps=9), 8)
    assert alone.confirmed() == 8


def test_of_two_that_do_not_reach_each_other_one_takes_part_no_more_and_its_end_is_no_failure() -> None:
    run = Played("a", "b", "c")
    one, other, _ = run.generation.members
    for _ in range(8):
        run.now += 0.2
        for name in run.generation.members:
            cut_off = (one,) if name == other else ()
            if name not in run.lost:
                run.say(name, number=1, cut_off=cut_off)
        run.leader.tick()

    assert run.lost == [other]
    with pytest.raises(Unwanted, match=f"it and {one} do not reach each other"):
        run.say(other, number=1)
    run.say(other, Doing.FAILED, why="it was told so")
    assert run.leader.members()[other].doing is Doing.COMPUTES
    left = [name for name in "abc" if name != other]
    run.stop(*left, steps=7)
    assert (run.generation.number, sorted(run.generation.members)) == (2, left)


def test_a_process_joins_members_that_compute_when_it_pays() -> None:
    """Two share a step of a second that has much to do still, and then little."""
    share = Share(32, 64, sample_seconds=1 / 64)
    for of, expected in ((40, ("a", "b", "c")), (4, ("a", "b"))):
        run = Played("a", "b")
        run.say("c", Doing.WAITS, steps=-1, store="c:1")
        for steps in (0, 1, 2):
            for name in ("a", "b"):
                run.say(name, done=Done(steps, of, share=share))
            run.leader.tick()
        if run.leader.phase is Phase.ENDING:
            run.stop("a", "b", steps=3)

        assert run.generation.members == expected


def test_who_waits_when_a_member_is_lost_takes_its_place_at_once() -> None:
    run = Played("a", "b")
    run.say("c", Doing.WAITS, steps=-1, store="c:1")
    run.go_on(2.0, "a", "b", done=Done(1, 40))
    assert run.generation.number == 1
    run.say("b", Doing.FAILED, why="killed")
    run.stop("a", steps=1)

    assert run.generation.members == ("a", "c")
