"""Whatever is killed in the middle of a job, every image has one row in the end, and nothing is left running."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bench.faults import service_faults, trials
from bench.faults.kinds import find_kinds
from bench.faults.local import Local
from bench.faults.place import Trial
from bench.faults.writer import Writer
from bench.stage import on_cluster, until
from tests.cluster.many_pictures import load_pictures
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
MOST_IN_VAIN = 2
"""Jobs that end before anything hits them, on a machine that pauses as they begin."""
SELDOM = (("zombie_master",), ("stuck", "resourcemanager"), ("client", "node"))
"""Those that a usual run leaves out; bench.faults has them, too."""


@pytest.fixture(scope="module")
def place(standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """The shared cluster, whose daemons are killed here; whoever uses it next mends it."""
    standing.end_site()
    cluster = standing.cluster()
    load_pictures(cluster, tmp_path_factory.mktemp("pictures"), PICTURES)
    with on_cluster(cluster, PICTURES) as stage:
        stage.judge([1.0, 1.0, 1.0, 2.0])
        yield Local(stage)


@pytest.mark.parametrize("kinds", JOBS, ids="-".join)
def test_no_picture_is_lost(place: Local, kinds: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    if kinds in SELDOM:
        request.getfixturevalue("only_when_long")
    left, in_vain = list(kinds), 0
    while left:  # what came too late for a job gets one more, in which it comes earlier
        outcome = trials.run(place, JOBS.index(kinds), left, random.Random(SEED), PICTURES)

        assert outcome.wrong == [], outcome
        assert outcome.rows == PICTURES
        in_vain += not outcome.faults
        assert in_vain <= MOST_IN_VAIN, outcome
        left = outcome.missed


def test_every_kind_of_fault_is_among_them() -> None:
    apart = {"clock_jump", "full_disk", "slow_disk"}  # apart/test_clock_jump.py
    assert sorted(kind for kinds in JOBS for kind in kinds) == sorted(set(find_kinds("local")) - apart)


def test_a_write_that_was_acknowledged_and_is_gone_is_found(place: Local) -> None:
    writer = Writer(place.client)
    writer.register()
    place.back_up()
    writer.start()
    until(lambda: writer.count > 3, 120, "something is acknowledged")
    writer.stop()
    forgetful = Writer(place.client)

    service_faults.restore(Trial(place, None, "", random.Random(SEED), forgetful))

    assert f"of {writer.count} acknowledged writes were lost" in writer.find_lost()[0]
