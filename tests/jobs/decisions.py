"""A decision as a job makes it, without a cluster: a policy's own plan of invented blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from jobs.division.decision import CapabilityReadings, Decision, Reading
from jobs.division.starts import in_plan_time
from locality.policies import policy
from locality.quality import measure_quality
from locality.types import NO_TERMS, Block, Terms

NODES = ("alpha", "beta", "gamma")
WEIGHTS = {"alpha": 1.0, "beta": 2.0, "gamma": 5.0}


def make_blocks(count: int = 40, images: int = 1) -> list[Block]:
    """Blocks of growing size, each on two neighbouring nodes; alpha is the best place of every second one."""
    homes = [("alpha", "beta"), ("beta", "gamma"), ("alpha", "gamma"), ("gamma", "alpha")]
    return [
        Block(f"/data/images/{number:03}.jpg", images, images * (1000 + number), homes[number % 4])
        for number in range(count)
    ]


def capability(values: Mapping[str, float], confidence: float | None = 0.8) -> CapabilityReadings:
    """Readings that are 12 seconds old."""
    readings = {node: Reading(value, 12.0, "fresh", confidence) for node, value in values.items()}
    return CapabilityReadings("images/second", "processor", "processors/judge.py", "What a node does", readings)


def decide(
    name: str = "algorithm1",
    weights: Mapping[str, float] = WEIGHTS,
    blocks: Sequence[Block] = tuple(make_blocks()),
    terms: Terms = NO_TERMS,
    speeds: Mapping[str, float] = MappingProxyType({}),
    start_seconds: Mapping[str, float] = MappingProxyType({}),
) -> Decision:
    """What the policy called `name` makes of it; beside `weight` it records `level`, and `halfway` of one node only."""
    terms = replace(terms, starts=in_plan_time(start_seconds, speeds, weights))
    plan = policy(name)(blocks, weights, terms)
    return Decision(
        job_id="application_1700000000000_0001",
        made_at="2026-01-02T03:04:05+00:00",
        input="/data/images",
        engine="mxnet_alexnet",
        batch=32,
        policy=name,
        capability="weight",
        capabilities={
            "weight": capability(weights),
            "level": capability(dict.fromkeys(weights, 1.0), None),
            "halfway": capability({"alpha": 1.0}),
        },
        speeds=dict(speeds),
        terms=terms,
        blocks=list(blocks),
        plan=plan,
        quality=measure_quality(plan, blocks, weights, terms),
        planning_seconds=0.001,
        start_seconds=dict(start_seconds),
    )
