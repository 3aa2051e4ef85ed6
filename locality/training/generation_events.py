"""What happens to the generations of a run, as records that a journal keeps.

An application master writes each event before it acts on it. A later attempt reads all of them, in their order, and
then knows what the one before had decided. Every event names the attempt that decided it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from locality.types import PlanError


@dataclass(frozen=True, slots=True)
class Began:
    """A new attempt takes over from all before it."""

    kind: ClassVar[str] = "began"
    attempt: int


@dataclass(frozen=True, slots=True)
class Generation:
    """The members that compute together, from `first_step` of the run on, until the end of the generation is announced.

    The rank of a member is its place in `members`. Rank 0 has the state that `first_step` begins with: its own or, with
    `from_checkpoint`, that of the last checkpoint, which before the first one is the beginning. Those `behind` get the
    state from it. `store` is the address at which the members find each other.
    """

    kind: ClassVar[str] = "generation"
    attempt: int
    number: int
    members: tuple[str, ...]
    first_step: int
    from_checkpoint: bool
    behind: tuple[str, ...]
    store: str


@dataclass(frozen=True, slots=True)
class EndAnnounced:
    """Generation `number` shall end: `at_once`, or after a step that its rank 0 chooses. `reason` is for people."""

    kind: ClassVar[str] = "end"
    attempt: int
    number: int
    at_once: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A process takes part no more, even if it should turn up again."""

    kind: ClassVar[str] = "lost"
    attempt: int
    member: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The state after the first `steps` steps of the run is stored."""

    kind: ClassVar[str] = "checkpoint"
    attempt: int
    steps: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The run ends after so many `steps`, all that it has unless it `is_stopped`: no generation follows."""

    kind: ClassVar[str] = "finished"
    attempt: int
    steps: int
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The run shall end after the step that its members compute."""

    kind: ClassVar[str] = "stop"
    attempt: int


Event = Began | Generation | EndAnnounced | Lost | Checkpointed | Finished | StopAsked
KINDS: Mapping[str, Callable[..., Event]] = {
    event.kind: event for event in (Began, Generation, EndAnnounced, Lost, Checkpointed, Finished, StopAsked)
}


def to_body(event: Event) -> dict[str, Any]:
    """The event as what JSON knows; its kind goes beside it.

    >>> to_body(Lost(2, "worker-3", "silent for 5 s"))
    {'attempt': 2, 'member': 'worker-3', 'reason': 'silent for 5 s'}
    """
    named = ((part.name, getattr(event, part.name)) for part in fields(event))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in named}


def from_body(kind: str, body: Mapping[str, Any]) -> Event:
    """The event of a record; PlanError if this version knows no such event."""
    try:
        return KINDS[kind](**{name: _freeze(value) for name, value in body.items()})
    except (KeyError, TypeError):
        raise PlanError(
            f"the journal has a record {kind!r} with {', '.join(sorted(body)) or 'nothing'}, which cannot be read",
            remedy="continue this run with the version that began it",
        ) from None


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
