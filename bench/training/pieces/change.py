"""Nodes that change: background load that is drawn anew every 30 s, and a node that becomes four times slower."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.training.bound import Speeds, most_steps
from bench.training.nodes import Nodes
from bench.training.pieces.place import Found, Place
from bench.training.pieces.speed import EQUAL, UNEVEN
from bench.training.progress import advances, speeds_of_last_steps, steps_between, steps_until_fit
from bench.training.runs import Run, ddp, ours

BATCH = 1024
PHASES = 4
PHASE_SECONDS, QUICK_SECONDS = 30.0, 5.0
MOST_BURNERS = 3
SLOWER = 4.0
SLOWER_ROUNDS = 2
STEPS_BETWEEN = 30
"""From one change of a node to the next."""
LAST_STEPS = STEPS_BETWEEN // 2
"""In which a node is as fast as it stays."""
TOLERANCE = 1.2
"""Shares fit when the step is at most so much longer than with the best ones."""

Load = tuple[int, ...]


def changing(place: Place) -> Found:
    """Steps that are done while load comes and goes, each way under the same load; the bound knows it in advance."""
    found: Found = {f"changing_{name}": [] for name in ("of_bound", "ours_of_equal", "ours_of_fixed", "noise")}
    for number in range(place.rounds or 1):
        with place.nodes(UNEVEN) as made:
            loads = [tuple(place.chance.randint(0, MOST_BURNERS) for _ in UNEVEN) for _ in range(PHASES)]
            speeds = [_speeds(place, made, load) for load in loads]
            order = ["ours", "equal", "equal again", "fixed"]
            place.chance.shuffle(order)
            steps = {name: _under(place, made, name, loads, speeds[0]) for name in order}
        bound = most_steps([(_phase(place), one) for one in speeds], BATCH)
        place.say(f"changing, round {number + 1}, load {loads}: bound {bound:.0f} steps, {steps}")
        found["changing_of_bound"].append(bound / steps["ours"])
        found["changing_ours_of_equal"].append(2 * steps["ours"] / (steps["equal"] + steps["equal again"]))
        found["changing_ours_of_fixed"].append(steps["ours"] / steps["fixed"])
        found["changing_noise"].append(steps["equal again"] / steps["equal"])
    return found


def _phase(place: Place) -> float:
    return QUICK_SECONDS if place.quick else PHASE_SECONDS


def _speeds(place: Place, made: Nodes, load: Load) -> Speeds:
    made.load(load)
    speeds = place.speeds(made, BATCH)
    made.load([0] * len(load))
    return speeds


def _under(place: Place, made: Nodes, way: str, loads: Sequence[Load], first: Speeds) -> float:
    """Steps in all phases; it begins to count when all members compute."""
    members = len(made.names)
    settings = place.settings(made, BATCH, shares=first.shares(BATCH) if way == "fixed" else None)
    with (ours if way == "ours" else ddp)(settings, members) as run:
        run.wait_for_step(1)
        began = time.monotonic()
        try:
            for number, load in enumerate(loads):
                made.load(load)
                time.sleep(max(0.0, began + (number + 1) * _phase(place) - time.monotonic()))
        finally:
            made.load([0] * members)
        return steps_between(advances(run.rows()), began, time.monotonic())


def slower(place: Place) -> Found:
    """Whole steps until shares fit after a node gets a quarter of its CPU, and after it gets it back.

    Where it did not become that much slower, as others take the CPU, nothing was measured.
    """
    found: Found = {"slower_steps": [], "faster_steps": [], "slower_times": []}
    with place.nodes(EQUAL, must_limit=True) as made, ours(place.settings(made, BATCH), len(EQUAL)) as run:
        _more_steps(run, STEPS_BETWEEN)
        order = list(range(len(EQUAL))) * (place.rounds or SLOWER_ROUNDS)
        place.chance.shuffle(order)
        for node in order:
            usual = speeds_of_last_steps(run.rows(), LAST_STEPS)[node]
            slow, after = _change(run, made, node, EQUAL[node] / SLOWER)
            times = usual / slow
            _, after_that = _change(run, made, node, EQUAL[node])
            place.say(
                f"node {node} {times:.1f} times slower: shares fit after {after} steps, {after_that} after its end"
            )
            found["slower_times"].append(times)
            if times > SLOWER / 2:
                found["slower_steps"].append(after)
                found["faster_steps"].append(after_that)
    return found


def _change(run: Run, made: Nodes, node: int, cpus: float) -> tuple[float, int]:
    """The speed of a node that has so many CPUs, and after how many steps shares fit; all steps where they never do."""
    at = time.monotonic()
    made.limit(node, cpus)
    _more_steps(run, STEPS_BETWEEN)
    rows = run.rows()
    speeds = speeds_of_last_steps(rows, LAST_STEPS)
    count = steps_until_fit(rows, at, speeds, BATCH, TOLERANCE)
    return speeds.get(node, 0.0) or 1.0, STEPS_BETWEEN if count is None else count


def _more_steps(run: Run, count: int) -> None:
    rows = run.rows()
    run.wait_for_step(count + max((row.steps for row in rows), default=0))


PIECES = {"changing": changing, "slower": slower}
