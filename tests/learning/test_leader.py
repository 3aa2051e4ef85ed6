"""Leads runs with a clock of its own: who is lost, when a run is done, and what a later attempt knows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jobs.application.calls import Gone, Refused, Request
from jobs.kinds.train.hearing import MOST_BYTES, RunHearing
from jobs.kinds.train.news import sentence
from learning.lead.calls import LONGEST_WHY, MEMBER, Answer, Doing, Done, Say
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
    run.say("b", done=Done(steps=1, longest_step_seconds=8.0))
    run.stop("a", steps=7)
    number = run.generation.number

    def live_on(seconds: float) -> None:
        for _ in range(round(seconds / 0.2)):
            run.now += 0.2
            run.say("a", Doing.WAITS, number, 7, store="a:1")
            run.say("b")
            run.leader.tick()

    live_on(23.0)
    assert run.lost == []
    with pytest.raises(Unwanted, match="b takes part no more: did not stop within 24 s"):
        live_on(2.0)

    assert run.lost == ["b"]


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


SAID = Say("a", Doing.COMPUTES, 1, 7, "h:1:s", "", 5, replace(ALL, loss=0.5, longest_step_seconds=0.25), 3)


def test_what_is_said_and_answered_survives_json() -> None:
    made = Generation(2, 3, ("a", "b"), 7, False, ("b",), "h:1:s")
    answer = Answer(made, True, False, True, {"a": 2.5}, 2, 5)

    assert Say.from_json(json.loads(json.dumps(SAID.to_json()))) == SAID
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer
    assert Answer.from_json(json.loads(json.dumps(Answer().to_json()))) == Answer()
    endless = Say.from_json(json.loads(json.dumps(replace(SAID, done=Done(loss=math.nan)).to_json())))
    assert endless.done.loss is None
    assert len(Say("a", Doing.FAILED, 0, -1, why="x" * 9999).to_json()["why"]) == LONGEST_WHY


WRONG: dict[str, Any] = {
    "no object": [],
    "a text for steps": SAID.to_json() | {"steps": "x"},
    "true for steps": SAID.to_json() | {"steps": True},
    "steps below none": SAID.to_json() | {"steps": -2},
    "no process": SAID.to_json() | {"process": ""},
    "a number for a process": SAID.to_json() | {"process": 7},
    "a negative number": SAID.to_json() | {"number": -1},
    "too large": SAID.to_json() | {"checkpoint": 1 << 60},
    "a broken checkpoint": SAID.to_json() | {"checkpoint": 1.5},
    "unknown": SAID.to_json() | {"doing": "sleeps"},
    "a list for doing": SAID.to_json() | {"doing": []},
    "a store that is none": SAID.to_json() | {"store": None},
    "a field too many": SAID.to_json() | {"more": 1},
    "a field too few": {"process": "a", "doing": "waits", "number": 1},
    "done is none": SAID.to_json() | {"done": None},
    "a text within done": SAID.to_json() | {"done": {"steps": "x"}},
    "no number of seconds": SAID.to_json() | {"done": {"longest_step_seconds": math.nan}},
    "endless seconds": SAID.to_json() | {"done": {"compute_seconds": math.inf}},
    "negative seconds": SAID.to_json() | {"done": {"wait_seconds": -1.0}},
    "a text for a loss": SAID.to_json() | {"done": {"loss": "0.5"}},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_no_member_says_is_refused_and_changes_nothing(body: Any) -> None:
    run = Played("a", "b")
    before = len(run.journal)
    with pytest.raises(ValueError, match=r"."):
        Say.from_json(json.loads(json.dumps(body)))
    with pytest.raises(Refused, match="the body is not what a member says"):
        RunHearing(run.leader).hear(MEMBER, Request("", json.dumps(body).encode()))
    run.go_on(0.4, "a", "b")

    assert len(run.journal) == before


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * MOST_BYTES], ids=["nothing", "no text", "deep"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused, match="the body is not what a member says"):
        RunHearing(Played().leader).hear(MEMBER, Request("", body))


def _made(**more: Any) -> dict[str, Any]:
    return Answer().to_json() | {"generation": to_body(Generation(1, 1, ("a",), 0, True, (), "")) | more}


NO_ANSWERS: dict[str, Any] = {
    "nothing": {},
    "null": None,
    "a list for a generation": Answer().to_json() | {"generation": [1]},
    "a text for the number": _made(number="2"),
    "a text for the members": _made(members="a"),
    "nobody": _made(members=[]),
    "a stranger behind": _made(behind=["b"]),
    "a generation with too little": Answer().to_json() | {"generation": {"number": 1}},
    "a text for a measure": Answer().to_json() | {"measures": {"a": "fast"}},
    "null for a flag": Answer().to_json() | {"is_over": None},
}


@pytest.mark.parametrize("body", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_what_is_no_answer_is_told(body: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        Answer.from_json(json.loads(json.dumps(body)))
