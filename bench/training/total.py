"""The table of one part or of all that are kept, and which goals were not reached or not measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench import asked
from bench.asked import Records as Records
from bench.asked import Values
from bench.info.figures import LINE_HEAD
from bench.training.figures import ASKED, derive


def gather(records: Records) -> dict[str, Values]:
    """All readings of each figure."""
    return {key: values for key, values in derive(asked.gather(records)).items() if values}


def values(records: Records) -> dict[str, float]:
    """Of each figure that was measured."""
    return asked.find_values(ASKED, gather(records))


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured or not reached, a sentence each."""
    found = gather(records)
    measured = {piece for record in records for piece in record["pieces"]}
    pieces = dict.fromkeys(one.figure.part for one in ASKED)
    missing = [f"not measured: {piece}" for piece in pieces if piece not in measured]
    missing += asked.find_failed(records)
    missing += asked.find_unmeasured([one for one in ASKED if one.figure.part in measured], found)
    return missing + asked.find_unreached(ASKED, found)


def markdown(records: Records, title: str) -> str:
    """A line for each figure that was measured, then what was measured on which machine, then what is missing."""
    lines = asked.write_lines(ASKED, gather(records))
    told = [_scene(record) for record in records]
    missing = [f"- {goal}" for goal in find_missing_goals(records)]
    return "\n".join([f"# Training, {title}", "", *LINE_HEAD, *lines, "", *told, "", *missing, ""])


def _scene(record: Mapping[str, Any]) -> str:
    throttled = record["throttled"]
    limits = "nodes were not limited, but pinned to CPUs" if not record["is_limited"] else "nodes were control groups"
    used_up = f", and had used up their CPU in {throttled:.0%} of all periods" if throttled is not None else ""
    return (
        f"{asked.describe_part(record)} Where a piece limits nodes, {limits}{used_up}. "
        f"It took {record['seconds'] / 60:.0f} minutes."
    )
