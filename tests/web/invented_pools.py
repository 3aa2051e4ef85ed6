"""What the board tells of pools without a cluster: one of the caller's, which works, and one of another user."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from flask import jsonify
from flask.typing import ResponseReturnValue

from infosvc.wire.errors import NotFound
from infosvc.wire.fields import answer_of
from jobs.dashboard.pool_answers import ListedPool, ListedPools, PoolJob, PoolWorker, ShownPool
from jobs.kinds.pool.wishes import READY

PHOTOS, THEIRS = "application_1700000000000_0005", "application_1700000000000_0006"
WORKS, ENDED = "pool_1700000000000_0005_2", "pool_1700000000000_0005_1"


@dataclass
class InventedPools:
    """The board's calls of pools; tests may change what there is while a page looks at it."""

    listed: tuple[ListedPool, ...] = field(default_factory=lambda: _listed())
    shown: ShownPool = field(default_factory=lambda: _shown())

    def views(self) -> dict[str, Any]:
        """What answers, by rule."""
        return {"/pools": self.pools, "/pools/<pool>": self.pool}

    def pools(self) -> ResponseReturnValue:
        """GET /pools."""
        return jsonify(answer_of(ListedPools(self.listed)))

    def pool(self, pool: str) -> ResponseReturnValue:
        """GET /pools/NAME."""
        if pool != self.shown.name:
            raise NotFound(f"there is no pool {pool}: me has {self.shown.name}")
        return jsonify(answer_of(self.shown))


def _listed() -> tuple[ListedPool, ...]:
    now = time.time()
    mine = ListedPool("photos", PHOTOS, "me", "root.default", "RUNNING", now - 600, own=True)
    return mine, ListedPool("paintings", THEIRS, "you", "root.default", "ACCEPTED", now - 60, own=False)


def _shown() -> ShownPool:
    nodes = (
        PoolWorker("n1", "working", 20, 12, 0, 12, 2, 4.5, said=READY),
        PoolWorker("n2", "working", 20, 0, 0, 0, 0, 0.0),
    )
    return ShownPool(
        name="photos",
        job_id=PHOTOS,
        kind="classify",
        engine="onnx",
        model="alexnet",
        model_file=None,
        batch=8,
        vcores=1,
        queue="root.default",
        most_nodes=None,
        best_by=None,
        most_jobs=16,
        idle_seconds=1800.0,
        idle="30m",
        ends_in=None,
        headline="works",
        silent_seconds=0.0,
        nodes=nodes,
        jobs=(
            PoolJob(ENDED, "failed", "/out/<b>1</b> exists", "/out/<b>1</b>", 1.0, 3, 40, 1),
            PoolJob(WORKS, "running", "", "/out/2", 2.0, 12, 40, 0),
        ),
        said="",
    )
