"""Tries another order of nodes on what was noted when a task was given its node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Datum, Outcome, State
from infosvc.wire.scoring.yarn_score import ScoringPolicy, Values, parse, parse_program
from infosvc.wire.tasks import NotedValue, TaskDecision

USUAL_ORDER = "first"
"""Of the plug-in, where it has none for the task's program."""
_OF_PROGRAM = "program."


@dataclass(frozen=True)
class JudgedNode:
    """A node as it was noted, with the score that it has in the other order; `goes_last` is behind all others."""

    node_name: str
    allowed: bool
    has_room: bool
    noted_score: float | None
    score: float
    goes_last: bool


@dataclass(frozen=True)
class Replay:
    """What another order says of a decision: nodes from best to worst, and which of those that could comes first."""

    task_id: str
    attempt: int
    node_name: str
    noted_order: str | None
    order: str
    nodes: Sequence[JudgedNode]
    first: str | None

    @property
    def said(self) -> str:
        """In a sentence."""
        if self.first is None:
            return f"No node that may run it had room, and it ran on {self.node_name}."
        same = "where it ran" if self.first == self.node_name else f"and it ran on {self.node_name}"
        return f"Of the nodes that may run it and had room, {self.order} has {self.first} first, {same}."


def read_order(text: str, name: str | None) -> ScoringPolicy:
    """An order of the plug-in's settings file; InvalidInput when the file is wrong or lacks it.

    `program.NAME` is that of a program.
    """
    wanted = name or USUAL_ORDER
    if wanted.startswith(_OF_PROGRAM):
        return parse_program(text, wanted.removeprefix(_OF_PROGRAM))
    found = {policy.name: policy for policy in parse(text)}
    if wanted not in found:
        raise InvalidInput(f"the settings file has no order {wanted}", "order", remedy=f"it has {', '.join(found)}")
    return found[wanted]


def replay(decision: TaskDecision, policy: ScoringPolicy) -> Replay:
    """Order the nodes of a decision by the values that were noted with it.

    What had been placed on nodes since those were measured is not known. NotFound when a value that the order goes by
    was not noted of any node.
    """
    _check_values(decision, policy)
    noted = {one.node_name: one for one in decision.nodes}
    judged = [
        JudgedNode(
            one.node_name,
            noted[one.node_name].allowed,
            noted[one.node_name].has_room,
            noted[one.node_name].score,
            one.score,
            one.last,
        )
        for one in policy.order(list(noted), _values(decision.values))
    ]
    first = next((one.node_name for one in judged if one.allowed and one.has_room), None)
    return Replay(decision.task_id, decision.attempt, decision.node_name, decision.order, policy.name, judged, first)


def _check_values(decision: TaskDecision, policy: ScoringPolicy) -> None:
    noted = {one.data_name for one in decision.values}
    missing = [name for name in policy.data_names if name not in noted]
    if not noted:
        raise NotFound(
            f"no values were noted with start {decision.attempt} of {decision.task_id}",
            "task_id",
            remedy="they are where `nodewise serve` has --policy-file",
        )
    if missing:
        raise NotFound(
            f"{policy.name} goes by {', '.join(missing)}, and no value of that was noted",
            missing[0],
            remedy=f"noted are {', '.join(sorted(noted))}",
        )


def _values(noted: Sequence[NotedValue]) -> Values:
    found: dict[str, dict[str, Datum]] = {}
    for one in noted:
        found.setdefault(one.data_name, {})[one.node_name] = _datum(one)
    return found


def _datum(noted: NotedValue) -> Datum:
    state: Any = State.FRESH if noted.is_fresh else State.STALE
    return Datum(noted.data_name, noted.node_name, noted.data_value, noted.age, 0, state, Outcome.OK)
