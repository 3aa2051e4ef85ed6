"""The tables of one part or of all that are kept, and which goals were not reached or not measured."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from bench import asked
from bench.asked import Readings, Values
from bench.asked import Records as Records
from bench.inference.figures import ASKED, PHASES, SCENES, SIZES, derive, key_of, name_ways
from bench.info.figures import LINE_HEAD
from bench.table_rows import write_head, write_row

TITLES = ("way", "begins, s", "first row, s", "last row, s", "all in place, s", "slowest node idle, s", "bound, s")


def gather(records: Records) -> dict[str, Values]:
    """All readings of each figure."""
    return derive(asked.gather(records))


def values(records: Records) -> dict[str, float]:
    """Of each figure that was measured."""
    return asked.find_values(ASKED, gather(records))


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured or not reached, a sentence each."""
    return asked.find_missing(ASKED, records, gather(records))


def markdown(records: Records, title: str) -> str:
    """The figures, then where the time of each way goes, then what was measured on which machine, and what not."""
    found = gather(records)
    lines = asked.write_lines(ASKED, found)
    ways = [line for scene in SCENES for pictures in SIZES for line in _write_ways(found, scene, pictures)]
    told = [_describe(record) for record in records]
    missing = [f"- {goal}" for goal in find_missing_goals(records)]
    return "\n".join([f"# Inference, {title}", "", *LINE_HEAD, *lines, "", *ways, *told, "", *missing, ""])


def _write_ways(found: Readings, scene: str, pictures: int) -> list[str]:
    """A row for each way that was measured, Spark at its best first; medians of the rounds."""
    rows = []
    for way, text in name_ways(pictures).items():
        keys = [key_of(scene, pictures, way, phase) for phase in PHASES]
        if any(key in found for key in keys):
            rows.append(write_row([text, *(f"{median(found[key]):.2f}" if key in found else "" for key in keys)]))
    return [f"## {scene.capitalize()} nodes, {pictures:,} images", "", *write_head(TITLES), *rows, ""] if rows else []


def _describe(record: Mapping[str, Any]) -> str:
    return f"{asked.describe_part(record)} {record['shape']}. It took {record['seconds'] / 60:.0f} minutes."
