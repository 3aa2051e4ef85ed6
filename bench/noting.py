"""What a bench in pieces finds, noted as it goes: nothing that was measured is lost, whatever fails later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bench.faults.trials import FAILURES
from bench.info.errors import BenchError
from bench.telling import say

MOST_FAILED = 3
"""So often may measuring fail before a piece is given up."""

Found = dict[str, list[float]]
"""Readings by the key of a figure."""


@dataclass(frozen=True)
class Notes:
    """Of one piece: what was `found`, and what has `failed`, a sentence each."""

    found: Found = field(default_factory=dict, kw_only=True)
    failed: list[str] = field(default_factory=list, kw_only=True)

    def measure(self, title: str, once: Callable[[], Mapping[str, float]], mend: Callable[[], object]) -> None:
        """Note all that is told once, or, when that fails, why; then all is mended, so that the next can begin.

        BenchError when it has failed too often.
        """
        try:
            told = once()
        except FAILURES as error:
            self.note_failure(error, title)
            if len(self.failed) >= MOST_FAILED:
                raise BenchError(f"given up after {MOST_FAILED} failures") from error
            mend()
            return
        say(f"{title}: " + ", ".join(f"{key} {value:.2f}" for key, value in told.items()))
        for key, value in told.items():
            self.found.setdefault(key, []).append(value)

    def note_failure(self, error: Exception, *where: str) -> None:
        """Tell and keep why something was not measured."""
        self.failed.append(": ".join([*where, type(error).__name__, str(error)]))
        say(f"not measured: {self.failed[-1]}")


Noting = TypeVar("Noting", bound=Notes)


def measure_pieces(
    chosen: Sequence[str], pieces: Mapping[str, Callable[[Noting], None]], make: Callable[[str], Noting]
) -> tuple[Found, dict[str, str]]:
    """All readings of these pieces, one piece after the other, and why others are missing, by piece.

    Each writes its notes into what `make` makes for it. Ctrl-C and SIGTERM end the piece, and leave out those that come
    after it.
    """
    found: Found = {}
    failed: dict[str, str] = {}
    waiting = deque(chosen)
    while waiting:
        name = waiting.popleft()
        notes = make(name)
        say(name)
        try:
            pieces[name](notes)
        except FAILURES as error:
            notes.note_failure(error)
        except (KeyboardInterrupt, SystemExit):
            notes.failed.append("it was ended before all of it was measured")
            waiting.clear()
        found |= notes.found
        if notes.failed:
            failed[name] = "; ".join(notes.failed)
    return found, failed
