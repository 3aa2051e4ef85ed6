"""What MLflow's client hears of experiments, runs and metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infosvc.state.tracked import Experiment, Run

ARTIFACTS = "mlflow-artifacts:/"


@dataclass(frozen=True)
class Artifacts:
    """Where whoever calls leaves files of runs: a task with an output in its `folder`, all others nowhere."""

    task_id: str = ""
    folder: str | None = None

    def place(self, run: Run) -> str:
        """Of one run, as a URI: the task's own has all of the folder, any other a part of it."""
        if self.folder is None:
            return f"{ARTIFACTS}{run.experiment_id}/{run.run_id}/artifacts"
        folder = Path(self.folder)
        return (folder if run.run_id == self.task_id else folder / run.run_id).as_uri()


def experiment_said(experiment: Experiment) -> dict[str, Any]:
    """An experiment."""
    at = round(experiment.created_at * 1000)
    return {
        "experiment_id": experiment.experiment_id,
        "name": experiment.name,
        "artifact_location": f"{ARTIFACTS}{experiment.experiment_id}",
        "lifecycle_stage": "active",
        "creation_time": at,
        "last_update_time": at,
        "tags": _pairs(experiment.tags),
    }


def info_said(run: Run, artifacts: Artifacts) -> dict[str, Any]:
    """A run without what it noted."""
    said = {
        "run_id": run.run_id,
        "run_uuid": run.run_id,
        "run_name": run.name,
        "experiment_id": run.experiment_id,
        "user_id": run.owner,
        "status": run.status,
        "start_time": run.started,
        "artifact_uri": artifacts.place(run),
        "lifecycle_stage": "active",
    }
    return said if run.ended is None else said | {"end_time": run.ended}


def run_said(run: Run, artifacts: Artifacts) -> dict[str, Any]:
    """A run with its params, its tags and the last point of each metric."""
    metrics = [point_said(name, last.value, last.timestamp, last.step) for name, last in run.metrics.items()]
    return {
        "info": info_said(run, artifacts),
        "data": {"metrics": metrics, "params": _pairs(run.params), "tags": _pairs(run.tags)},
    }


def with_next(said: dict[str, Any], place: int | None) -> dict[str, Any]:
    """An answer that is one part, with what the rest is asked for by; None when this is all."""
    return said if place is None else said | {"next_page_token": str(place)}


def point_said(name: str, value: str, timestamp: int, step: int) -> dict[str, Any]:
    """A point of a metric; JSON has no number for NaN and infinity."""
    return {"key": name, "value": _number(float(value)), "timestamp": timestamp, "step": step}


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _pairs(texts: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in texts.items()]
