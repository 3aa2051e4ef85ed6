"""Searches of runs and experiments: which of those that a caller may see, in which order, and one part of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from infosvc.access.roles import Caller
from infosvc.state.configuration import Configuration
from infosvc.state.tracked import Experiment, StoredRun
from infosvc.tracking import experiments, filters, runs
from infosvc.tracking.filters import Attributes, Found, Key, View
from infosvc.wire.errors import InvalidInput

T = TypeVar("T")

SECONDS = 5.0  # a search may take
MOST_ROWS = 1_000  # of an answer
OF_RUNS = Attributes(frozenset({"run_id", "run_name", "status", "user_id"}), frozenset({"start_time", "end_time"}))
OF_EXPERIMENTS = Attributes(frozenset({"name"}), frozenset({"creation_time", "last_update_time"}))


@dataclass(frozen=True)
class Search:
    """What is asked for: `start` is how many rows came before, `most` and `most_bytes` what this part may have."""

    filter: str
    order_by: Sequence[str]
    start: int
    most: int
    most_bytes: int


@dataclass(frozen=True)
class Part:
    """The runs of one part, and where the next part starts, None after the last."""

    runs: list[StoredRun]
    next: int | None


def search_runs(configuration: Configuration, caller: Caller, experiment_ids: Collection[str], asked: Search) -> Part:
    """The runs in some experiments that the caller may see, the newest first unless it asks for another order.

    InvalidInput when the filter cannot be read, or takes too long.
    """
    among = [one for one in runs.select(configuration, caller) if one.run.experiment_id in experiment_ids]
    among.sort(key=lambda one: (-one.run.started, one.run.run_id))
    found = _select(among, asked, OF_RUNS, _view_of_run)
    taken, size = 0, 0
    for one in found[asked.start : asked.start + min(asked.most, MOST_ROWS)]:
        size += one.size
        if taken and size > asked.most_bytes:
            break
        taken += 1
    end = asked.start + taken
    return Part(found[asked.start : end], end if end < len(found) else None)


def search_experiments(
    configuration: Configuration, caller: Caller, asked: Search
) -> tuple[list[Experiment], int | None]:
    """The experiments that the caller may see, the newest first, and where the next part starts."""
    among = sorted(experiments.select(configuration, caller), key=lambda one: (-one.created_at, one.experiment_id))
    found = _select(among, asked, OF_EXPERIMENTS, _view_of_experiment)
    end = asked.start + min(asked.most, MOST_ROWS)
    return found[asked.start : end], end if end < len(found) else None


def _select(among: Sequence[T], asked: Search, attributes: Attributes, view_of: Callable[[T], View]) -> list[T]:
    comparisons = filters.parse(asked.filter, attributes)
    orders = filters.parse_order(asked.order_by, attributes)
    found, deadline = [], time.monotonic() + SECONDS
    for one in among:
        view = view_of(one)
        if all(comparison.holds(view) for comparison in comparisons):
            found.append(one)
        if time.monotonic() > deadline:
            raise InvalidInput(f"the search took more than {SECONDS:g} s", "filter", remedy="ask for less")
    return filters.sort(found, orders, view_of)


def _view_of_run(stored: StoredRun) -> View:
    run = stored.run

    def find(key: Key) -> Found:
        if key.kind == "metric":
            point = run.metrics.get(key.name)
            return None if point is None else float(point.value)
        if key.kind != "attribute":
            return (run.params if key.kind == "param" else run.tags).get(key.name)
        values: dict[str, Found] = {
            "run_id": run.run_id,
            "run_name": run.name,
            "status": run.status,
            "user_id": run.owner,
            "start_time": float(run.started),
            "end_time": None if run.ended is None else float(run.ended),
        }
        return values[key.name]

    return find


def _view_of_experiment(experiment: Experiment) -> View:
    def find(key: Key) -> Found:
        if key.kind == "tag":
            return experiment.tags.get(key.name)
        if key.kind != "attribute":
            return None
        return experiment.name if key.name == "name" else round(experiment.created_at * 1000)

    return find
