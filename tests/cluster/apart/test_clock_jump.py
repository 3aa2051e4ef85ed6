"""A job whose machines' clocks jump, and whose disks are full or slow: a cluster that is started for it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import psutil
import pytest

from bench.faults import trials
from bench.faults.local import Local, local
from bench.faults.trials import Outcome
from bench.faults.volumes import find_obstacle
from hadoop.local import daemons
from hadoop.local.daemons import Daemon

PICTURES = 200


def test_clocks_that_jump_and_disks_without_room_lose_no_image(tmp_path: Path) -> None:
    with local(tmp_path / "home", PICTURES, nodes=2) as place:
        kinds = ["full_disk", *([] if find_obstacle() else ["slow_disk"])] if place.volumes else []
        forwards, back = (_run(place, 1, ["clock_jump"], seed) for seed in (1, 4))
        disks = _run(place, 2, kinds, 1)
        cluster, clocks = place.stage.cluster, place.stage.clocks
        manager = daemons.find_running(cluster)[Daemon(cluster, "nodemanager", cluster.nodes[0])]

        for outcome, wanted in ((forwards, ["clock_jump"]), (back, ["clock_jump"]), (disks, kinds)):
            assert outcome.wrong == []
            assert outcome.faults + outcome.missed == wanted
            assert outcome.faults[:1] == wanted[:1]
            assert outcome.rows == PICTURES
            assert outcome.writes > 0
        assert clocks
        assert psutil.Process(manager.pid).environ()["FAKETIME_TIMESTAMP_FILE"].startswith(str(clocks.folder))
    if os.geteuid():
        pytest.skip("only root can mount volumes that are full or slow")


def _run(place: Local, number: int, kinds: list[str], seed: int) -> Outcome:
    """A job that meets the first of these faults at least: where that came too late for one, there is one more."""
    for _ in range(3):
        outcome = trials.run(place, number, kinds, random.Random(seed), PICTURES)
        if outcome.wrong or outcome.faults[:1] == kinds[:1]:
            break
    return outcome
