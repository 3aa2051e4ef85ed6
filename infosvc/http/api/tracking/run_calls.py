"""Runs and their metrics, as MLflow's client notes them and asks for them.

What a program notes again and again leaves no line in the audit log, as the reports of agents leave none; that a run
began, changed its state or went does.
"""

from __future__ import annotations

import json

from flask import Response, current_app, jsonify

from infosvc.access.roles import TRACKS, user_of
from infosvc.core.service import Components, components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.http.api.exchange import caller, latest, write, write_unlogged
from infosvc.http.api.tracking import tracking_answers as answers
from infosvc.http.api.tracking import tracking_bodies as bodies
from infosvc.http.api.tracking.tracking_bodies import sent
from infosvc.state.tracked import Run
from infosvc.state.transaction import Transaction
from infosvc.tracking import recording, runs, searches
from infosvc.tracking.recording import Noted
from infosvc.wire.records import Role

MOST_POINTS = 25_000  # of one answer


def _create() -> Response:
    asked, who, settings = sent(bodies.RunToCreate), caller(), _parts().settings
    user_of(who)
    now = latest().clock.wall()
    started = round(now * 1000) if asked.start_time is None else asked.start_time
    new = runs.NewRun(asked.experiment_id, asked.run_name, started, {tag.key: tag.value for tag in asked.tags})

    def change(transaction: Transaction) -> tuple[Run, bool]:
        return runs.begin(transaction, who, new, settings, now), False

    made, _ = write(change, json.dumps({"experiment_id": new.experiment_id, "run_name": new.name}))
    return jsonify({"run": answers.run_said(made, _artifacts())})


def _get() -> Response:
    found = runs.find(latest().configuration, caller(), sent(bodies.OneRun).id)
    return jsonify({"run": answers.run_said(found.run, _artifacts())})


def _update() -> Response:
    asked, who, settings, now = sent(bodies.RunUpdate), caller(), _parts().settings, latest().clock.wall()
    said = runs.Update(asked.status or "", asked.end_time, asked.run_name)

    def change(transaction: Transaction) -> tuple[Run, bool]:
        return runs.update(transaction, who, asked.id, said, settings, now), False

    changed, _ = write(change, json.dumps({"run_id": asked.id, "status": said.status}))
    return jsonify({"run_info": answers.info_said(changed, _artifacts())})


def _delete() -> Response:
    run_id, who = sent(bodies.OneRun).id, caller()

    def change(transaction: Transaction) -> bool:
        runs.delete(transaction, who, run_id)
        return False

    write(change, json.dumps({"run_id": run_id}))
    return jsonify({})


def _log_metric() -> Response:
    run_id, metric = sent(bodies.OneRun).id, sent(bodies.Metric)
    return _record(run_id, Noted(points=[metric.point(run_id)]))


def _log_parameter() -> Response:
    run_id, param = sent(bodies.OneRun).id, sent(bodies.Param)
    return _record(run_id, Noted(params=[(param.key, param.value)]))


def _set_tag() -> Response:
    run_id, tag = sent(bodies.OneRun).id, sent(bodies.Tag)
    return _record(run_id, Noted(tags={tag.key: tag.value}))


def _log_batch() -> Response:
    asked = sent(bodies.Batch)
    params = [(param.key, param.value) for param in asked.params]
    tags = {tag.key: tag.value for tag in asked.tags}
    return _record(asked.id, Noted(params, tags, [metric.point(asked.id) for metric in asked.metrics]))


def _record(run_id: str, noted: Noted) -> Response:
    who, settings, now = caller(), _parts().settings, latest().clock.wall()
    runs.find(latest().configuration, who, run_id)  # what is refused for this needs no turn
    with _parts().turns.wait():
        write_unlogged(lambda transaction: recording.record(transaction, who, run_id, noted, settings, now))
    return jsonify({})


def _search() -> Response:
    asked = sent(bodies.RunSearch)
    if asked.run_view_type == "DELETED_ONLY":
        return jsonify({"runs": []})
    most_bytes = _parts().settings.max_answer
    search = searches.Search(asked.filter, asked.order_by, int(asked.page_token or 0), asked.max_results, most_bytes)
    part = searches.search_runs(latest().configuration, caller(), frozenset(asked.experiment_ids), search)
    artifacts = _artifacts()
    said = {"runs": [answers.run_said(stored.run, artifacts) for stored in part.runs]}
    return jsonify(answers.with_next(said, part.next))


def _get_history() -> Response:
    asked = sent(bodies.History)
    run = runs.find(latest().configuration, caller(), asked.id).run
    if asked.metric_key not in run.metrics:
        return jsonify({"metrics": []})
    most = min(asked.max_results, MOST_POINTS)
    found = _parts().store.metric(asked.id, asked.metric_key, int(asked.page_token or 0), most + 1)
    points = [point for _, point in found[:most]]
    said = {"metrics": [answers.point_said(one.name, one.value, one.timestamp, one.step) for one in points]}
    return jsonify(answers.with_next(said, found[most - 1][0] if len(found) > most else None))


def _search_models() -> Response:
    """There are none; the client asks for them wherever it lists the files of a run."""
    return jsonify({"models": []})


def _artifacts() -> answers.Artifacts:
    """Where the caller may leave files: a task on its node, all others nowhere."""
    task_id = caller().task_id
    stored = latest().configuration.tasks.get(task_id)
    return answers.Artifacts(task_id, stored.task.output_folder if stored else None)


def _parts() -> Components:
    return components_of(current_app)


_RUNS = "/api/2.0/mlflow/runs"
calls = CallGroup(
    "mlflow_runs",
    routes=(
        Route(f"{_RUNS}/create", "create", _create, TRACKS, "POST"),
        Route(f"{_RUNS}/get", "get", _get, TRACKS),
        Route(f"{_RUNS}/update", "update", _update, TRACKS, "POST"),
        Route(f"{_RUNS}/delete", "delete", _delete, Role.USER, "POST"),
        Route(f"{_RUNS}/log-metric", "log_metric", _log_metric, TRACKS, "POST"),
        Route(f"{_RUNS}/log-parameter", "log_parameter", _log_parameter, TRACKS, "POST"),
        Route(f"{_RUNS}/set-tag", "set_tag", _set_tag, TRACKS, "POST"),
        Route(f"{_RUNS}/log-batch", "log_batch", _log_batch, TRACKS, "POST"),
        Route(f"{_RUNS}/search", "search", _search, TRACKS, "POST"),
        Route("/api/2.0/mlflow/metrics/get-history", "get_history", _get_history, TRACKS),
        Route("/api/2.0/mlflow/logged-models/search", "search_models", _search_models, TRACKS, "POST"),
    ),
)
