"""The table of one part or of all that are kept, and which goals were not reached or not measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench import asked
from bench.asked import Records as Records
from bench.asked import Values
from bench.info.figures import LINE_HEAD
from bench.secure.figures import ASKED, VIEWS, derive


def gather(records: Records) -> dict[str, Values]:
    """All readings of each figure."""
    return derive(asked.gather(records))


def values(records: Records) -> dict[str, float]:
    """Of each figure that was measured."""
    return asked.find_values(ASKED, gather(records))


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured or not reached, a sentence each."""
    found = gather(records)
    # They are no goals, and asked for all the same.
    views = [one.figure for one in ASKED if one.figure.part == VIEWS and one.figure.key not in found]
    return asked.find_missing(ASKED, records, found) + [f"not measured: {view.part}: {view.text}" for view in views]


def markdown(records: Records, title: str) -> str:
    """A line for each figure that was measured, then what was measured on which machine, then what is missing."""
    lines = asked.write_lines(ASKED, gather(records))
    told = [_scene(record) for record in records]
    missing = [f"- {goal}" for goal in find_missing_goals(records)]
    return "\n".join([f"# Kerberos and failover, {title}", "", *LINE_HEAD, *lines, "", *told, "", *missing, ""])


def _scene(record: Mapping[str, Any]) -> str:
    size = record["size"]
    return (
        f"{asked.describe_part(record)} Clusters of {size['nodes']} nodes; {size['pictures']:,} pictures in a job, "
        f"{size['long_pictures']:,} in one that is hit, {size['files']:,} files in a listing. "
        f"It took {record['seconds'] / 60:.0f} minutes."
    )
