"""Wires the service: create_app(settings) for any WSGI server; infosvc.http.server has the one that ships."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version

from flask import Flask, Response, g, jsonify, request
from flask.typing import ResponseReturnValue

from infosvc.access.audit import Refusals
from infosvc.access.authenticator import HOLDER, Gate
from infosvc.access.body_limit import Bodies
from infosvc.access.roles import ANONYMOUS, SHORTEST_TOKEN, Caller, needed, needs, open_to_all
from infosvc.core.extras import Extra
from infosvc.core.service import Parts, parts_of
from infosvc.http import api, pages
from infosvc.http.api import explain, metrics, session
from infosvc.http.api.restx import error_response
from infosvc.settings import Clock, Settings
from infosvc.wire.errors import InfoError, InvalidInput, LengthRequired, TooLarge
from infosvc.wire.records import Role

LARGEST_OF_STRANGERS = 4096  # bytes: all that they have to send is the token with which they log in

_CHANGES = ("PUT", "POST", "DELETE", "PATCH")


def create_app(settings: Settings, clock: Clock | None = None, extras: Sequence[Extra] = ()) -> Flask:
    """The service on an open database, its writer running; end it with close_app.

    Each of `extras` is called with the application once it answers all that it answers by itself.
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
    pages.add(app)
    session.add(app, f"{api.PREFIX}/session", partial(_note, app))
    app.before_request(lambda: _admit(app))
    app.before_request(lambda: _take_body(app))
    app.after_request(lambda response: _note_refused_change(app, response))
    app.add_url_rule("/healthz", "healthz", open_to_all(lambda: jsonify({"status": "ok"})))
    app.add_url_rule("/readyz", "readyz", needs(Role.READER)(lambda: _ready(app)))
    _mount(app, extras)
    return app


def close_app(app: Flask) -> None:
    """Store what waits and let the database go."""
    parts_of(app).close()


def _mount(app: Flask, extras: Sequence[Extra]) -> None:
    try:
        for extra in extras:
            extra(app)
    except BaseException:
        close_app(app)
        raise


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
        known: Bodies = parts_of(app).bodies
        strangers: Bodies = parts_of(app).strangers
        if g.caller is not ANONYMOUS:
            known.read(g.caller.token_id, request.get_data)
        elif (request.content_length or 0) <= LARGEST_OF_STRANGERS:
            strangers.read(request.remote_addr or "", request.get_data)
        else:
            raise TooLarge(f"a call without a token may send {LARGEST_OF_STRANGERS} bytes: send less, or show a token")


def _note_refused_change(app: Flask, response: Response) -> Response:
    """A change that contradicts what is stored, or itself, leaves a line too; an agent's report is no change."""
    refused = request.method in _CHANGES and response.status_code in (409, 412, 422)
    if refused and not request.path.endswith("/report"):
        _note(app, response.status_code, response.get_json()["error"]["message"])
    return response


def _note(app: Flask, status: int, message: str) -> None:
    call = f"{request.method} {request.path[:255]}"
    refusals: Refusals = parts_of(app).refusals
    caller: Caller = request.environ.get(HOLDER, g.caller)
    refusals.note(caller.name, request.remote_addr or "", call, status, message)


def _ready(app: Flask) -> ResponseReturnValue:
    parts_of(app).readiness.check()
    agents = "https" if parts_of(app).settings.agent_ca else "http"
    return jsonify({"status": "ready", "agents": agents, "version": _version()})


@cache
def _version() -> str:
    """That of the distribution; a checkout that was never installed has none."""
    try:
        return version("nodewise")
    except PackageNotFoundError:
        return "unknown"


def _check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN:
        raise InvalidInput(
            f"the first admin's token has {len(token)} characters: it must have at least {SHORTEST_TOKEN}", "token"
        )
