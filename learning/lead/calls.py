"""What a member and who leads its run say to each other, as JSON. Standard library only.

A run of hundreds of members makes hundreds of calls a second: so a field with its usual value is left out of JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from locality.training.generation_events import Generation, to_body
from locality.training.regrouping import NO_STATE

MEMBER = "/member"
"""The call: POST with a `Say`, answered with an `Answer`. 410 when the member takes part no more."""
LONGEST_WHY = 500
"""Characters; the rest is cut off."""
MOST_CUT_OFF = 16
"""Members that one complains of."""
MOST = 1 << 53
"""The largest number."""


class Doing(StrEnum):
    """What a member does now."""

    WAITS = "waits"
    COMPUTES = "computes"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Share:
    """What a member computes of each batch: `samples` of `batch`, from step `since` on; before any shares `batch` is 0.

    `is_guess` as long as a member made no step; `gain` by how much that makes a step shorter, as a ratio, if known.
    A step takes it about `fixed_seconds`, and `sample_seconds` for each sample; 0 before it has made one.
    """

    samples: int = 0
    batch: int = 0
    since: int = 0
    is_guess: bool = False
    gain: float | None = None
    fixed_seconds: float = 0.0
    sample_seconds: float = 0.0

    @classmethod
    def from_json(cls, body: Any) -> Share:
        """ValueError when it is something else."""
        return cls(**_read(body, _SHARE))


@dataclass(frozen=True)
class Done:
    """What a member has done, summed up since it began: steps that it applied, its own samples, and where time went.

    The run has `steps_in_all`, `loss` is that of the last step, and `share` that of the next. Of data that knows where
    its samples lie, so many `reads` were of a sample, and `local_reads` of one with a replica on the member's node.
    `longest_step_seconds` is of its newest steps, so that one that was slow once is not waited for long ever after.
    With `is_stopped` the members have agreed to end the run after these steps, although it has more.
    """

    steps: int = 0
    steps_in_all: int = 0
    samples: int = 0
    compute_seconds: float = 0.0
    wait_seconds: float = 0.0
    loss: float | None = None
    longest_step_seconds: float = 0.0
    share: Share = field(default_factory=Share)
    reads: int = 0
    local_reads: int = 0
    is_stopped: bool = False

    @classmethod
    def from_json(cls, body: Any) -> Done:
        """ValueError when it is something else."""
        return cls(**_read(body, _DONE))


@dataclass(frozen=True)
class Say:
    """A member says: it was in generation `number` last, and its state has so many `steps`.

    `store` is where it offers a store while it waits, `why` what went wrong when it has failed. `checkpoint` are the
    steps of the newest state that it has stored. `call` counts the calls of the process, from 1 on, so that one which
    comes late is known; 0 is a call that nobody has counted. `node` is where it runs, empty when it does not know.
    It knows the whole of generation `known`, as `attempt` has told it: 0 when it knows none.
    `cut_off` are members of its generation that do not answer it, some of them where there are many.
    """

    process: str
    doing: Doing
    number: int
    steps: int
    store: str = ""
    why: str = ""
    checkpoint: int = 0
    done: Done = field(default_factory=Done)
    call: int = 0
    node: str = ""
    attempt: int = 0
    known: int = 0
    cut_off: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the body of a call; what is no number for JSON is left out."""
        share = replace(self.done.share, gain=_number(self.done.share.gain))
        done = replace(self.done, loss=_number(self.done.loss), share=share)
        said = _unusual(replace(self, why=self.why[:LONGEST_WHY]), _SILENCE) | {"doing": self.doing}
        return said | {"done": _unusual(done, _NOTHING_DONE) | {"share": _unusual(share, _NO_SHARE)}}

    @classmethod
    def from_json(cls, body: Any) -> Say:
        """ValueError when it is something else."""
        return cls(**_read(body, _SAY, needed=_ALWAYS_SAID))


@dataclass(frozen=True)
class Answer:
    """The newest generation, if there is one, and whether it ends: `is_over` at once, `is_ending` after a step.

    With `is_done` no other follows, as the run has ended after `finished` steps; `is_stopping` says that it shall end
    after a step. `measures` judge members that made no step yet, in any unit.
    `nodes` are where members run, as far as they know.
    `attempt` is the one that answers, and `checkpoint` are the steps of the newest state that its journal has.

    Who knows the newest generation from this attempt gets an answer that `is_same`: without `generation`, `measures`
    and `nodes`, which are as large as the run has members. Whoever else calls gets all three.
    """

    generation: Generation | None = None
    is_over: bool = False
    is_ending: bool = False
    is_done: bool = False
    measures: Mapping[str, float] = field(default_factory=dict)
    attempt: int = 0
    checkpoint: int = 0
    nodes: Mapping[str, str] = field(default_factory=dict)
    finished: int = 0
    is_stopping: bool = False
    is_same: bool = False

    @property
    def age(self) -> tuple[int, int]:
        """Grows from answer to answer: the attempt and the number of the generation. One that `is_same` has none."""
        return self.attempt, self.generation.number if self.generation else 0

    def complete(self, known: Answer) -> Answer:
        """With what it leaves out, as the answer `known` has told it; ValueError where that has not."""
        if not self.is_same:
            return self
        if known.generation is None or known.attempt != self.attempt:
            raise ValueError(f"attempt {self.attempt} leaves out a generation that it has not told")
        return replace(self, generation=known.generation, measures=known.measures, nodes=known.nodes, is_same=False)

    def to_json(self) -> dict[str, Any]:
        """As the body of an answer."""
        told = _unusual(self, _NO_ANSWER) | {"attempt": self.attempt}
        return told | {"generation": to_body(self.generation)} if self.generation else told

    @classmethod
    def from_json(cls, body: Any) -> Answer:
        """ValueError when it is something else."""
        return cls(**_read(body, _ANSWER, needed=("attempt",)))


