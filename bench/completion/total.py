"""The sum of kept parts: how soon tasks were done in each way, and which goals were not reached or not measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

from bench.completion.shapes import BUSY, SHAPES, UNEVEN
from bench.completion.ways import DOCKER, FLOOR, LEARNED, PRESSURE, RANDOM, STOCK
from bench.info.figures import quantile
from bench.parts import find_missing_parts

Records = Sequence[Mapping[str, Any]]
Pair = tuple[float, float]
Value = Callable[[Mapping[str, Any]], float]
DRAWS = 2_000
BLOCK = 5
"""Tasks; slices are multiples of it."""
BEST = "clairvoyant"
"""Not a way that was run: what a search over the places finds that knows all tasks, on a model of the nodes."""
AGAINST_STOCK = (RANDOM, PRESSURE, LEARNED, DOCKER, FLOOR)
NOT_MEASURED = ("tasks that move while they run (--move)",)


@dataclass(frozen=True)
class Goal:
    """The mean completion of one way is at most so many times that of another; with `noise`, and the floor."""

    load: float
    way: str
    other: str
    most: float
    noise: bool = False
    shape: str = BUSY.name


GOALS = (
    Goal(0.3, LEARNED, STOCK, 0.85),
    Goal(0.3, LEARNED, RANDOM, 0.70),
    Goal(0.55, LEARNED, STOCK, 0.92),
    *(Goal(load, LEARNED, STOCK, 1.02, noise=True) for load in (0.3, 0.55, 0.8)),
    *(Goal(load, LEARNED, BEST, 1.10) for load in (0.3, 0.55, 0.8)),
    *(Goal(load, LEARNED, PRESSURE, 0.93, shape=UNEVEN.name) for load in (0.3, 0.55, 0.8)),
)


@dataclass(frozen=True)
class Ratio:
    """The mean of one way as a share of another's with its 95 % interval, and the p95 and the running time likewise.

    The interval is by bootstrap over blocks of tasks that came one after another, as a task delays those after it.
    """

    mean: float
    low: float
    high: float
    p95: float
    running: float
    tasks: int


def of_shape(records: Records, shape: str) -> list[Mapping[str, Any]]:
    """The parts that were measured on workers of one shape; those of two are never put together."""
    return [record for record in records if record["shape"] == shape]


def compare(records: Records, load: float, way: str, other: str) -> Ratio | None:
    """Over all tasks of a load that both ways have done; None if there are none."""
    pairs = _pairs(records, load, way, other, _completed)
    if not pairs:
        return None
    dice = random.Random(1)  # noqa: S311 - the same table each time
    blocks = [pairs[at : at + BLOCK] for at in range(0, len(pairs), BLOCK)]
    drawn = sorted(_ratio([*chain(*dice.choices(blocks, k=len(blocks)))]) for _ in range(DRAWS))
    p95 = quantile([mine for mine, _ in pairs], 0.95) / quantile([theirs for _, theirs in pairs], 0.95)
    return Ratio(
        _ratio(pairs),
        drawn[round(0.025 * DRAWS)],
        drawn[round(0.975 * DRAWS) - 1],
        p95,
        _ratio(_pairs(records, load, way, other, _ran)),
        len(pairs),
    )


def find_missing_goals(records: Records) -> list[str]:
    """What was not reached or not measured, a sentence each."""
    missing = [line for shape in SHAPES for line in _missing_of(shape, of_shape(records, shape))]
    return missing + [f"not measured: {what}" for what in NOT_MEASURED]


def _missing_of(shape: str, records: Records) -> list[str]:
    missing = [f"not measured: {shape}, {part}" for part in find_missing_parts(list(map(dict, records)))]
    for goal in (one for one in GOALS if one.shape == shape):
        found = compare(records, goal.load, goal.way, goal.other)
        floor = compare(records, goal.load, FLOOR, STOCK) if goal.noise else None
        most = goal.most + (abs(floor.mean - 1) if floor else 0.0)
        said = f"{shape}, load {goal.load}: {goal.way} at most {most:.2f} of {goal.other}"
        if found is None:
            missing.append(f"not measured: {said}")
        elif found.mean > most:
            missing.append(f"not reached: {said}, but {found.mean:.2f}")
        if found and goal.noise and found.p95 > 1 + (abs(floor.p95 - 1) if floor else 0.0):
            said = f"{shape}, load {goal.load}: p95 of {goal.way} at most stock's"
            missing.append(f"not reached: {said}, but {found.p95:.2f}")
    return missing


def markdown(records: Records, commits: str) -> str:
    """A table for each shape and load, then what is missing."""
    lines = [f"# Completion of training tasks, {len(records)} parts at {commits}", ""]
    lines += [
        f"Each way as a share of stock YARN's, with 95 % intervals by bootstrap over blocks of {BLOCK} tasks. "
        "The running time by `docker run` has the start of its container.",
        "",
    ]
    for shape in SHAPES:
        lines += _tables(shape, of_shape(records, shape))
    return "\n".join([*lines, *(f"- {goal}" for goal in find_missing_goals(records)), ""])


def _tables(shape: str, records: Records) -> list[str]:
    lines = []
    for load in sorted({one["load"] for record in records for one in record["slices"]}):
        lines += [
            f"## Workers: {shape}, load {load}",
            "",
            "| way | completion | 95 % | p95 | running | of pressure's | of clairvoyant's | tasks |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(records, load, way) for way in AGAINST_STOCK),
            "",
        ]
    return lines


def _line(records: Records, load: float, way: str) -> str:
    found, best = compare(records, load, way, STOCK), compare(records, load, way, BEST)
    if found is None:
        return f"| {way} | not measured | | | | | | |"
    cells = (f"{found.mean:.2f}", f"{found.low:.2f} to {found.high:.2f}", f"{found.p95:.2f}", f"{found.running:.2f}")
    pressure = compare(records, load, way, PRESSURE)
    of_pressure = f"{pressure.mean:.2f}" if pressure else ""
    of_best = f"{best.mean:.2f}" if best and way != DOCKER else ""  # the model has YARN's time around a program
    return f"| {way} | {' | '.join(cells)} | {of_pressure} | {of_best} | {found.tasks} |"


def _pairs(records: Records, load: float, way: str, other: str, value: Value) -> list[Pair]:
    pairs: list[Pair] = []
    for record in records:
        for one in record["slices"]:
            if one["load"] == load and not {way, other} - one["ways"].keys() - {BEST}:
                pairs += zip(_values(one, way, value), _values(one, other, value), strict=True)
    return pairs


def _values(one: Mapping[str, Any], way: str, value: Value) -> list[float]:
    return list(one["best"]) if way == BEST else [value(row) for row in one["ways"][way]]


def _completed(row: Mapping[str, Any]) -> float:
    return float(row["completed"])


def _ran(row: Mapping[str, Any]) -> float:
    return float(row["completed"] - row["waited"])


def _ratio(pairs: Sequence[Pair]) -> float:
    return fmean(mine for mine, _ in pairs) / fmean(theirs for _, theirs in pairs)
