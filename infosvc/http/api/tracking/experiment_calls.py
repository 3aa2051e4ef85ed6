"""Experiments, as MLflow's client asks for them."""

from __future__ import annotations

from flask import Response, current_app, jsonify

from infosvc.access.roles import TRACKS, user_of
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.http.api.exchange import caller, latest, write, write_unlogged
from infosvc.http.api.tracking.tracking_answers import experiment_said, with_next
from infosvc.http.api.tracking.tracking_bodies import NamedExperiment, NewExperiment, OneExperiment, Search, sent
from infosvc.state.tracked import Experiment
from infosvc.state.transaction import Transaction
from infosvc.tracking import experiments, runs, searches


def _create() -> Response:
    asked, owner, now = sent(NewExperiment), user_of(caller()), latest().clock.wall()
    tags = {tag.key: tag.value for tag in asked.tags}

    def change(transaction: Transaction) -> tuple[Experiment, bool]:
        return experiments.create(transaction, owner, asked.name, tags, now), False

    made, _ = write(change, asked.name)
    _set_for_task(made.experiment_id)
    return jsonify({"experiment_id": made.experiment_id})


def _get() -> Response:
    found = experiments.find(latest().configuration, caller(), sent(OneExperiment).experiment_id)
    _set_for_task(found.experiment_id)
    return jsonify({"experiment": experiment_said(found)})


def _get_by_name() -> Response:
    found = experiments.find_named(latest().configuration, caller(), sent(NamedExperiment).experiment_name)
    _set_for_task(found.experiment_id)
    return jsonify({"experiment": experiment_said(found)})


def _set_for_task(experiment_id: str) -> None:
    """When the program of a task asks for one experiment, it may be about to set it."""
    task_id, settings = caller().task_id, components_of(current_app).settings
    if task_id:
        write_unlogged(lambda transaction: runs.stand_in(transaction, task_id, experiment_id, settings))


def _search() -> Response:
    asked = sent(Search)
    if asked.view_type == "DELETED_ONLY":
        return jsonify({"experiments": []})
    most_bytes = components_of(current_app).settings.max_answer
    search = searches.Search(asked.filter, asked.order_by, int(asked.page_token or 0), asked.max_results, most_bytes)
    found, rest = searches.search_experiments(latest().configuration, caller(), search)
    return jsonify(with_next({"experiments": [experiment_said(one) for one in found]}, rest))


_BELOW = "/api/2.0/mlflow/experiments"
calls = CallGroup(
    "mlflow_experiments",
    routes=(
        Route(f"{_BELOW}/create", "create", _create, TRACKS, "POST"),
        Route(f"{_BELOW}/get", "get", _get, TRACKS),
        Route(f"{_BELOW}/get-by-name", "get_by_name", _get_by_name, TRACKS),
        Route(f"{_BELOW}/search", "search", _search, TRACKS, "POST"),
    ),
)
