"""Which nodes of the cluster have a worker of a pool, each with a seat that it keeps from one attempt to the next."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from infosvc.wire.errors import InfoError
from jobs.application.coordinator import Attempt, Knowledge
from jobs.application.journal import Record
from jobs.application.master import say
from jobs.aside import Aside
from jobs.division.best_nodes import measure

SEATS = "seats"
"""Record of the journal: the nodes, in the order of their seats."""


class Seats:
    """Not thread-safe. `best_by` names the value by which nodes are put in order, None for as YARN names them.

    Where the information service does not tell which nodes can have a worker, an attempt goes on with the seats of the
    one before; InfoError if there was none.
    """

    def __init__(self, attempt: Attempt, knowledge: Knowledge, best_by: str | None) -> None:
        self._attempt = attempt
        self._knowledge = knowledge
        self._aside = Aside()
        self._asked: Future[list[str]] | None = None
        earlier = (record.body["nodes"] for record in reversed(attempt.earlier) if record.kind == SEATS)
        known = list(next(earlier, ()))
        nodes = self._find_further() if known else knowledge.nodes()
        if best_by and not known:
            nodes = list(measure(knowledge.client, best_by, nodes))
        self.nodes: list[str] = []
        self._add([*known, *(node for node in nodes if node not in known)])

    def admit(self, new: Sequence[str]) -> Sequence[str]:
        """Those of the nodes that are new in the cluster and can have a worker; nobody waits for what tells that."""
        asked, self._asked = self._asked, None
        if asked is None:
            self._asked = self._aside.do(self._knowledge.nodes)
        elif not asked.done():
            self._asked = asked
        elif asked.exception() is None:
            return self._add([node for node in new if node in asked.result()])
        return ()

    def _find_further(self) -> list[str]:
        """The nodes that can have a worker now; none while that is not known, for those with a seat keep theirs."""
        try:
            return self._knowledge.nodes()
        except InfoError as error:
            say(self._attempt.spec.job_id, f"no node gets a worker that had none before: {error}")
            return []

    def _add(self, nodes: Sequence[str]) -> Sequence[str]:
        """Record further seats."""
        if nodes:
            self.nodes += nodes
            self._attempt.journal.append(Record(SEATS, {"nodes": self.nodes}))
        return nodes
