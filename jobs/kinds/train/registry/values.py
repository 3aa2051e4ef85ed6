"""The registered values of nodes, read when shares change: what moved between two readings."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, Unreachable
from infosvc.wire.records import Scope
from jobs.division.capability import JSON, is_fresh_number
from locality.training.explaining import UNEXPLAINED, WINDOW, find_moved

AWAY = f"{UNEXPLAINED}: the service was away"
NOT_BEFORE = f"{UNEXPLAINED}: no values were read at the change before"
NEWEST_STEPS = 2
"""Of the last hour of a value, these may show what is to be explained."""

Numbers = Mapping[str, Mapping[str, float]]
"""By node and data name."""


class Values:
    """Of all data names but `own`, which the run itself writes. For one thread."""

    def __init__(self, client: InfoClient, own: str) -> None:
        self._client = client
        self._own = own
        self._past: deque[Numbers] = deque(maxlen=WINDOW)
        self._now: Numbers = {}
        self._flaw = UNEXPLAINED

    def read(self, nodes: Collection[str]) -> None:
        """Read all of these nodes at once; what was read before is then the past."""
        try:
            names = [
                one.data_name
                for one in self._client.producers()
                if one.scope is Scope.NODE and one.unit != JSON and one.data_name != self._own
            ]
            found: dict[str, dict[str, float]] = defaultdict(dict)
            for name, data in self._client.data_many(names).items():
                for datum in data:
                    if datum.node_name in nodes and is_fresh_number(datum):
                        found[datum.node_name][name] = datum.number()
        except InfoError as error:
            self._flaw = _flaw(error)
            return
        if self._now:
            self._past.append(self._now)
        self._now, self._flaw = found, ""

    def explain(self, node: str) -> str:
        """Which value of a node moved the most between the last two readings, for people."""
        if self._flaw:
            return self._flaw
        if not self._past:
            return NOT_BEFORE
        past = [numbers.get(node, {}) for numbers in self._past]
        try:
            earlier = self._last_hour(node)
        except InfoError as error:
            return _flaw(error)
        for numbers in past:
            for name, number in numbers.items():
                earlier[name].append(number)
        moved = find_moved(past[-1], self._now.get(node, {}), earlier)
        return moved.sentence(node) if moved else UNEXPLAINED

    def _last_hour(self, node: str) -> dict[str, list[float]]:
        """By data name, the numbers before what is to be explained, the oldest first."""
        found: dict[str, list[float]] = defaultdict(list)
        for curve in self._client.node_hour(node).curves:
            found[curve.data_name] = [one for one in curve.numbers[:-NEWEST_STEPS] if one is not None]
        return found


def _flaw(error: InfoError) -> str:
    return AWAY if isinstance(error, Unreachable) else f"{UNEXPLAINED}: {error}"
