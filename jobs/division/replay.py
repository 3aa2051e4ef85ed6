"""Plan again from a decision record, with other policies and capabilities, and predict how each would have ended."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from jobs.division.decision import Decision
from jobs.errors import JobError
from jobs.reports.texts import FORMER_UNIT
from locality.bounds import makespan_lower_bound
from locality.policies import policy
from locality.quality import Quality, measure_quality, optimum_of
from locality.types import Plan, PlanError


@dataclass(frozen=True)
class Attempt:
    """One plan of the recorded items; `quality` is by its own capability, `recorded` that it is the job's."""

    policy: str
    capability: str
    plan: Plan
    quality: Quality
    planning_seconds: float
    recorded: bool = False


@dataclass(frozen=True)
class Yardstick:
    """What all attempts are timed by, items per second if `name` is None, else per unit of that capability.

    `unit` is what an item is called, in the plural. `starts` is when nodes begin, in the unit of the makespan.
    """

    speeds: Mapping[str, float]
    name: str | None
    unit: str
    starts: Mapping[str, float]

    @property
    def text(self) -> str:
        """What it is, for people."""
        if self.name is None:
            return "seconds, at the speeds the nodes had in earlier jobs"
        return f"{self.unit} per unit of {self.name}, because not all nodes have a known speed"

    @property
    def makespan_unit(self) -> str:
        """The unit of what it measures: images are called pictures there, as programs know it."""
        unit = "pictures" if self.unit == FORMER_UNIT else self.unit
        return "seconds" if self.name is None else f"{unit} / {self.name}"

    def makespan(self, plan: Plan) -> float | None:
        """When the last node ends; None when one with items has speed 0, so that it never does."""
        loads = {node: load for node, load in plan.loads().items() if load}
        if any(not self.speeds.get(node) for node in loads):
            return None
        return max((self.ends(node, load) for node, load in loads.items()), default=0.0)

    def ends(self, node: str, load: int) -> float:
        """When a node with a speed ends that has so many items."""
        return self.starts.get(node, 0.0) + load / self.speeds[node]


def attempts(
    decision: Decision, policies: Sequence[str], capabilities: Mapping[str, Mapping[str, float]]
) -> list[Attempt]:
    """The recorded plan, then each policy with each capability; PlanError from a policy that cannot."""
    recorded = Attempt(
        decision.policy, decision.capability, decision.plan, decision.quality, decision.planning_seconds, True
    )
    return [recorded, *chain.from_iterable(_attempts_by(decision, policies, *each) for each in capabilities.items())]


def yardstick(decision: Decision, plans: Iterable[Plan]) -> Yardstick:
    """The known speeds if every node has one that any plan gives items, else the capability that decided."""
    working = {node for plan in plans for node, load in plan.loads().items() if load}
    if all(decision.speeds.get(node) for node in working):
        return Yardstick(decision.speeds, None, decision.unit, decision.start_seconds)
    return Yardstick(decision.readings.numbers(), decision.capability, decision.unit, decision.terms.starts)


def values_of(decision: Decision, named: str) -> dict[str, float]:
    """A capability by its recorded data name, or from a JSON file {node: value}; JobError unless it has every node."""
    if named in decision.capabilities:
        values = decision.capabilities[named].numbers()
    elif Path(named).is_file():
        values = _read(Path(named))
    else:
        raise JobError(
            f"{named} is neither in the record nor a file",
            remedy=(
                f"recorded are {', '.join(sorted(decision.capabilities))}; a file holds a JSON object {{node: value}}"
            ),
        )
    nodes = set(decision.plan.parts)
    if set(values) != nodes:
        missing, strange = sorted(nodes - set(values)), sorted(set(values) - nodes)
        flaw = f"has no value of {', '.join(missing)}" if missing else f"names {', '.join(strange)}"
        raise JobError(f"{named} {flaw}: it must have one value for each of {', '.join(sorted(nodes))} (0: no work)")
    return values


def comparison(decision: Decision, made: Sequence[Attempt]) -> dict[str, Any]:
    """All attempts as one JSON object, each timed by the same yardstick; in it items are called `images`."""
    by = yardstick(decision, [attempt.plan for attempt in made])
    return {
        "job_id": decision.job_id,
        "made_at": decision.made_at,
        "images": decision.items,
        "blocks": len(decision.blocks),
        "nodes": len(decision.plan.parts),
        "makespan_unit": by.makespan_unit,
        "makespan_meaning": by.text,
        "plans": [_row(decision, attempt, by) for attempt in made],
    }


def _attempts_by(
    decision: Decision, policies: Sequence[str], name: str, values: Mapping[str, float]
) -> Iterator[Attempt]:
    """Each policy with one capability; what is possible at best is worked out once."""
    plans = [(policy_name, *_time_plan(decision, policy_name, name, values)) for policy_name in policies]
    terms = decision.terms_by(values)
    optimum = optimum_of(decision.blocks, values, terms)
    for policy_name, plan, planning_seconds in plans:
        quality = measure_quality(plan, decision.blocks, values, terms, optimum)
        yield Attempt(policy_name, name, plan, quality, planning_seconds)


def _time_plan(decision: Decision, policy_name: str, name: str, values: Mapping[str, float]) -> tuple[Plan, float]:
    """A policy's plan and the seconds it took; PlanError names both."""
    divide, terms = policy(policy_name), decision.terms_by(values)
    try:
        divide(decision.blocks[:1], values, terms)  # imports what a first plan needs; that is not a planning
        started = time.perf_counter()
        plan = divide(decision.blocks, values, terms)
        return plan, time.perf_counter() - started
    except PlanError as error:
        raise PlanError(f"{policy_name} by {name}: {error}") from error


def _row(decision: Decision, attempt: Attempt, by: Yardstick) -> dict[str, Any]:
    makespan, bound = by.makespan(attempt.plan), makespan_lower_bound(decision.items, by.speeds, by.starts)
    return {
        "policy": attempt.policy,
        "capability": attempt.capability,
        "recorded": attempt.recorded,
        "makespan": makespan,
        "lower_bound": bound,
        "makespan_over_bound": makespan / bound if makespan is not None and bound else None,
        "bytes_moved": attempt.quality.bytes_moved,
        "bytes_moved_optimal": attempt.quality.bytes_moved_optimal,
        "bytes_moved_over_optimal": attempt.quality.bytes_moved_over_optimal,
        "locality_ratio": attempt.quality.locality_ratio,
        "planning_seconds": attempt.planning_seconds,
        "images": attempt.plan.loads(),
    }


def _read(file: Path) -> dict[str, float]:
    try:
        body = json.loads(file.read_bytes(), parse_int=float)
    except (OSError, ValueError) as error:
        raise JobError(f"{file} cannot be read as JSON ({error})", remedy="write an object {node: value}") from error
    if not isinstance(body, dict) or not all(isinstance(value, float) for value in body.values()):
        raise JobError(
            f"{file} is not a capability", remedy="write a JSON object with a number for each node, {node: value}"
        )
    return body
