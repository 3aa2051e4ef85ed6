"""The browser's session: a token shown once becomes a cookie that scripts cannot read; see infosvc.access.sessions.

Only the cookie counts here, never a token in an Authorization header: programs that have one need no session. A ticket
of Kerberos may stand there, and is exchanged for a token.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from flask import Response, current_app, jsonify, request

from infosvc.access.authenticator import HOLDER, Authenticator
from infosvc.access.csrf import check_origin
from infosvc.access.roles import ANONYMOUS, open_to_all
from infosvc.access.sessions import OF_THIS_HOST, cookie_name, cookie_names, is_encrypted
from infosvc.access.tickets import SCHEME
from infosvc.core.service import components_of
from infosvc.http.api.body import body
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import note_call, note_refusal
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.wire.answers import TokenByTicket, WhoCalls
from infosvc.wire.bodies import LONGEST_TOKEN, LogIn
from infosvc.wire.errors import InfoError, InvalidInput, Unauthorized

ns = Namespace("session", "Session: how a browser calls, without keeping a token", path="/session")
calls = CallGroup("session", ns)

log_in_body = body_model(ns, LogIn)
who_said = answer_model(ns, WhoCalls)
by_ticket = answer_model(ns, TokenByTicket)
ELSEWHERE = "a page from elsewhere made the browser call"


def _noting_refusals(view: Callable[[Any], Response]) -> Callable[[Any], Response]:
    """The view, whose refusals leave a line in the audit log."""

    @wraps(view)
    def answer(resource: Any) -> Response:
        try:
            return view(resource)
        except InfoError as error:
            note_refusal(error.status, str(error))
            raise

    return answer


# No security in the document: only the cookie counts, and its tokens do not.
@ns.route("")
class Session(Resource):
    """The one of the browser that calls."""

    @ns.doc(security=[])
    @ns.response(200, "who calls", who_said)
    @open_to_all
    def get(self) -> Response:
        """Tell who the cookie speaks for.

        Without a session, role null says that reading takes a token. Changes by cookie carry `csrf_token` as
        X-CSRF-Token.
        """
        session = _authenticator().session(request.environ)
        if session is None:
            who = WhoCalls(ANONYMOUS.name, ANONYMOUS.role if _authenticator().reads_openly(request.environ) else None)
        else:
            who = WhoCalls(session.caller.name, session.caller.role, session.csrf_token, session.expires_at)
        return _unkept(jsonify(replace(who, takes_tickets=_authenticator().takes_tickets).to_json()))

    @ns.doc(security=[])
    @ns.expect(log_in_body)
    @ns.response(204, "logged in")
    @ns.response(400, "the body is not JSON")
    @ns.response(403, ELSEWHERE)
    @ns.response(422, "the token is missing, or too long")
    @open_to_all
    def post(self) -> Response:
        """Log in.

        Shows a token once. The answer sets a cookie that scripts cannot read, good for 12 hours at most and not beyond
        its token.
        """
        return _log_in(_token())

    @ns.doc(security=[])
    @ns.response(204, "logged out")
    @ns.response(403, ELSEWHERE)
    @open_to_all
    @_noting_refusals
    def delete(self) -> Response:
        """Log out.

        Ends the session, also when there is none any more. It carries the session's X-CSRF-Token.
        """
        _authenticator().log_out(request.environ)
        _note_holder()
        answer = _nothing()
        for name in cookie_names(request.environ):
            answer.delete_cookie(name, **_flags() | {"secure": name.startswith(OF_THIS_HOST)})
        return answer


@ns.route("/ticket")
class Ticket(Resource):
    """A ticket of Kerberos, by which users log in where the service has a keytab (`serve --spnego-keytab`)."""

    @ns.doc(security=[])
    @ns.response(201, "a token of role user", by_ticket)
    @ns.response(401, "no ticket, or one that is not good; WWW-Authenticate says Negotiate")
    @ns.response(403, f"the ticket is of another realm, or of nobody who can be a user; or {ELSEWHERE}")
    @ns.response(404, "this service takes no tickets")
    @ns.response(413, "what is shown has more than 64 KiB")
    @open_to_all
    @_noting_refusals
    def post(self) -> Response:
        """Get a token by a ticket of Kerberos.

        The call shows it as `Authorization: Negotiate` (SPNEGO), as `curl --negotiate -u :` and browsers do. The token
        counts as long as the ticket, and 12 hours at most.
        """
        check_origin(request.environ)
        made, proof = _authenticator().make_token(request.environ)
        note_call(request.environ[HOLDER], 201)
        answer = _unkept(jsonify(made.to_json()))
        answer.status_code = 201
        if proof:
            answer.headers["WWW-Authenticate"] = f"{SCHEME} {base64.b64encode(proof).decode()}"
        return answer


@_noting_refusals
def _log_in(token: str) -> Response:
    """No content, and the cookie."""
    check_origin(request.environ)
    try:
        text = _authenticator().log_in(token, request.environ)
    except Unauthorized as error:
        raise type(error)(error.message, "token", error.remedy) from error
    _note_holder()
    answer = _nothing()
    answer.set_cookie(cookie_name(request.environ), text, **_flags())
    return answer


def _note_holder() -> None:
    """A line in the audit log for whose session has begun or ended, if one has."""
    holder = request.environ.get(HOLDER)
    if holder is not None:
        note_call(holder, 204)


def _token() -> str:
    """What the body shows; a refusal repeats none of it, for it might be a secret."""
    given = body()
    given.refuse_others({"token"})
    token = given.get("token")
    if not isinstance(token, str) or not 0 < len(token.strip()) <= LONGEST_TOKEN:
        raise InvalidInput(f"token is missing, or no text of 1 to {LONGEST_TOKEN} characters", "token")
    return token.strip()


def _flags() -> dict[str, Any]:
    """How the cookie travels: never to other sites' calls, never to scripts, and encrypted where pages are."""
    return {"path": "/", "secure": is_encrypted(request.environ), "httponly": True, "samesite": "Strict"}


def _nothing() -> Response:
    # JSON by name, as all answers are: Flask would call nothing at all HTML.
    return _unkept(Response(status=204, mimetype="application/json"))


def _unkept(answer: Response) -> Response:
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _authenticator() -> Authenticator:
    authenticator: Authenticator = components_of(current_app).authenticator
    return authenticator
