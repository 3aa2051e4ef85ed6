"""What the OpenAPI document says of the browser's session."""

from __future__ import annotations

from typing import Any

_WHO = {
    "name": "first admin",
    "role": "admin",
    "csrf_token": "kJ0b3VwWm1c8bEhsY1VfT2x3c2VyZ2Zk",
    "expires_at": 1700043200.0,
}
_ELSEWHERE = {"description": "a page from elsewhere made the browser call"}


def _call(summary: str, description: str, **more: Any) -> dict[str, Any]:
    # No security: only the cookie counts, and the document's tokens do not.
    return {"tags": ["session"], "summary": summary, "description": description, "security": [], **more}


SESSION: dict[str, Any] = {
    "tags": [{"name": "session", "description": "Session: how a browser calls, without keeping a token"}],
    "definitions": {
        "LogIn": {
            "type": "object",
            "required": ["token"],
            "properties": {"token": {"type": "string", "example": "nw_reader_24phvwWW7ycEEcBpTyE3VWBVbTz5qfWHY"}},
        }
    },
    "paths": {
        "/session": {
            "get": _call(
                "Tell who the cookie speaks for",
                "Without a session, role null says that reading takes a token. Changes by cookie carry `csrf_token` as "
                "X-CSRF-Token.",
                responses={"200": {"description": "who calls", "examples": {"application/json": _WHO}}},
            ),
            "post": _call(
                "Log in",
                "Shows a token once. The answer sets a cookie that scripts cannot read, good for 12 hours at most and "
                "not beyond its token.",
                parameters=[
                    {"in": "body", "name": "payload", "required": True, "schema": {"$ref": "#/definitions/LogIn"}}
                ],
                responses={
                    "204": {"description": "logged in"},
                    "400": {"description": "the body is no JSON"},
                    "403": _ELSEWHERE,
                    "422": {"description": "the token is missing, or too long"},
                },
            ),
            "delete": _call(
                "Log out",
                "Ends the session, also when there is none any more. It carries the session's X-CSRF-Token.",
                responses={"204": {"description": "logged out"}, "403": _ELSEWHERE},
            ),
        }
    },
}
