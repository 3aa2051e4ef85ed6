"""What is kept of runs that programs track with MLflow's client, and of the experiments in which these stand.

Only the last point of each metric is in memory; all points are in the database. A number is kept as the text that
Python writes, which every database gives back exactly, also for NaN and infinity.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

NAME_TAG = "mlflow.runName"  # MLflow's own name for the tag that holds a run's name


class MetricPoint(NamedTuple):
    """One point of a metric of a run; `timestamp` is Unix milliseconds by the program's clock."""

    run_id: str
    name: str
    value: str
    timestamp: int
    step: int


class LastPoint(msgspec.Struct, frozen=True, array_like=True):
    """The point of a metric with the largest step, of several the one with the latest timestamp."""

    value: str
    timestamp: int
    step: int


class Experiment(msgspec.Struct, frozen=True):
    """A name under which a user's runs stand; `created_at` is Unix seconds."""

    experiment_id: str
    owner: str
    name: str
    created_at: float
    tags: dict[str, str] = {}


class Run(msgspec.Struct, frozen=True):
    """One run; `created_at` and `changed_at` are Unix seconds, `started` and `ended` Unix milliseconds.

    Of the run that is a task, `created_at` is when the task was asked for. `points` counts all points that it has.
    """

    run_id: str
    experiment_id: str
    owner: str
    status: str
    created_at: float
    changed_at: float
    started: int
    ended: int | None = None
    is_task: bool = False
    params: dict[str, str] = {}
    tags: dict[str, str] = {}
    metrics: dict[str, LastPoint] = {}
    points: int = 0

    @property
    def name(self) -> str:
        """What people call it."""
        return self.tags.get(NAME_TAG, "")


class StoredRun(msgspec.Struct, frozen=True):
    """A run as it is kept; `size` is the bytes of all but its points."""

    run: Run
    size: int
