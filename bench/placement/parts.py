"""The three parts of the bench; each adds what it measures to what was found so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench.info.errors import BenchError
from bench.info.figures import quantile
from bench.placement import planning
from bench.placement.figures import time_key
from bench.placement.instances import KINDS, invent
from bench.placement.methods import METHODS, MOST_BLOCKS, PLANNERS, PULL
from bench.placement.scale import Scale
from locality.baselines import FirstCome, Static
from locality.leases import Leases
from locality.quality import Quality, measure_quality, optimum_of
from locality.rules import Rules
from locality.simulation import invented
from locality.simulation.invented import Fault, Shape, Trial
from locality.simulation.simulate import Outcome, simulate

Say = Callable[[str], None]
SIGMA = 0.3
HEARD = Rules(lease_seconds=math.inf)
"""A simulated worker is heard of until the cluster says that it is lost."""


@dataclass
class Found:
    """Method -> name of a figure -> its values; and in words, what was left out and why."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def of(self, method: str, figure: str) -> list[float]:
        """The values of one cell, to be added to."""
        return self.values.setdefault(method, {}).setdefault(figure, [])

    def worst(self, method: str, figure: str, value: float) -> None:
        """Keep the largest value alone."""
        cell = self.of(method, figure)
        cell[:] = [max([*cell, value])]


def makespan(scale: Scale, say: Say, found: Found) -> None:
    """Simulated on 4 nodes with 400 pictures, all methods on the same trials."""
    for fault in Fault:
        say(f"simulating: {fault.value}")
        trials = [invented.invent(seed, Shape(sigma=SIGMA, fault=fault)) for seed in range(scale.trials)]
        for method in METHODS:
            alone, stealing = zip(*(_simulate(method, trial) for trial in trials), strict=True)
            ratios, name = [ratio for ratio, _ in stealing], fault.name.lower()
            found.of(method, f"stealing_{name}").append(median(ratios))
            found.of(method, f"stealing_{name}_p95").append(quantile(ratios, 0.95))
            found.of(method, f"stealing_{name}_moved").append(median(moved for _, moved in stealing))
            found.of(method, f"alone_{name}").append(median(ratio for ratio, _ in alone))


def _simulate(method: str, trial: Trial) -> tuple[tuple[float, float], tuple[float, float]]:
    """Makespan over bound and share of bytes moved: of the plan alone, and with stealing. Pulling is both at once."""
    if method == PULL:
        pulled = _ratios(trial, simulate(FirstCome(trial.blocks), trial.cluster))
        return pulled, pulled
    plan = PLANNERS[method](trial.blocks, trial.capability)
    leases = Leases(plan, trial.capability, 0.0, HEARD)
    return (
        _ratios(trial, simulate(Static(plan), trial.cluster)),
        _ratios(trial, simulate(leases, trial.cluster)),
    )


def _ratios(trial: Trial, outcome: Outcome) -> tuple[float, float]:
    stored = sum(block.size_bytes for block in trial.blocks)
    return outcome.makespan_seconds / trial.cluster.bound(trial.blocks), outcome.moved_bytes / stored


def measure_bytes(scale: Scale, say: Say, found: Found) -> None:
    """Plans of random instances, judged."""
    for kind, about in KINDS.items():
        for seed in range(scale.seeds):
            say(f"counting bytes: {kind}, {seed + 1} of {scale.seeds}")
            instance = invent(about, scale.nodes, scale.blocks, seed)
            least = optimum_of(instance.blocks, instance.capability, instance.terms)
            for method, planner in PLANNERS.items():
                plan = planner(instance.blocks, instance.capability, instance.terms)
                quality = measure_quality(plan, instance.blocks, instance.capability, instance.terms, optimum=least)
                _count(found, method, kind, quality, sum(block.size_bytes for block in instance.blocks))


def _count(found: Found, method: str, kind: str, quality: Quality, stored: int) -> None:
    over = quality.bytes_moved_over_optimal
    ratio = math.inf if over is None else over
    found.of(method, f"over_{kind}").append(ratio)
    found.worst(method, f"over_{kind}_worst", ratio)
    found.of(method, f"local_{kind}").append(1 - quality.bytes_moved / stored)
    found.of(method, f"best_local_{kind}").append(1 - quality.bytes_moved_optimal / stored)
    found.worst(method, f"plan_{kind}", quality.makespan_over_bound)


def times(scale: Scale, say: Say, found: Found) -> None:
    """Each plan in a fresh process, all methods in turns; one that did not end is not tried again."""
    for kind, sizes in (("uniform", scale.sizes), ("skewed", scale.hard)):
        for nodes, blocks in sizes:
            _in_turns(kind, nodes, blocks, scale.rounds, say, found)


def _in_turns(kind: str, nodes: int, blocks: int, rounds: int, say: Say, found: Found) -> None:
    what = f"planning {nodes:,} nodes x {blocks:,} blocks, {kind}"
    able = [method for method in PLANNERS if blocks <= MOST_BLOCKS.get(method, blocks)]
    found.left_out += [
        f"{what}: {method} is left out above {MOST_BLOCKS[method]:,} blocks"
        for method in PLANNERS
        if method not in able
    ]
    for number in range(1, rounds + 1):
        for method in list(able):
            say(f"{what}, round {number} of {rounds}: {method}")
            try:
                measured = planning.measure(method, kind, nodes, blocks)
            except BenchError as error:
                able.remove(method)
                found.left_out.append(f"{what}: {method} {error}")
                say(found.left_out[-1])
                continue
            for name, value in measured.items():
                found.of(method, f"{time_key(kind, nodes, blocks)}_{name}").append(value)


MEASURES: dict[str, Callable[[Scale, Say, Found], None]] = {"makespan": makespan, "bytes": measure_bytes, "time": times}
