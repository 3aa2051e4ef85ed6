"""What members and who leads their run say to each other, as JSON: all of it comes over, and nothing else is taken."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.application.calls import Refused, Request
from jobs.kinds.train.hearing import MOST_BYTES, RunHearing
from jobs.kinds.train.said import read_said
from learning.lead.calls import LONGEST_WHY, MEMBER, MOST, MOST_CUT_OFF, Answer, Doing, Done, Say, Share
from learning.lead.leader import Leader
from locality.training.generation_events import Event, Generation, to_body
from locality.training.generations import MemberRules

SHARE = Share(3, 8, 2, gain=1.5)
SAID = Say("a", Doing.COMPUTES, 1, 7, "h:1:s", "", 5, Done(40, 40, loss=0.5, longest_step_seconds=0.25, share=SHARE), 3)
CUT_OFF = replace(SAID, cut_off=tuple(f"m{number}" for number in range(MOST_CUT_OFF)))


def test_what_is_said_and_answered_survives_json() -> None:
    made = Generation(2, 3, ("a", "b"), 7, False, ("b",), "h:1:s")
    answer = Answer(made, True, False, True, {"a": 2.5}, 2, 5)

    assert Say.from_json(json.loads(json.dumps(SAID.to_json()))) == SAID
    assert Say.from_json(json.loads(json.dumps(CUT_OFF.to_json()))) == CUT_OFF
    assert read_said(json.dumps(CUT_OFF.to_json()).encode()) == CUT_OFF
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer
    assert Answer.from_json(json.loads(json.dumps(Answer().to_json()))) == Answer()
    endless = Say.from_json(json.loads(json.dumps(replace(SAID, done=Done(loss=math.nan)).to_json())))
    assert endless.done.loss is None
    assert len(Say("a", Doing.FAILED, 0, -1, why="x" * 9999).to_json()["why"]) == LONGEST_WHY


def _lead(journal: list[Event]) -> Leader:
    """Of a run with two members."""
    leader = Leader(1, MemberRules(most=2), journal.append, lambda: 0.0)
    for name in "ab":
        leader.hear(Say(name, Doing.WAITS, 0, -1, f"{name}:1"))
    assert isinstance(journal[-1], Generation)
    return leader


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
    "a text for those who are cut off": SAID.to_json() | {"cut_off": "b"},
    "a name of nothing": SAID.to_json() | {"cut_off": [""]},
    "too many names": SAID.to_json() | {"cut_off": ["b"] * (MOST_CUT_OFF + 1)},
    "a text for a loss": SAID.to_json() | {"done": {"loss": "0.5"}},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_no_member_says_is_refused_and_changes_nothing(body: Any) -> None:
    journal: list[Event] = []
    leader = _lead(journal)
    before = len(journal)
    with pytest.raises(ValueError, match=r"."):
        Say.from_json(json.loads(json.dumps(body)))
    with pytest.raises(Refused, match="the body is not what a member says"):
        RunHearing(leader).hear(MEMBER, Request("", json.dumps(body).encode()))
    leader.tick()

    assert len(journal) == before


FIELDS = st.sampled_from([*vars(SAID), *vars(Done()), *vars(Share()), "more"])
VALUES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "waits", MOST, MOST + 1, [], {}, ["b"], [""], ["b"] * (MOST_CUT_OFF + 1)])
)  # fmt: skip


@st.composite
def nearly_said(draw: st.DrawFn) -> dict[str, Any]:
    """What a member says, with a few fields left out or of another value."""
    body = SAID.to_json()
    place = draw(st.sampled_from([body, body["done"], body["done"]["share"]]))
    for name in draw(st.lists(FIELDS, max_size=2)):
        place.pop(name, None)
    place.update(draw(st.dictionaries(FIELDS, VALUES, max_size=2)))
    return body


def _read(read: Callable[[Any], Say], body: Any) -> Say | None:
    try:
        return read(body)
    except ValueError:
        return None


@given(nearly_said())
@example(SAID.to_json() | {"done": {"loss": MOST + 1}})  # which no float is
@example(SAID.to_json() | {"done": {"compute_seconds": MOST + 1}})
def test_what_is_read_sooner_is_read_alike(body: dict[str, Any]) -> None:
    assert _read(read_said, json.dumps(body).encode()) == _read(Say.from_json, body)


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * MOST_BYTES], ids=["nothing", "no text", "deep"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused, match="the body is not what a member says"):
        RunHearing(_lead([])).hear(MEMBER, Request("", body))


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
