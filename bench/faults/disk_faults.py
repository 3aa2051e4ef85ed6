"""The faults of disks, which are the same in every place whose machines have small volumes."""

from __future__ import annotations

import time

from bench.faults.place import Place, Trial

FULL_SECONDS = (5.0, 25.0)
SLOW_SECONDS = (10.0, 20.0)
SLOW_BYTES = (32_000, 512_000)
"""Bytes per second of a disk that is worn out or shared by too many."""


def full_disk(trial: Trial[Place]) -> bool:
    """A small volume is full for a while: a node's, or that of the service or the master."""
    with trial.chance.choice(trial.place.volumes).filled():
        time.sleep(trial.chance.uniform(*FULL_SECONDS))
    return True


def slow_disk(trial: Trial[Place]) -> bool:
    """A small volume is read and written at less than half a megabyte per second for a while."""
    with trial.chance.choice(trial.place.volumes).slowed(trial.chance.randint(*SLOW_BYTES)):
        time.sleep(trial.chance.uniform(*SLOW_SECONDS))
    return True
