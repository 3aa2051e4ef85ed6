"""The table of one part or of all that are kept, and which goals were not reached or not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.info.figures import LINE_HEAD, line_of
from bench.training.figures import ASKED, Asked, Values, derive

Records = Sequence[Mapping[str, Any]]


def gather(records: Records) -> dict[str, Values]:
    """All readings of each figure."""
    found: dict[str, list[float]] = {}
    for record in records:
        for key, values in record["readings"].items():
            found.setdefault(key, []).extend(values)
    return {key: values for key, values in derive(found).items() if values}


def values(records: Records) -> dict[str, float]:
    """Of each figure that was measured."""
    readings = gather(records)
    return {one.figure.key: one.value(readings[one.figure.key]) for one in ASKED if one.figure.key in readings}


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured or not reached, a sentence each."""
    found = values(records)
    measured = {piece for record in records for piece in record["pieces"]}
    pieces = dict.fromkeys(one.figure.part for one in ASKED)
    missing = [f"not measured: {piece}" for piece in pieces if piece not in measured]
    missing += [f"failed: {name}: {why}" for record in records for name, why in record["failed"].items()]
    for one in ASKED:
        figure = one.figure
        if figure.most is None and figure.least is None:
            continue
        if figure.key not in found and figure.part in measured:
            missing.append(f"not measured: {figure.part}: {figure.text}")
        if figure.key in found and not figure.is_met(found[figure.key]):
            missing.append(f"not reached: {figure.part}: {figure.text}: {figure.text_of(found[figure.key])}")
    return missing


def markdown(records: Records, title: str) -> str:
    """A line for each figure that was measured, then what was measured on which machine, then what is missing."""
    readings = gather(records)
    lines = [_line(one, readings[one.figure.key]) for one in ASKED if one.figure.key in readings]
    told = [_scene(record) for record in records]
    missing = [f"- {goal}" for goal in find_missing_goals(records)]
    return "\n".join([f"# Training, {title}", "", *LINE_HEAD, *lines, "", *told, "", *missing, ""])


def _line(asked: Asked, readings: Values) -> str:
    return line_of(asked.figure, asked.value(readings), readings)


def _scene(record: Mapping[str, Any]) -> str:
    machine, throttled = record["machine"], record["throttled"]
    limits = "nodes were not limited, but pinned to CPUs" if not record["is_limited"] else "nodes were control groups"
    used_up = f", and had used up their CPU in {throttled:.0%} of all periods" if throttled is not None else ""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"- {record['date']}, part {record['part'][0]}/{record['part'][1]}, seed {record['seed']} "
        f"({', '.join(record['pieces'])}): {machine['cores']} cores ({machine['cpu']}), {versions}. "
        f"Load before: {record['load_before']:.1f}, the host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others. "
        f"Where a piece limits nodes, {limits}{used_up}. It took {record['seconds'] / 60:.0f} minutes."
    )
