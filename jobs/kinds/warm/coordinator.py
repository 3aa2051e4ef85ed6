"""Has YARN lay an environment out on nodes: a container on each, which does nothing, has its files."""

from __future__ import annotations

from collections.abc import Sequence

from hadoop.client.yarn import Launch
from jobs.application.coordinator import (
    Attempt,
    Container,
    Coordinator,
    End,
    Knowledge,
    NodeProgress,
    Outcome,
    Progress,
    Role,
    Then,
)
from jobs.application.environments.laid import shared
from jobs.application.exits import Exit
from jobs.application.journal import Record
from jobs.kinds.warm.settings import MEMORY_MB, WarmSettings

LAID = "laid"
"""Record of the journal: a node has it."""
UNIT = "nodes"


class Warm(Coordinator):
    """One attempt at one job. YARN starts a container when its files are there: one that ended well has them."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._settings = WarmSettings.from_json(attempt.spec.settings)
        self._seconds: dict[str, float] = {
            one.body["node_name"]: one.body["seconds"] for one in attempt.earlier if one.kind == LAID
        }
        self._said: dict[str, str] = {}

    def roles(self, knowledge: Knowledge) -> Sequence[Role]:  # noqa: ARG002 its nodes are chosen already
        """A container on each node that has not got it yet; those go on when one of them cannot."""
        nodes = self._settings.nodes
        done = frozenset(index for index, node in enumerate(nodes) if node in self._seconds)
        return (Role("copy", nodes, lambda _: self._launch(), ends_alone=True, done=done, explain=self._explain),)

    def on_start(self, container: Container) -> None:
        """Its files are there, or on their way."""

    def on_end(self, container: Container, end: End) -> Then:
        """Exit code 0 means that the node has it; after any other end it is tried again."""
        node = container.seat.node_name
        if end.exit is not Exit.FINISHED:
            self._said[node] = end.text
            return Then.AGAIN
        seconds = round(self._attempt.clock(), 1)
        self._attempt.journal.append(Record(LAID, {"node_name": node, "seconds": seconds}))
        self._seconds[node] = seconds
        return Then.DONE

    def progress(self) -> Progress:
        """Nodes that have it, each with the seconds since the job's work began."""
        seconds = dict(self._seconds)
        nodes = {
            node: NodeProgress(planned=1, done=int(node in seconds), said=self._say(node, seconds))
            for node in self._settings.nodes
        }
        return Progress(len(seconds), len(nodes), UNIT, nodes, section={"Environment": self._settings.environment})

    def finish(self) -> Outcome:
        """Nothing is left to be put in place."""
        return Outcome(f"{len(self._settings.nodes)} nodes have {self._settings.environment}")

    def _explain(self, lacking: str) -> str:
        """Why it has failed: who has it, and what is said of those that lack it."""
        there = [node for node in self._settings.nodes if node in self._seconds]
        if not there:
            return f"{self._settings.environment} does not get to any of the nodes ({lacking})"
        return f"{self._settings.environment} is on {', '.join(there)}, and does not get to others ({lacking})"

    def _say(self, node: str, seconds: dict[str, float]) -> str:
        return f"{seconds[node]} s" if node in seconds else self._said.get(node, "")

    def _launch(self) -> Launch:
        parts = shared(self._settings.parts)
        return Launch(argv=["true"], environment={}, files={}, memory_mb=MEMORY_MB, vcores=1, shared=parts)
