"""Figures of a bench in parts: how each follows from the readings of all parts, and which goals are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.info.figures import Figure, line_of

Values = Sequence[float]
Readings = Mapping[str, Values]
"""By the key of a figure."""
Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A figure, and how its value follows from all readings."""

    figure: Figure
    value: Callable[[Values], float] = median

    @property
    def is_goal(self) -> bool:
        """Whether anything must be reached."""
        return self.figure.most is not None or self.figure.least is not None


def gather(records: Records) -> dict[str, list[float]]:
    """All readings of each figure."""
    found: dict[str, list[float]] = {}
    for record in records:
        for key, values in record["readings"].items():
            found.setdefault(key, []).extend(values)
    return found


def find_values(asked: Iterable[Asked], readings: Readings) -> dict[str, float]:
    """The value of each figure that was measured."""
    return {one.figure.key: one.value(readings[one.figure.key]) for one in asked if one.figure.key in readings}


def find_failed(records: Records) -> list[str]:
    """Which pieces could not be measured and why, a sentence each."""
    return [f"failed: {name}: {why}" for record in records for name, why in record["failed"].items()]


def find_unmeasured(asked: Iterable[Asked], readings: Readings) -> list[str]:
    """The goals that nothing is known of, a sentence each."""
    goals = [one.figure for one in asked if one.is_goal and one.figure.key not in readings]
    return [f"not measured: {one.part}: {one.text}" for one in goals]


def find_unreached(asked: Iterable[Asked], readings: Readings) -> list[str]:
    """The goals that were not reached, with what was found, a sentence each."""
    found = find_values(asked, readings)
    goals = [one.figure for one in asked if one.figure.key in found]
    return [
        f"not reached: {one.part}: {one.text}: {one.text_of(found[one.key])}"
        for one in goals
        if one.is_met(found[one.key]) is False
    ]


def find_missing(asked: Sequence[Asked], records: Records, readings: Readings) -> list[str]:
    """What failed, was not measured or was not reached, a sentence each."""
    return [*find_failed(records), *find_unmeasured(asked, readings), *find_unreached(asked, readings)]


def write_lines(asked: Iterable[Asked], readings: Readings) -> list[str]:
    """A line of the table for each figure that was measured."""
    known = [one for one in asked if one.figure.key in readings]
    return [line_of(one.figure, one.value(readings[one.figure.key]), readings[one.figure.key]) for one in known]


def describe_part(record: Mapping[str, Any]) -> str:
    """When and on which machine a part was measured, with its pieces and versions."""
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"- {record['date']}, part {record['part'][0]}/{record['part'][1]}, seed {record['seed']} "
        f"({', '.join(record['pieces'])}): {machine['cores']} cores ({machine['cpu']}), {versions}. "
        f"Load before: {record['load_before']:.1f}, the host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others."
    )
