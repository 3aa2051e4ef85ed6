"""Wires the service: create_app(settings) for any WSGI server; infosvc.server has the one that ships."""

from __future__ import annotations

from flask import Flask, Response, g, jsonify, request
from flask.typing import ResponseReturnValue

from infosvc import api
from infosvc.api import explain, metrics
from infosvc.api.restx import error_response
from infosvc.audit import Refusals
from infosvc.auth import ANONYMOUS, SHORTEST_TOKEN, needed, needs, open_to_all
from infosvc.bodies import Bodies
from infosvc.errors import InfoError, InvalidInput, LengthRequired
from infosvc.gate import Gate
from infosvc.parts import Parts, parts_of
from infosvc.records import Role
from infosvc.settings import Clock, Settings

_CHANGES = ("PUT", "POST", "DELETE", "PATCH")


def create_app(settings: Settings, clock: Clock | None = None) -> Flask:
    """The service on an open database, its writer running; end it with close_app.

    Raises InvalidInput for a token that is too short or a database URL of another kind, NotReady when the database
    does not answer, Conflict when a newer version made it.
    """
    _check_token(settings.token)
    app = Flask("infosvc", static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=settings.max_body, RESTX_MASK_SWAGGER=False)
    parts = app.extensions["infosvc"] = Parts.open(settings, clock or Clock())
    app.register_blueprint(api.build())
    app.register_error_handler(Exception, error_response)
    metrics.add(app, parts.metrics)
    explain.add(app)
    app.before_request(lambda: _admit(app))
    app.before_request(lambda: _take_body(app))
    app.after_request(lambda response: _note_refused_change(app, response))
    app.add_url_rule("/healthz", "healthz", open_to_all(lambda: jsonify({"status": "ok"})))
    app.add_url_rule("/readyz", "readyz", needs(Role.READER)(lambda: _ready(app)))
    return app


def close_app(app: Flask) -> None:
    """Store what waits and let the database go."""
    parts_of(app).close()


def _admit(app: Flask) -> None:
    """Let a call go on whose caller may do what the endpoint declares; refusals go into the audit log."""
    gate: Gate = parts_of(app).gate
    role = needed(request.endpoint, app.view_functions.get(request.endpoint or ""), request.method)
    g.caller = ANONYMOUS
    try:
        if role is None:
            gate.visit(request.environ)
            return
        g.caller = gate.caller(request.environ)
        gate.admit(g.caller, role, (request.view_args or {}).get("node_name"))
    except InfoError as error:
        _note(app, error.status, error.message)
        raise


def _take_body(app: Flask) -> None:
    """Read the body of a change before anything asks for it; no other call has its body read.

    A body in chunks says no length beforehand, and could go on for ever.
    """
    if "HTTP_TRANSFER_ENCODING" in request.environ:
        raise LengthRequired("the body comes in chunks: send it whole, with its Content-Length")
    if request.method in _CHANGES and request.routing_exception is None:
        bodies: Bodies = parts_of(app).bodies
        bodies.read(g.caller.token_id, request.get_data)


def _note_refused_change(app: Flask, response: Response) -> Response:
    """A change that contradicts what is stored, or itself, leaves a line too; an agent's report is no change."""
    refused = request.method in _CHANGES and response.status_code in (409, 412, 422)
    if refused and not request.path.endswith("/report"):
        _note(app, response.status_code, response.get_json()["error"]["message"])
    return response


def _note(app: Flask, status: int, message: str) -> None:
    call = f"{request.method} {request.path[:255]}"
    refusals: Refusals = parts_of(app).refusals
    refusals.note(g.caller.name, request.remote_addr or "", call, status, message)


def _ready(app: Flask) -> ResponseReturnValue:
    parts_of(app).readiness.check()
    agents = "https" if parts_of(app).settings.agent_ca else "http"
    return jsonify({"status": "ready", "agents": agents})


def _check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN:
        raise InvalidInput(
            f"the first admin's token has {len(token)} characters: it must have at least {SHORTEST_TOKEN}", "token"
        )
