"""Experiments, as MLflow's client asks for them."""

from __future__ import annotations

from flask import Response, current_app, jsonify

from infosvc.access.roles import user_of
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.http.api.exchange import caller, latest, write
from infosvc.http.api.tracking.tracking_answers import experiment_said
from infosvc.http.api.tracking.tracking_bodies import NamedExperiment, NewExperiment, OneExperiment, Search, sent
from infosvc.state.tracked import Experiment
from infosvc.state.transaction import Transaction
from infosvc.tracking import experiments, searches
from infosvc.wire.records import Role


def _create() -> Response:
    asked, owner, now = sent(NewExperiment), user_of(caller()), latest().clock.wall()
    tags = {tag.key: tag.value for tag in asked.tags}

    def change(transaction: Transaction) -> tuple[Experiment, bool]:
        return experiments.create(transaction, owner, asked.name, tags, now), False

    made, _ = write(change, asked.name)
    return jsonify({"experiment_id": made.experiment_id})


def _get() -> Response:
    found = experiments.find(latest().configuration, caller(), sent(OneExperiment).experiment_id)
    return jsonify({"experiment": experiment_said(found)})


def _get_by_name() -> Response:
    found = experiments.find_named(latest().configuration, caller(), sent(NamedExperiment).experiment_name)
    return jsonify({"experiment": experiment_said(found)})


def _search() -> Response:
    asked = sent(Search)
    if asked.view_type == "DELETED_ONLY":
        return jsonify({"experiments": []})
    most_bytes = components_of(current_app).settings.max_answer
    search = searches.Search(asked.filter, asked.order_by, int(asked.page_token or 0), asked.max_results, most_bytes)
    found, rest = searches.search_experiments(latest().configuration, caller(), search)
    said = {"experiments": [experiment_said(one) for one in found]}
    return jsonify(said if rest is None else said | {"next_page_token": str(rest)})


_BELOW = "/api/2.0/mlflow/experiments"
calls = CallGroup(
    "mlflow_experiments",
    routes=(
        Route(f"{_BELOW}/create", "create", _create, Role.USER, "POST"),
        Route(f"{_BELOW}/get", "get", _get, Role.USER),
        Route(f"{_BELOW}/get-by-name", "get_by_name", _get_by_name, Role.USER),
        Route(f"{_BELOW}/search", "search", _search, Role.USER, "POST"),
    ),
)
