"""From a plan and what the workers said to the report."""

from __future__ import annotations

from collections.abc import Mapping

from infosvc.records import Datum
from jobs.report import SEEDED, InputValue, JobReport, NodeReport, Weights
from jobs.settings import JobSettings
from jobs.worker.master import Progress
from locality.bounds import fewest_bytes_moved, moved
from locality.types import Part, Plan


def summarise(
    settings: JobSettings,
    plan: Plan,
    values: Mapping[str, Datum],
    done: Mapping[str, Progress],
    speeds: Mapping[str, float],
    started_at: str,
) -> JobReport:
    """The report of a job whose containers have all ended well.

    `speeds` are the images per second of earlier jobs, `started_at` is ISO 8601.
    """
    blocks = {part.block.name: part.block for parts in plan.parts.values() for part in parts}
    return JobReport(
        job_id=settings.job_id,
        application_id=settings.job_id,
        engine=settings.engine,
        policy=settings.policy,
        capability=settings.capability,
        images=sum(progress.images for progress in done.values()),
        errors=sum(progress.errors for progress in done.values()),
        started_at=started_at,
        bytes_read=sum(progress.bytes_read for progress in done.values()),
        bytes_moved=moved(plan).size_bytes,
        bytes_moved_optimal=fewest_bytes_moved(list(blocks.values()), plan.loads()),
        nodes=tuple(
            _node(node_name, parts, values[node_name], done.get(node_name), speeds.get(node_name, 0.0))
            for node_name, parts in sorted(plan.parts.items())
        ),
        inputs=tuple(_input(datum) for _, datum in sorted(values.items())),
        weights=Weights(settings.weights.removeprefix("weights-")) if settings.weights else Weights("seeded", SEEDED),
    )


def _node(node_name: str, parts: tuple[Part, ...], datum: Datum, progress: Progress | None, known: float) -> NodeReport:
    images = progress.images if progress else 0
    seconds = progress.seconds if progress else 0.0
    return NodeReport(
        node_name=node_name,
        capability=datum.number(),
        planned_images=sum(part.images for part in parts),
        images=images,
        local_images=sum(part.images for part in parts if node_name in part.block.replicas),
        seconds=seconds,
        images_per_second=images / seconds if seconds else 0.0,
        known_images_per_second=0.0 if images else known,
    )


def _input(datum: Datum) -> InputValue:
    return InputValue(
        data_name=datum.data_name,
        node_name=datum.node_name,
        data_value=str(datum.data_value),
        age=float(datum.age or 0.0),
        unit=datum.unit,
        state=datum.state.value,
    )
