"""Whatever is killed in the middle of a job, every image has one row in the end, and nothing is left running."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bench.faults import trials
from bench.faults.faults import FAULTS
from bench.stage import Stage, on_cluster
from tests.cluster.standing import Standing

PICTURES = 480
SEED = 765
"""Its first draw lies at 5 % of the job, so that the job is there for its first fault whatever the machine does."""
JOBS = (
    ("process", "worker", "nodemanager"),
    ("namenode", "master", "frozen"),
    ("zombie_master",),
    ("stuck", "resourcemanager"),
    ("client", "node"),
    ("service", "datanode"),
    ("job",),
)
"""The faults of each; what takes long, to do or to mend, comes last, lest the job ends meanwhile."""


@pytest.fixture(scope="module")
def stage(standing: Standing) -> Iterator[Stage]:
    """The shared cluster, whose daemons are killed here; whoever uses it next mends it."""
    standing.end_site()
    with on_cluster(standing.cluster(), PICTURES) as stage:
        stage.judge([1.0, 1.0, 1.0, 2.0])
        yield stage


@pytest.mark.parametrize("kinds", JOBS, ids="-".join)
def test_no_picture_is_lost(stage: Stage, kinds: tuple[str, ...]) -> None:
    left = list(kinds)
    while left:  # what came too late for a job gets one more, in which it comes earlier
        outcome = trials.run(stage, JOBS.index(kinds), left, random.Random(SEED), PICTURES)

        assert outcome.wrong == [], outcome
        assert outcome.rows == PICTURES
        assert outcome.faults, outcome
        left = outcome.missed


def test_every_kind_of_fault_is_among_them() -> None:
    assert sorted(kind for kinds in JOBS for kind in kinds) == sorted(
        set(FAULTS) - {"clock_jump"}
    )  # test_clock_jump.py
