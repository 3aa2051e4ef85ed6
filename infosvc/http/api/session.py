"""The browser's session: a token shown once becomes a cookie that scripts cannot read; see infosvc.access.sessions.

Only the cookie counts here, never an Authorization header: programs that have a token need no session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask, Response, current_app, jsonify, request

from infosvc.access.authenticator import Gate
from infosvc.access.csrf import check_origin
from infosvc.access.roles import ANONYMOUS, open_to_all
from infosvc.access.sessions import cookie_name
from infosvc.core.extras import describe
from infosvc.core.service import parts_of
from infosvc.http.api.exchange import body
from infosvc.http.api.session_document import SESSION
from infosvc.wire.errors import InfoError, InvalidInput, Unauthorized

LONGEST_TOKEN = 1024

Note = Callable[[int, str], None]


def add(app: Flask, path: str, note: Note) -> None:
    """Answer GET, POST and DELETE at `path`; `note` puts a refusal into the audit log."""

    @open_to_all
    def log_in() -> Response:
        token = _token()
        return _noting(note, lambda: _log_in(token))

    @open_to_all
    def log_out() -> Response:
        return _noting(note, _log_out)

    describe(app, SESSION)
    app.add_url_rule(path, "session", _who, methods=["GET"])
    app.add_url_rule(path, "log_in", log_in, methods=["POST"])
    app.add_url_rule(path, "log_out", log_out, methods=["DELETE"])


@open_to_all
def _who() -> Response:
    """GET -> {name, role, csrf_token, expires_at}; without a session, role null says that reading takes a token."""
    found = _gate().session(request.environ)
    if found is None:
        role = ANONYMOUS.role.value if _gate().reads_openly(request.environ) else None
        said: dict[str, Any] = {"name": ANONYMOUS.name, "role": role, "csrf_token": None, "expires_at": None}
    else:
        who = {"name": found.caller.name, "role": found.caller.role.value}
        said = who | {"csrf_token": found.csrf_token, "expires_at": found.expires_at}
    return _unkept(jsonify(said))


def _log_in(token: str) -> Response:
    """POST {token} -> 204 and the cookie."""
    check_origin(request.environ)
    try:
        text = _gate().log_in(token, request.environ)
    except Unauthorized as error:
        raise type(error)(error.message, "token") from error
    answer = _nothing()
    answer.set_cookie(cookie_name(request.environ), text, **_flags())
    return answer


def _log_out() -> Response:
    """DELETE -> 204, also when there is no session, or none any more."""
    _gate().log_out(request.environ)
    answer = _nothing()
    answer.delete_cookie(cookie_name(request.environ), **_flags())
    return answer


def _token() -> str:
    """What the body shows; a refusal repeats none of it, for it might be a secret."""
    token = body().given("token")
    if not isinstance(token, str) or not 0 < len(token.strip()) <= LONGEST_TOKEN:
        raise InvalidInput(f"token is missing, or no text of 1 to {LONGEST_TOKEN} characters", "token")
    return token.strip()


def _noting(note: Note, answer: Callable[[], Response]) -> Response:
    try:
        return answer()
    except InfoError as error:
        note(error.status, error.message)
        raise


def _flags() -> dict[str, Any]:
    """How the cookie travels: never to other sites' calls, never to scripts, and encrypted where pages are."""
    # A proxy may speak https for us; then the page's origin is what tells.
    secure = request.is_secure or request.headers.get("Origin", "").startswith("https://")
    return {"path": "/", "secure": secure, "httponly": True, "samesite": "Strict"}


def _nothing() -> Response:
    # JSON by name, as all answers are: Flask would call nothing at all HTML.
    return _unkept(Response(status=204, mimetype="application/json"))


def _unkept(answer: Response) -> Response:
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _gate() -> Gate:
    found: Gate = parts_of(current_app).gate
    return found
