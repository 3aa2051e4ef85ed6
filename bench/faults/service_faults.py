"""What can become of the information service of a local cluster in the middle of a job."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

from bench.faults.local import Local
from bench.faults.place import Trial

LOCKED_SECONDS = 10.0


def end(trial: Trial[Local]) -> None:
    """It is killed and stays away."""
    if service := trial.place.stage.service:
        service.kill()
        service.wait(30)


def restart(trial: Trial[Local]) -> None:
    """It is killed in the middle of writes, and comes back at once."""
    end(trial)
    trial.place.stage.serve()


def restore(trial: Trial[Local]) -> None:
    """It is killed, and comes back with what its database held before the job."""
    end(trial)
    trial.writer.forget()
    database = trial.place.database
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    database.write_bytes(trial.place.backup.read_bytes())
    trial.place.stage.serve()


def lock(trial: Trial[Local]) -> None:
    """It goes on, but its database is kept from it for a while."""
    with closing(sqlite3.connect(trial.place.database, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(LOCKED_SECONDS)
        other.execute("ROLLBACK")


WAYS: tuple[Callable[[Trial[Local]], None], ...] = (end, restart, restore, lock)
