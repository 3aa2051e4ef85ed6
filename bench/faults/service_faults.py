"""What can become of the information service in the middle of a job."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.stage import Stage
from infosvc.wire.records import Kind, Producer

LOCKED_SECONDS = 10.0
WRITES = 20


def end(stage: Stage) -> list[str]:
    """It is killed and stays away."""
    if stage.service:
        stage.service.kill()
        stage.service.wait(30)
    return []


def restart(stage: Stage) -> list[str]:
    """It is killed in the middle of writes, and comes back at once with all that it had acknowledged."""
    for number in range(WRITES):
        _write(stage, number)
    end(stage)
    stage.serve()
    return _find_lost(stage)


def restore(stage: Stage) -> list[str]:
    """It is killed, and comes back with what its database held before the job."""
    end(stage)
    for suffix in ("-wal", "-shm"):
        _database(stage).with_name(_database(stage).name + suffix).unlink(missing_ok=True)
    _database(stage).write_bytes(_backup(stage).read_bytes())
    stage.serve()
    return []


def lock(stage: Stage) -> list[str]:
    """It goes on, but its database is kept from it for a while; what it acknowledged before is there afterwards."""
    for number in range(WRITES):
        _write(stage, number)
    with closing(sqlite3.connect(_database(stage), timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(LOCKED_SECONDS)
        other.execute("ROLLBACK")
    return _find_lost(stage)


WAYS: tuple[Callable[[Stage], list[str]], ...] = (end, restart, restore, lock)
"""Each returns what it found wrong."""


def back_up(stage: Stage) -> None:
    """Keep what the database holds now, for `restore`."""
    _backup(stage).unlink(missing_ok=True)
    with closing(sqlite3.connect(_database(stage))) as now:
        now.execute("VACUUM INTO ?", (str(_backup(stage)),))


def _write(stage: Stage, number: int) -> None:
    stage.client().put_producer(Producer(f"bench_written_{number}", cmd="", time_max=86400, kind=Kind.PROGRAM))


def _find_lost(stage: Stage) -> list[str]:
    names = {producer.data_name for producer in stage.client().producers()}
    lost = [number for number in range(WRITES) if f"bench_written_{number}" not in names]
    for number in range(WRITES):
        if number not in lost:
            stage.client().delete_producer(f"bench_written_{number}")
    return [f"{len(lost)} of {WRITES} acknowledged writes were lost"] if lost else []


def _database(stage: Stage) -> Path:
    return stage.cluster.home / "service" / "infosvc.db"


def _backup(stage: Stage) -> Path:
    return _database(stage).with_suffix(".before")
