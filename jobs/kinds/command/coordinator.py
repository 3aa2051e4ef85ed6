"""Runs copies of one program, each on a node of its own, the best nodes first; a copy that fails is started again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    Seat,
    Then,
)
from jobs.application.exits import Exit
from jobs.application.journal import Record
from jobs.division.best_nodes import measure
from jobs.errors import JobError
from jobs.kinds.command.settings import CommandSettings

PLANNED, EXITED = "planned", "exited"
"""Records of the journal: which nodes are used in which order, and that a copy has ended well."""
UNIT = "copies"
FAILURES = (Exit.CRASHED, Exit.KILLED, Exit.MEMORY)
"""Exits that are the program's own, so that another node would not help."""


@dataclass(frozen=True)
class _Copy:
    """Where a copy is, and what is known of its last end."""

    node_name: str
    done: bool = False
    said: str = ""


class Command(Coordinator):
    """One attempt at one job; JobError tells which copy failed too often."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._settings = CommandSettings.from_json(attempt.spec.settings)
        self._copies: dict[int, _Copy] = {}
        self._restarts: Counter[int] = Counter()
        self._exit_codes: Counter[int] = Counter()

    def roles(self, knowledge: Knowledge) -> Sequence[Role]:
        """A copy on each of the best nodes that has not ended well; the others are spares."""
        nodes, copies = self._plan_nodes(knowledge), self._settings.copies
        for record in self._attempt.earlier:
            if record.kind == EXITED:
                self._copies[record.body["copy"]] = _Copy(record.body["node_name"], done=True, said="exit code 0")
        done = frozenset(index for index, copy in self._copies.items() if copy.done)
        self._exit_codes[0] = len(done)
        spares = nodes[copies:]
        return (Role("copy", nodes[:copies], self._launch, ends_alone=True, spares=spares, all_needed=True, done=done),)

    def on_start(self, container: Container) -> None:
        """A copy runs."""
        self._copies[container.seat.index] = _Copy(container.seat.node_name)

    def on_end(self, container: Container, end: End) -> Then:
        """Exit code 0 is a good end; with any other one the copy is started again as often as was asked for."""
        copy, node = container.seat.index, container.seat.node_name
        if end.status >= 0 and end.exit in (Exit.FINISHED, *FAILURES):
            self._exit_codes[end.status] += 1
        if end.exit is Exit.FINISHED:
            self._attempt.journal.append(Record(EXITED, {"copy": copy, "node_name": node}))
            self._copies[copy] = _Copy(node, done=True, said="exit code 0")
            return Then.DONE
        text = f"exit code {end.status}" if end.status > 0 else end.text
        self._copies[copy] = _Copy(node, said=text)
        if end.exit in FAILURES:
            self._restarts[copy] += 1
            if self._restarts[copy] > self._settings.restarts:
                raise JobError(
                    f"copy {copy} on {node} ended with {text} after {self._settings.restarts} restarts",
                    remedy=f"`nodewise job logs {self._attempt.spec.job_id}` shows what it printed",
                )
            return Then.EXPECTED
        return Then.AGAIN

    def progress(self) -> Progress:
        """Copies that have ended well."""
        nodes: dict[str, NodeProgress] = {}
        for one in list(self._copies.values()):
            known = nodes.get(one.node_name, NodeProgress())
            nodes[one.node_name] = replace(
                known, planned=known.planned + 1, done=known.done + one.done, said=one.said or known.said
            )
        done = sum(one.done for one in self._copies.values())
        return Progress(done, self._settings.copies, UNIT, nodes, section=self._section())

    def _section(self) -> dict[str, str]:
        """What runs, and how often it ended with which exit code; no arguments, as anybody may read the page."""
        program = self._settings.argv[0]
        codes = [f"{code} ({times} x)" for code, times in sorted(dict(self._exit_codes).items()) if times]
        return {"Program": program, "Exit codes": ", ".join(codes)}

    def finish(self) -> Outcome:
        """Nothing is left to be put in place: what copies leave is theirs."""
        return Outcome(f"{self._settings.copies} copies ended with exit code 0")

    def _plan_nodes(self, knowledge: Knowledge) -> list[str]:
        """All nodes, the best first: as an earlier attempt found them, so that no copy runs twice."""
        for record in self._attempt.earlier:
            if record.kind == PLANNED:
                return list(record.body["nodes"])
        nodes = self._best(knowledge)
        if len(nodes) < self._settings.copies:
            fitting = f"have a {self._settings.capability} above 0" if self._settings.capability else "accept work"
            copies = self._settings.copies
            raise JobError(f"{copies} copies need {copies} nodes, and only {len(nodes)} {fitting}")
        self._attempt.journal.append(Record(PLANNED, {"nodes": nodes}))
        return nodes

    def _best(self, knowledge: Knowledge) -> list[str]:
        nodes, capability = knowledge.nodes(), self._settings.capability
        return nodes if capability is None else list(measure(knowledge.client, capability, nodes))

    def _launch(self, seat: Seat) -> Launch:
        settings, spec = self._settings, self._attempt.spec
        return Launch(
            argv=settings.argv,
            environment={
                "NODE_NAME": seat.node_name,
                "COPY": str(seat.index),
                "COPIES": str(settings.copies),
                "PYTHONUNBUFFERED": "1",
            },
            files={name: f"{spec.staging}/{name}" for name in settings.files},
            memory_mb=settings.memory_mb,
            vcores=settings.vcores,
        )
