"""From a decision and what the workers did to the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.division.decision import Decision
from jobs.itemwork.node_totals import NOTHING, NodeTotals
from jobs.itemwork.settings import ItemSettings
from jobs.reports.report import Failure, InputValue, JobReport, LeaseReport, NodeReport, Phase, Weights
from locality.bounds import fewest_bytes_moved, moved_load
from locality.types import Part


@dataclass(frozen=True)
class Course:
    """How the work went: what each node did, every lease, every failure; `attempts` of the application master.

    `master_memory_mb` is what its container had, `master_peak_mb` what it took at most until now. `values` are the
    capabilities of all nodes, also of those that were let in when the division had been made.
    """

    started_at: str
    totals: Mapping[str, NodeTotals]
    leases: Sequence[LeaseReport]
    failures: Sequence[Failure]
    attempts: int
    wall_seconds: float
    first_result_seconds: float
    master_memory_mb: int
    master_peak_mb: int
    note: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    phases: Sequence[Phase] = ()


def summarise(settings: ItemSettings, decision: Decision, course: Course, weights: Weights) -> JobReport:
    """The report of a job of whose items each has its row.

    `bytes_moved_optimal` is the fewest bytes that any division with the loads that came out moves.
    """
    done = course.totals
    parts: dict[str, tuple[Part, ...]] = dict.fromkeys(done, ())
    parts |= decision.plan.parts
    values = {**course.values, **decision.readings.numbers()}
    loads = {node: done.get(node, NOTHING).items for node in parts}
    return JobReport(
        job_id=decision.job_id,
        application_id=decision.job_id,
        engine=settings.program.name,
        policy=decision.policy,
        capability=settings.capability,
        items=sum(total.items for total in done.values()),
        errors=sum(total.errors for total in done.values()),
        started_at=course.started_at,
        bytes_read=sum(total.bytes_read for total in done.values()),
        bytes_moved=sum(total.moved_bytes for total in done.values()),
        bytes_moved_planned=moved_load(decision.plan).size_bytes,
        bytes_moved_optimal=fewest_bytes_moved(list(decision.blocks), loads),
        nodes=tuple(
            _node(decision, node_name, planned, done.get(node_name, NOTHING), values.get(node_name, 0.0))
            for node_name, planned in sorted(parts.items())
        ),
        inputs=tuple(_inputs(settings.capability, decision)),
        weights=weights,
        wall_seconds=course.wall_seconds,
        first_result_seconds=course.first_result_seconds,
        attempts=course.attempts,
        master_memory_mb=course.master_memory_mb,
        master_peak_mb=course.master_peak_mb,
        leases=tuple(course.leases),
        failures=tuple(course.failures),
        phases=tuple(course.phases),
        note=course.note,
        unit=decision.unit,
    )


def _node(
    decision: Decision, node_name: str, parts: tuple[Part, ...], total: NodeTotals, capability: float
) -> NodeReport:
    return NodeReport(
        node_name=node_name,
        capability=capability,
        planned_items=sum(part.items for part in parts),
        items=total.items,
        local_items=total.local_items,
        seconds=total.seconds,
        items_per_second=total.items_per_second,
        known_items_per_second=0.0 if total.items else decision.speeds.get(node_name, 0.0),
    )


def _inputs(capability: str, decision: Decision) -> list[InputValue]:
    readings = decision.readings
    return [
        InputValue(capability, node, f"{one.value:g}", one.age_seconds, readings.unit, one.state)
        for node, one in sorted(readings.nodes.items())
    ]
