"""How long things run, as those that ended tell it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ENOUGH = 10
"""So many must have ended before anything is said of the next."""
MOST_OF_A_KIND = 1_000
SHORTEST_SECONDS = 0.001
LONGEST_TAIL = 1_000.0
"""Times the longest that was seen: no draw is longer."""

Numbers = NDArray[np.float64]


class RunTimes:
    """The run times of those that ended, and how long those have run that go on, in seconds."""

    def __init__(self, ended: Iterable[float], going: Iterable[float] = ()) -> None:
        self._ended = _sorted(ended)
        both = np.sort(np.concatenate((self._ended, _sorted(going))))
        # How many ran at least as long as each of the ended ones, and of equal ones fewer and fewer.
        ties = np.arange(len(self._ended)) - np.searchsorted(self._ended, self._ended, "left")
        at_risk = len(both) - np.searchsorted(both, self._ended, "left") - ties
        self._survival: Numbers = np.concatenate(([0.0], np.cumsum(np.log1p(-1.0 / (at_risk + 1.0)))))

    def __len__(self) -> int:
        return len(self._ended)

    def left(self, elapsed: float, chances: Numbers) -> Numbers:
        """Seconds that a run has left which has gone on for `elapsed`, one for each chance between 0 and 1.

        Of n runs that lasted longer, the next one falls with the same probability into each of the n + 1 gaps that
        their ends make, and anywhere within it. (Those that go on count until where they are: without them, long runs
        would seem as rare as their ends are.) Beyond the longest, one that has lasted for t lasts for twice as long
        with probability one half: long runs have heavy tails, and nothing better is known.
        """
        first = int(np.searchsorted(self._ended, elapsed, "right"))
        edges = np.concatenate(([max(elapsed, SHORTEST_SECONDS)], self._ended[first:]))
        ended = -np.expm1(self._survival[first:] - self._survival[first])
        beyond = np.maximum((1.0 - chances) / (1.0 - ended[-1]), 1.0 / LONGEST_TAIL)
        found: Numbers = np.where(chances < ended[-1], np.interp(chances, ended, edges), edges[-1] / beyond) - elapsed
        return np.maximum(found, 0.0)


def _sorted(seconds: Iterable[float]) -> Numbers:
    found: Numbers = np.sort(np.maximum(np.fromiter(seconds, float), SHORTEST_SECONDS))
    return found


@dataclass(frozen=True)
class Lasted:
    """How many seconds something ran or has run so far, and what it is; empty for what is not known."""

    seconds: float
    queue: str
    program: str = ""
    owner: str = ""
    name: str = ""
    has_ended: bool = True


class Experience:
    """What is remembered of those that ended, and known of those that go on."""

    def __init__(self, lasted: Sequence[Lasted]) -> None:
        """`lasted` begins with the newest: of each kind, the first thousand count."""
        kinds: dict[Hashable, list[Lasted]] = defaultdict(list)
        for one in lasted:
            for kind in _kinds(one.queue, one.program, one.owner, one.name):
                if len(kinds[kind]) < MOST_OF_A_KIND:
                    kinds[kind].append(one)
        made = {kind: _run_times(found) for kind, found in kinds.items()}
        self._known = {kind: found for kind, found in made.items() if len(found) >= ENOUGH}

    def of(self, queue: str, program: str = "", owner: str = "", name: str = "") -> RunTimes | None:
        """The run times of what is most alike among those of which enough ended; None when too few ended at all.

        That is the same name of the same owner, else the same program, else the same queue, else everything.
        """
        return next((self._known[kind] for kind in _kinds(queue, program, owner, name) if kind in self._known), None)


def _run_times(found: Sequence[Lasted]) -> RunTimes:
    ended = (one.seconds for one in found if one.has_ended)
    return RunTimes(ended, (one.seconds for one in found if not one.has_ended))


def _kinds(queue: str, program: str, owner: str, name: str) -> list[Hashable]:
    """The kinds that something belongs to, the narrowest first."""
    named: list[Hashable] = [("name", owner, name)] if name else []
    if program:
        named.append(("program", program))
    return [*named, ("queue", queue), "all"]
