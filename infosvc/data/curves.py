"""The last hour of every number as a curve: in memory only, a few bytes a step, as much as the limit allows.

A curve has one number for each step of 30 s, the last that was measured in it. A step without any holds no number.
"""

from __future__ import annotations

import math
import threading
from array import array
from typing import NamedTuple

from infosvc.settings import Clock
from infosvc.state.current_values import STEP, Cell, CurrentValues
from infosvc.state.transaction import Commit
from infosvc.state.value import Value

STEPS = 120  # so many are an hour
LONGEST_NUMBER = 64  # characters; a longer text is not tried, because Python copies it to say that it is no number

_NOTHING = math.nan
_EMPTY = array("f", [_NOTHING]) * STEPS

Numbers = tuple[float | None, ...]
"""One for each step, oldest first; None where no number came."""


class LastHour(NamedTuple):
    """Some curves of one node by data name: `since` is when their first step began, in Unix seconds."""

    since: float
    curves: dict[str, Numbers]
    is_full: bool


class HourOfNodes(NamedTuple):
    """The curves of one name by node: a number for each step, oldest first, and NaN where none came."""

    since: float
    curves: dict[str, array[float]]
    is_full: bool


class Curves:
    """Hears of every commit; any thread may read. At most `most` numbers have a curve, the first that came.

    A number is put into its curve when the next one replaces it in a later step; until then it is read where it is
    current. So what comes several times a step costs a commit nothing.
    """

    def __init__(self, clock: Clock, most: int, current_values: CurrentValues) -> None:
        self.most = most
        self._clock = clock
        self._current_values = current_values
        self._lock = threading.Lock()
        self._nodes: dict[str, dict[str, _Curve]] = {}  # by node, because a page asks for all of one
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether numbers that are new have no curve."""
        return self._count >= self.most

    def hear(self, commit: Commit) -> None:
        """Called after a commit; what was forgotten loses its curve."""
        # Monotonic, so that a clock that is set does not move the curves.
        now = _step(self._clock.monotonic())
        with self._lock:
            for cell, value in commit.stepped:
                if value is None:
                    self._forget(*cell)
                else:
                    self._take(cell, value, now)

    def last_hour(self, node_name: str, data_name: str | None = None) -> LastHour:
        """The curves of a node by data name, or that of one name."""
        now, since = self._now()
        with self._lock:
            curves = self._nodes.get(node_name, {})
            names = sorted(curves) if data_name is None else [name for name in (data_name,) if name in curves]
            copies = [(name, self._copy(curves[name], (name, node_name), now)) for name in names]
        return LastHour(since, {name: tuple(map(plain, numbers)) for name, numbers in copies}, self.is_full)

    def hour_of_nodes(self, data_name: str) -> HourOfNodes:
        """The curves of a name on all nodes."""
        now, since = self._now()
        with self._lock:
            copies = {
                node: self._copy(curve, (data_name, node), now)
                for node, curves in self._nodes.items()
                if (curve := curves.get(data_name))
            }
        return HourOfNodes(since, copies, self.is_full)

    def _now(self) -> tuple[int, float]:
        """The step that is now, and when the first of the hour began, in Unix seconds."""
        monotonic, wall = self._clock.monotonic(), self._clock.wall()
        now = _step(monotonic)
        return now, round(wall - monotonic + (now - STEPS + 1) * STEP, 3)

    def _copy(self, curve: _Curve, cell: Cell, now: int) -> array[float]:
        """What a curve holds of the hour up to the step `now`, the current number too."""
        if value := self._current_values.find(*cell):
            self._take(cell, value, now)
        return curve.hour(now)

    def _take(self, cell: Cell, value: Value, now: int) -> None:
        if value.text is None or value.measured is None or len(value.text) > LONGEST_NUMBER:
            return
        data_name, node_name = cell
        step = min(_step(value.measured), now)
        try:
            number = float(value.text)
            curve = self._nodes[node_name][data_name]
        except ValueError:
            return
        except KeyError:
            if self.is_full or not math.isfinite(number) or step <= now - STEPS:
                return
            curve = self._nodes.setdefault(node_name, {})[data_name] = _Curve(now)
            self._count += 1
        if step == curve.newest:  # as nearly always
            curve.numbers[step % STEPS] = number
        elif step > now - STEPS:
            curve.put(step, number, now)

    def _forget(self, data_name: str, node_name: str) -> None:
        curves = self._nodes.get(node_name, {})
        if curves.pop(data_name, None) is None:
            return
        self._count -= 1
        if not curves:
            del self._nodes[node_name]


class _Curve:
    """The numbers of an hour in a ring: that of step `n` stands at `n % STEPS`, up to the step `newest`."""

    __slots__ = ("newest", "numbers")

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self.numbers = _EMPTY[:]

    def put(self, step: int, number: float, now: int) -> None:
        """The number of a step of the hour up to the step `now`."""
        if self.newest > now:  # the clock went back: what was known belongs to no time any more
            self.newest, self.numbers = now, _EMPTY[:]
        for passed in range(max(self.newest, step - STEPS) + 1, step + 1):
            self.numbers[passed % STEPS] = _NOTHING
        self.newest = max(self.newest, step)
        self.numbers[step % STEPS] = number

    def hour(self, now: int) -> array[float]:
        """The numbers of the hour up to the step `now`, oldest first."""
        oldest = (self.newest + 1) % STEPS
        known = self.numbers[oldest:] + self.numbers[:oldest]
        passed = now - self.newest
        if passed >= 0:
            return known[passed:] + _EMPTY[:passed]
        return _EMPTY[:-passed] + known[:passed]


def _step(monotonic: float) -> int:
    return math.floor(monotonic / STEP)


def plain(kept: float) -> float | None:
    """A number with the seven digits that four bytes hold; None for a gap, and for what is too large for them."""
    return float(f"{kept:.7g}") if math.isfinite(kept) else None
