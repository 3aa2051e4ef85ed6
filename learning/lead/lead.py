"""Who leads a run, as a member sees it: tells which generation it is in, and hears how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from learning.lead.calls import Done
from locality.training.generation_events import Generation


@dataclass(frozen=True)
class Told:
    """A generation to compute in; `measures` judge members that made no step yet, in any unit.

    `nodes` are where members run, as far as they know.
    """

    generation: Generation
    measures: Mapping[str, float] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)


class Lead(Protocol):
    """Any method raises LearningError when the run is over for this member, whose name is `process`."""

    process: str
    host: str

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told | None:
        """Wait for a generation later than number `after` that has this member, whose state has so many steps.

        `store` offers one at each call. None when there is none any more, as the run has ended.
        """

    def finished(self) -> int:
        """Steps of the run once it has ended, 0 before."""

    def is_over(self, number: int) -> bool:
        """Whether generation `number` ends at once."""

    def is_ending(self, number: int) -> bool:
        """Whether generation `number` ends after a step that its rank 0 chooses."""

    def is_stopping(self) -> bool:
        """Whether the run shall end after the step that is computed."""

    def tell(self, done: Done, checkpoint: int) -> None:
        """How far this member is, and after how many steps its newest checkpoint is; at no cost.

        What is told before the first generation is known when that is made.
        """

    def complain(self, number: int, members: Sequence[str]) -> None:
        """These of generation `number` do not answer this member; nobody when all do again."""

    def confirmed(self) -> int:
        """Steps of the newest checkpoint that a later attempt at the run would know of."""

    def close(self, why: str | None) -> None:
        """The member leaves: its work is done, or what went wrong."""


class Alone:
    """Nobody leads: one process does all, in one generation."""

    process = "alone"
    host = "127.0.0.1"

    def __init__(self) -> None:
        self._checkpoint = 0

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told:  # noqa: ARG002
        """The only one."""
        return Told(Generation(1, after + 1, (self.process,), max(steps, 0), steps < 0, (), ""))

    def is_over(self, number: int) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def is_ending(self, number: int) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def finished(self) -> int:
        """Only its member knows."""
        return 0

    def is_stopping(self) -> bool:
        """Nobody could ask for it."""
        return False

    def tell(self, done: Done, checkpoint: int) -> None:  # noqa: ARG002
        """Nobody else hears it."""
        self._checkpoint = max(self._checkpoint, checkpoint)

    def complain(self, number: int, members: Sequence[str]) -> None:
        """There are no others."""

    def confirmed(self) -> int:
        """The newest one: there is no journal that would have to know it."""
        return self._checkpoint

    def close(self, why: str | None) -> None:
        """Nobody hears it."""
