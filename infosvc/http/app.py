"""Wires the service: create_app(settings) for any WSGI server; infosvc.http.server has the one that ships."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from flask import Flask, Response, g, request

from infosvc.access.authenticator import Authenticator
from infosvc.access.body_limit import BodyLimit
from infosvc.access.proxies import peer_of
from infosvc.access.roles import ANONYMOUS, SHORTEST_TOKEN, does_read_its_body, is_about_one_node, required_roles
from infosvc.core.service import Components, components_of
from infosvc.http.api import metrics, pages
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import note_refusal
from infosvc.http.api.restx import error_response
from infosvc.http.api.tracking.tracking_refusals import in_mlflows_form
from infosvc.http.calls import add_calls
from infosvc.http.parameters import Parameters
from infosvc.settings import Clock, Settings
from infosvc.wire.errors import InfoError, InvalidInput, LengthRequired, TooLarge

LARGEST_OF_STRANGERS = 4096  # bytes: all that they have to send is the token with which they log in

_CHANGES = ("PUT", "POST", "DELETE", "PATCH")


def create_app(settings: Settings, clock: Clock | None = None, others: Sequence[CallGroup] = ()) -> Flask:
    """The service on an open database, its writer running; end it with close_app.

    It answers the calls of `others` beside its own, under the same rules.
    Raises InvalidInput for a token that is too short or a database URL of another kind, NotReady when the database
    does not answer, Conflict when a newer version made it.
    """
    _check_token(settings.token)
    app = Flask("infosvc", static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=settings.max_body, RESTX_MASK_SWAGGER=False)
    add_calls(app, others)
    parameters = Parameters(app, others)
    app.register_error_handler(Exception, error_response)
    app.before_request(metrics.begin)
    app.before_request(lambda: _admit(app))
    app.before_request(lambda: _check_parameters(parameters))
    app.before_request(lambda: _take_body(app))
    app.after_request(metrics.count)
    app.after_request(pages.protect)
    app.after_request(in_mlflows_form)  # after the next, which reads our own form: the last one goes first
    app.after_request(_note_refused_change)
    app.extensions["infosvc"] = parts = Components.open(settings, clock or Clock())
    for source in filter(None, (group.events for group in others)):
        parts.sources.start(source)
    for look in filter(None, (group.cluster_look for group in others)):
        parts.alerts.outside.start(look)
    return app


def close_app(app: Flask) -> None:
    """Store what waits and let the database go."""
    components_of(app).close()


def _admit(app: Flask) -> None:
    """Let a call go on whose caller may do what the endpoint declares; refusals go into the audit log."""
    authenticator: Authenticator = components_of(app).authenticator
    roles = required_roles(request.endpoint, app.view_functions.get(request.endpoint or ""), request.method)
    g.caller = ANONYMOUS
    try:
        if roles is None:
            authenticator.visit(request.environ)
            return
        g.caller = authenticator.caller(request.environ)
        authenticator.admit(g.caller, roles, (request.view_args or {}).get("node_name"))
        authenticator.check_node(g.caller, _node_told_of(app))
    except InfoError as error:
        note_refusal(error.status, str(error))
        raise


def _node_told_of(app: Flask) -> str | None:
    """The node that a call names, if it tells of no other."""
    if not is_about_one_node(app.view_functions.get(request.endpoint or ""), request.method):
        return None
    return (request.view_args or {}).get("node_name") or request.args.get("node")


def _check_parameters(parameters: Parameters) -> None:
    """Refuse a parameter that a call does not know; agents of another version may send what they like."""
    if request.args and request.url_rule and not request.path.endswith("/report"):
        parameters.check(request.url_rule.endpoint, request.url_rule.rule, request.method, request.args)


def _take_body(app: Flask) -> None:
    """Read the body of a change before anything asks for it, unless the call does so itself; no other has one read.

    A body in chunks says no length beforehand, and could go on for ever.
    """
    if "HTTP_TRANSFER_ENCODING" in request.environ:
        raise LengthRequired("the body comes in chunks", remedy="send it whole, with its Content-Length")
    if does_read_its_body(app.view_functions.get(request.endpoint or ""), request.method):
        return
    if request.method in _CHANGES and request.routing_exception is None:
        known: BodyLimit = components_of(app).bodies
        strangers: BodyLimit = components_of(app).strangers
        length, address = request.content_length or 0, request.remote_addr or ""
        if g.caller is ANONYMOUS and length > LARGEST_OF_STRANGERS:
            raise TooLarge(
                f"a call without a token may send {LARGEST_OF_STRANGERS} bytes", remedy="send less, or show a token"
            )
        if length > app.config["MAX_CONTENT_LENGTH"]:
            request.get_data()  # which refuses it
        limit, who = (strangers, address) if g.caller is ANONYMOUS else (known, g.caller.token_id)
        body = limit.read(who, peer_of(request.environ), length, request.environ["wsgi.input"].read)
        request.environ["wsgi.input"] = BytesIO(body)


def _note_refused_change(response: Response) -> Response:
    """A change that contradicts what is stored, or itself, leaves a line too; an agent's report is not a change."""
    refused = request.method in _CHANGES and response.status_code in (409, 412, 422)
    if refused and not request.path.endswith("/report"):
        note_refusal(response.status_code, response.get_json()["error"]["message"])
    return response


def _check_token(token: str) -> None:
    if len(token) < SHORTEST_TOKEN:
        raise InvalidInput(
            f"the first admin's token has {len(token)} characters: it must have at least {SHORTEST_TOKEN}", "token"
        )
