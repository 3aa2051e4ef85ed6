"""Which nodes a run uses, the best first, and what they are judged by before their first step.

Nodes that are added to the cluster later come after them. The journal has it as

    {"nodes": ["a", "b"], "values": {"a": 0.9, "b": 0.4}, "judged_by": NAME}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from infosvc.wire.errors import InfoError
from jobs.application.coordinator import Knowledge
from jobs.division.best_nodes import measure
from jobs.errors import JobError
from jobs.kinds.train.registry.registry import Registry
from jobs.kinds.train.settings import TrainSettings


@dataclass(frozen=True)
class Nodes:
    """Nodes in their order; the values of those that have one are all of one data name, "" for none."""

    nodes: Sequence[str] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    judged_by: str = ""


class Seating:
    """Of one attempt; `record` makes what is decided durable, `earlier` is what was recorded last."""

    def __init__(
        self,
        knowledge: Knowledge,
        settings: TrainSettings,
        registry: Registry,
        record: Callable[[Mapping[str, Any]], None],
        earlier: Mapping[str, Any] | None,
    ) -> None:
        """JobError when there are too few nodes."""
        self._knowledge = knowledge
        self._settings = settings
        self._registry = registry
        self._record = record
        self._asked: Future[Nodes] | None = None
        if earlier:
            self._take(Nodes(**earlier))
            self._look_back()
        else:
            self._decide(self._judge_all())

    @property
    def nodes(self) -> Sequence[str]:
        """All that the run uses, or may use when one of the first is lost."""
        return self._all.nodes

    @property
    def values(self) -> Mapping[str, float]:
        """By node, what it is judged by."""
        return self._all.values

    def admit(self, nodes: Sequence[str]) -> Sequence[str]:
        """Which of these, that are new in the cluster, the run uses; to be asked again for those that are left.

        Nobody waits for values: what was asked for at one call is known at a later one.
        """
        asked, self._asked = self._asked, None
        if asked is None:
            self._asked = self._registry.aside.do(partial(self._judge_new, list(nodes), self._all))
        elif not asked.done():
            self._asked = asked
        elif asked.exception() is None:
            return self._add(asked.result())
        return ()

    def _look_back(self) -> None:
        """Take nodes that were added while there was no application master."""
        known = set(self._all.nodes)
        if new := [node for node in self._knowledge.nodes() if node not in known]:
            with suppress(InfoError):
                self._add(self._judge_new(new, self._all))

    def _add(self, found: Nodes) -> Sequence[str]:
        if found.nodes:
            nodes = [*self._all.nodes, *(node for node in found.nodes if node not in self._all.nodes)]
            self._decide(replace(found, nodes=nodes))
        return found.nodes

    def _decide(self, found: Nodes) -> None:
        self._take(found)
        self._record(asdict(found))

    def _take(self, found: Nodes) -> None:
        self._all = found
        self._registry.judged_by = found.judged_by

    def _judge_all(self) -> Nodes:
        nodes, capability, least = self._knowledge.nodes(), self._settings.capability, self._settings.least
        if capability is not None:
            values = measure(self._knowledge.client, capability, nodes)
            found = Nodes(list(values), values, capability)
        else:
            judged_by, values = self._registry.first_values(nodes, self._settings.cold_start)
            found = Nodes(nodes, values, judged_by)
        if len(found.nodes) < least:
            fitting = f"have a {capability} above 0" if capability else "accept work"
            raise JobError(
                f"{least} members need as many nodes, and only {len(found.nodes)} {fitting}",
                remedy="ask for fewer --members",
            )
        return found

    def _judge_new(self, new: Sequence[str], known: Nodes) -> Nodes:
        """Those of `new` that fit, with the values of all nodes, so that these are of one scale."""
        running, capability = set(self._knowledge.nodes()), self._settings.capability
        nodes = [node for node in new if node in running]
        if capability is None:
            with suppress(InfoError):  # which is not needed for this
                judged_by, values = self._registry.read_values([*known.nodes, *nodes], self._settings.cold_start)
                if values:
                    return Nodes(nodes, values, judged_by)
            return replace(known, nodes=nodes)
        values = {}
        for node in nodes:
            with suppress(JobError):  # it has no value yet
                values |= measure(self._knowledge.client, capability, [node], wait_seconds=0)
        return Nodes(sorted(values, key=lambda node: -values[node]), {**known.values, **values}, capability)
