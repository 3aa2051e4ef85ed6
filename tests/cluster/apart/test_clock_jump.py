"""A job whose machines' clocks jump by ten minutes: a cluster of its own, whose daemons start below libfaketime."""

from __future__ import annotations

import random
from pathlib import Path

import psutil

from bench.clocks import jumping_clocks
from bench.faults import trials
from bench.stage import stage
from hadoop.local import daemons
from hadoop.local.daemons import Daemon

PICTURES = 200


def test_clocks_that_jump_lose_no_image(tmp_path: Path) -> None:
    with jumping_clocks() as clocks, stage(tmp_path / "home", PICTURES, nodes=2) as made:
        made.clocks = clocks
        made.judge([1.0, 2.0])
        forwards, back = (trials.run(made, 1, ["clock_jump"], random.Random(seed), PICTURES) for seed in (1, 4))
        manager = daemons.find_running(made.cluster)[Daemon(made.cluster, "nodemanager", made.cluster.nodes[0])]

        for outcome in (forwards, back):
            assert outcome.wrong == []
            assert outcome.faults == ["clock_jump"]
            assert outcome.rows == PICTURES
        assert psutil.Process(manager.pid).environ()["FAKETIME_TIMESTAMP_FILE"].startswith(str(clocks.folder))
