"""What the dashboard draws of a run, as one object that stays small: the largest nodes and the newest events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hadoop.errors import HadoopError
from jobs.application.coordinator import Attempt
from jobs.application.journal import Record
from jobs.kinds.train.loss_curve import LossCurve
from jobs.kinds.train.news import History
from jobs.kinds.train.registry.registry import Registry
from jobs.reports.texts import count_text
from learning.lead.leader import Member

LOSS = "loss"
"""Records of the journal: points of the loss curve that came since the record before."""
KEEP_SECONDS = 30.0
"""Between two of these records."""
MOST_KEPT = 10
"""Points of one record."""
SHOWN_SECONDS = 1.0
"""How old an answer may be."""
MOST_NODES = 12
MOST_EVENTS = 50
MOST_CHANGES = 100
LONGEST = 300
"""Characters of a reason; the rest is cut off."""

Work = Mapping[str, Mapping[str, Any]]
"""What nodes have done, as the report has it."""


class PageSection:
    """Of one attempt, which knows the loss of earlier ones as far as the journal has it."""

    def __init__(self, attempt: Attempt, history: History, registry: Registry) -> None:
        self._attempt = attempt
        self._history = history
        self._registry = registry
        self._curve = LossCurve()
        for record in attempt.earlier:
            if record.kind == LOSS:
                for step, loss in record.body["points"]:
                    self._curve.add(step, loss)
        self._kept_at = attempt.clock()
        self._kept_step = max((step for step, _ in self._curve.points()), default=0)
        self._made: dict[str, Any] = {}
        self._made_at = 0.0
        self._lock = threading.Lock()

    def look(self, told: Mapping[str, Member]) -> None:
        """Note the loss that the members of the newest generation tell, now and then in the journal."""
        self._curve.look(self._history.last_members, told)
        now, points = self._attempt.clock(), self._curve.points()
        if not points or now - self._kept_at < KEEP_SECONDS:
            return
        self._kept_at, newest = now, points[-1][0]
        new = self._curve.since(min(self._kept_step, newest - 1), MOST_KEPT)
        self._kept_step = newest
        try:
            self._attempt.journal.append(Record(LOSS, {"points": new}))
        except HadoopError as error:  # another attempt leads: this one knows it still
            print(f"not in the journal: {count_text(len(new), 'points')} of the loss ({error})", flush=True)

    def losses(self) -> list[list[float]]:
        """The loss curve, [steps, loss] by steps."""
        return [list(point) for point in self._curve.points()]

    def section(self, steps: int, steps_in_all: int, work: Callable[[], Work]) -> dict[str, Any]:
        """The object; `work` tells what nodes have done. It is made anew once a second, as many may ask."""
        with self._lock:
            now, is_last = self._attempt.clock(), steps >= steps_in_all > 0
            if not self._made or is_last or now >= self._made_at + SHOWN_SECONDS:
                self._made, self._made_at = self._make(steps, steps_in_all, work()), now
            return self._made

    def _make(self, steps: int, steps_in_all: int, work: Work) -> dict[str, Any]:
        told, changes = self._history.report(), self._registry.report(MOST_CHANGES)["shares"]
        largest = find_largest(work, changes[-1]["shares"] if changes else {})
        generations, losses = told["generations"], told["losses"]
        return {
            "steps": steps,
            "steps_in_all": steps_in_all,
            "nodes": nodes_of(work, largest),
            "shares": [change_of(one, largest) for one in changes],
            "generations": [generation_of(one, largest) for one in generations[-MOST_EVENTS:]],
            "generations_in_all": len(generations),
            "losses": [one | {"why": one["why"][:LONGEST]} for one in losses[-MOST_EVENTS:]],
            "losses_in_all": len(losses),
            "cost_seconds": round(sum(one["cost_seconds"] or 0.0 for one in losses), 3),
            "loss": self.losses(),
        }


def find_largest(work: Work, shares: Mapping[str, int]) -> list[str]:
    """The nodes that have computed the most, sorted by name; of equal ones those with the largest shares now."""
    ranked = sorted(
        work.keys() | shares.keys(),
        key=lambda node: (-work.get(node, {}).get("samples", 0), -shares.get(node, 0), node),
    )
    return sorted(ranked[:MOST_NODES])


def nodes_of(work: Work, largest: Sequence[str]) -> list[dict[str, Any]]:
    """What each of the largest nodes has done, and the sum of the others as a node without name."""
    others = [done for node, done in work.items() if node not in largest]
    told = [{"node_name": node, "count": 1, **_sum([work[node]])} for node in largest if node in work]
    return [*told, {"node_name": "", "count": len(others), **_sum(others)}] if others else told


def change_of(change: Mapping[str, Any], largest: Sequence[str]) -> dict[str, Any]:
    """One change of shares, as the report has it: of the others the sum of shares, and the longest seconds.

    >>> change = {"step": 9, "at_seconds": 1.0, "gain": None, "why": "", "shares": {"a": 5, "b": 3, "c": 2}}
    >>> change_of(change | {"step_seconds": {"b": 0.5, "c": 0.25}}, ["a"])["others"]
    {'count': 2, 'samples': 5, 'step_seconds': 0.5}
    """
    shares, seconds = change["shares"], change["step_seconds"]
    others = [node for node in shares if node not in largest]
    rest = {
        "count": len(others),
        "samples": sum(shares[node] for node in others),
        "step_seconds": max((seconds[node] for node in others if node in seconds), default=None),
    }
    return {
        "step": change["step"],
        "at_seconds": change["at_seconds"],
        "gain": change["gain"],
        "why": change["why"][:LONGEST],
        "batch": sum(shares.values()),
        "shares": {node: shares[node] for node in largest if node in shares},
        "step_seconds": {node: seconds[node] for node in largest if node in seconds},
        "others": rest if others else None,
    }


def generation_of(generation: Mapping[str, Any], largest: Sequence[str]) -> dict[str, Any]:
    """One generation, as the report has it: the largest nodes, and how many others there were."""
    nodes = generation["nodes"]
    shown = sorted(nodes, key=lambda node: (node not in largest, node))[:MOST_NODES]
    ended = generation["ended"][:LONGEST]
    return {**generation, "nodes": sorted(shown), "others": len(nodes) - len(shown), "ended": ended}


def _sum(done: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    sums = {name: sum(one[name] for one in done) for name in ("samples", "compute_seconds", "wait_seconds")}
    return {name: round(value, 3) for name, value in sums.items()}
