"""The list of everything that answers; to add calls, write their file and name it here."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, Flask

from infosvc.http.api import (
    audit,
    data,
    events,
    explain,
    health,
    metrics,
    nodes,
    pages,
    producers,
    session,
    slots,
    tokens,
)
from infosvc.http.api.alerts import alert_calls
from infosvc.http.api.call_group import PREFIX, CallGroup
from infosvc.http.api.restx import Api
from infosvc.http.api.tasks import file_calls, task_calls, tunnel_calls
from infosvc.http.api.tracking import experiment_calls, run_calls, tracking_refusals

CALLS: tuple[CallGroup, ...] = (
    producers.calls,
    nodes.calls,
    slots.calls,
    data.calls,
    tokens.calls,
    task_calls.calls,
    file_calls.calls,
    tunnel_calls.calls,
    experiment_calls.calls,
    run_calls.calls,
    tracking_refusals.others,
    alert_calls.calls,
    audit.calls,
    events.calls,
    explain.calls,
    session.calls,
    metrics.calls,
    health.calls,
    pages.calls,
)

ABOUT = (
    "What every node of the cluster can do right now. Beyond reading on loopback, calls take a token: `Authorization: "
    'Bearer TOKEN`. A browser shows its token once, `POST /api/v1/session` with `{"token": "..."}`, and has a cookie '
    "from then on; its changes carry the `csrf_token` that `GET /api/v1/session` tells, as X-CSRF-Token, and `DELETE` "
    "ends that. Beside these calls, `/metrics` is for Prometheus, `/healthz` and `/readyz` say whether it lives and "
    "can answer, and `/explain` is a page."
)


def add_calls(app: Flask, others: Sequence[CallGroup] = ()) -> None:
    """Let the application answer all calls of the list and those of `others`, with Swagger UI at /api/v1/."""
    groups = (*CALLS, *others)
    blueprint = Blueprint("api", __name__, url_prefix=PREFIX)
    api = Api(
        blueprint,
        version="1",
        title="nodewise information service",
        description=ABOUT,
        doc="/",
        authorizations={"token": {"type": "apiKey", "in": "header", "name": "Authorization"}},
        security="token",
    )
    api.documents = [group.document for group in groups if group.document]
    for group in groups:
        if group.namespace:
            api.add_namespace(group.namespace)
    app.register_blueprint(blueprint)
    for group in groups:
        group.add_routes(app)