_NO_SHARE, _NOTHING_DONE, _NO_ANSWER = Share(), Done(), Answer()
_SILENCE = Say("", Doing.WAITS, -1, NO_STATE - 1)
_ALWAYS_SAID = ("process", "doing", "number", "steps")
Kinds = Mapping[str, Callable[[Any], Any]]


def _unusual(told: object, usual: object) -> dict[str, Any]:
    """The fields that have not their usual value."""
    known = vars(usual)
    return {name: value for name, value in vars(told).items() if value != known[name]}


def _read(body: Any, kinds: Kinds, needed: Any = ()) -> dict[str, Any]:
    """The fields of a JSON object; ValueError when one is not of its kind, unknown or missing."""
    if not isinstance(body, dict):
        raise ValueError(f"{body!r} is not an object")
    try:
        found = {name: kinds[name](value) for name, value in body.items()}
    except (KeyError, ValueError, TypeError, OverflowError):
        raise ValueError(_say_what_is_wrong(body, kinds)) from None
    if missing := [name for name in needed if name not in found]:
        raise ValueError(f"{', '.join(missing)} is missing")
    return found


def _say_what_is_wrong(body: dict[str, Any], kinds: Kinds) -> str:
    """Of a body that cannot be read; apart from reading, as a leader reads hundreds a second."""
    if strange := body.keys() - kinds.keys():
        return f"there is no field {', '.join(sorted(strange))}"
    for name, value in body.items():
        try:
            kinds[name](value)
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            return f"{name} cannot be {value!r}: {error}"
    return f"{body!r} cannot be read"


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= MOST:
            raise ValueError(f"it is a whole number from {least} on")
        return value

    return read


def _seconds(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= float(value) <= MOST:
        raise ValueError("it is a number from 0 on")
    return float(value)


def _number(value: Any) -> float | None:
    """Infinity and NaN, which a run that goes wrong may have, become None."""
    if value is not None and type(value) not in (int, float):
        raise ValueError("it is a number")
    return float(value) if value is not None and math.isfinite(value) else None


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("it is a text")
    return value


def _name(value: Any) -> str:
    if not _word(value):
        raise ValueError("it is a text that is not empty")
    return _word(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("it is true or false")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("it is a list")
    return tuple(_name(one) for one in value)


def _few_names(value: Any) -> tuple[str, ...]:
    if len(names := _names(value)) > MOST_CUT_OFF:
        raise ValueError(f"it names {MOST_CUT_OFF} members at most")
    return names


def _measures(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError("it is an object")
    return {name: _seconds(one) for name, one in value.items()}


def _nodes(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("it is an object")
    return {name: _word(one) for name, one in value.items()}


def _generation(value: Any) -> Generation | None:
    if value is None:
        return None
    made = Generation(**_read(value, _GENERATION, needed=_GENERATION))
    if not made.members or not set(made.behind) <= set(made.members):
        raise ValueError("it has no members, or others are behind")
    return made


_SHARE: Kinds = {
    "samples": _whole(0),
    "batch": _whole(0),
    "since": _whole(0),
    "is_guess": _flag,
    "gain": _number,
    "fixed_seconds": _seconds,
    "sample_seconds": _seconds,
}
_DONE: Kinds = {
    "steps": _whole(0),
    "steps_in_all": _whole(0),
    "samples": _whole(0),
    "compute_seconds": _seconds,
    "wait_seconds": _seconds,
    "loss": _number,
    "longest_step_seconds": _seconds,
    "share": Share.from_json,
    "reads": _whole(0),
    "local_reads": _whole(0),
    "is_stopped": _flag,
}
_SAY: Kinds = {
    "process": _name,
    "doing": Doing,
    "number": _whole(0),
    "steps": _whole(NO_STATE),
    "store": _word,
    "why": _word,
    "checkpoint": _whole(0),
    "done": Done.from_json,
    "call": _whole(0),
    "node": _word,
    "attempt": _whole(0),
    "known": _whole(0),
    "cut_off": _few_names,
}
_GENERATION: Kinds = {
    "attempt": _whole(0),
    "number": _whole(1),
    "members": _names,
    "first_step": _whole(0),
    "from_checkpoint": _flag,
    "behind": _names,
    "store": _word,
}
_ANSWER: Kinds = {
    "generation": _generation,
    "is_over": _flag,
    "is_ending": _flag,
    "is_done": _flag,
    "measures": _measures,
    "attempt": _whole(0),
    "checkpoint": _whole(0),
    "nodes": _nodes,
    "finished": _whole(0),
    "is_stopping": _flag,
    "is_same": _flag,
}
