"""The speeds that jobs recorded, under each name that their program has had, and what judges a node that has none.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping

from collectors.run import fresh
from infosvc.wire.answers import History
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from locality.capability import Sample, check_samples
from locality.program_names import spellings

MEASURE = "perf_cpu"


def past_speeds(client: InfoClient, data_name: str, node: str) -> dict[str, History]:
    """By each name that speeds of this program stand under, a former one first; NotFound when none is registered."""
    speeds: dict[str, History] = {}
    for name in reversed(spellings(data_name)):
        try:
            speeds[name] = client.history(name, node)
        except NotFound:
            if not speeds and name == spellings(data_name)[0]:
                raise
    return speeds


def past_jobs(past: Mapping[str, History]) -> list[Sample]:
    """The jobs that these speeds are of; ValueError names the speed that is not a number, and how to delete it."""
    return [job for one in past.values() for job in _jobs(one)]


def measures(client: InfoClient, node: str | None = None) -> dict[str, float]:
    """The measure of each node that has a fresh one, or of one node; none while nobody registered it."""
    try:
        known = fresh(client.data(MEASURE, node=node))
    except NotFound:
        return {}
    return {at: datum.number() for at, datum in known.items()}


def _jobs(past: History) -> list[Sample]:
    try:
        return check_samples(Sample(past.until - at, float(text)) for at, text in past.points)
    except ValueError as error:
        remedy = f"`nodewise data rm {past.data_name} {past.node_name}` forgets what was recorded"
        raise ValueError(f"{error}; {remedy}") from error
