"""Tokens: who may call, and as what."""

from __future__ import annotations

from typing import Any

from flask_restx import fields

from infosvc.access import tokens
from infosvc.access.roles import needs
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.document import or_null
from infosvc.http.api.exchange import LARGEST, body, latest, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.wire.records import NODE_NAME, Role, check_node_name

ns = Namespace("tokens", "Tokens: who may call, and as what", path="/tokens")
calls = CallGroup("tokens", ns)

token_body = ns.model(
    "TokenBody",
    {
        "name": fields.String(
            required=True,
            description="what the audit log calls its holder",
            example="grafana",
            min_length=1,
            max_length=128,
        ),
        "role": fields.String(required=True, enum=list(Role), description="what it may do"),
        "node_name": or_null(
            fields.String(description="the node whose agent it is for; role agent only", pattern=NODE_NAME.pattern)
        ),
        "expires_in": or_null(
            fields.Float(
                description="seconds until it is refused; never if left out",
                example=2592000,
                min=0,
                exclusiveMin=True,
                max=LARGEST,
            )
        ),
        "replace": fields.Boolean(default=False, description="revoke the older tokens of this node"),
    },
)
token_row = ns.model(
    "Token",
    {
        "token_id": fields.String(required=True, description="its public name", example="9f86d081884c7d65"),
        "name": fields.String(required=True, description="what the audit log calls its holder", example="grafana"),
        "role": fields.String(required=True, enum=list(Role), description="what it may do"),
        "node_name": or_null(fields.String(required=True, description="the node whose agent it is for")),
        "created_at": fields.Float(required=True, description="Unix seconds, as all times here", example=1700000000.0),
        "expires_at": or_null(fields.Float(required=True, description="from when it is refused; null for never")),
        "revoked_at": or_null(fields.Float(required=True, description="when it was taken back; null if it was not")),
    },
)
token_list = ns.model("TokenList", {"tokens": fields.List(fields.Nested(token_row), required=True)})
new_token = ns.inherit(
    "NewToken",
    token_row,
    {"token": fields.String(required=True, description="shown this once", example="nw_reader_TEXT-THAT-IS-SECRET")},
)


@ns.route("")
class Tokens(Resource):
    """All of them."""

    @ns.response(200, "all tokens, revoked and expired ones too", token_list)
    @needs(Role.ADMIN)
    def get(self) -> Any:
        """List all tokens, oldest first, without what is secret in them.

        The token that the service made for its first admin is not among them.
        """
        found = [stored.token for stored in latest().picture.tokens.values()]
        return {"tokens": [token.to_json() for token in sorted(found, key=lambda token: token.created_at)]}

    @ns.expect(token_body)
    @ns.response(201, "the new token", new_token)
    @ns.response(400, "the body is no JSON object")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN)
    def post(self) -> Any:
        """Make a token; its text is shown this once, for only its SHA-256 is kept.

        A token of role agent is for one node, and may report for that one alone.
        """
        given = body()
        role = given.choice("role", Role)
        node_name = check_node_name(given.text("node_name", most=128)) if given.given("node_name") else None
        expires_in = None if given.given("expires_in") is None else given.number("expires_in", above=0)
        name = given.text("name", most=128, empty=False)
        text, replacing = tokens.new_text(role), given.flag("replace", False)
        stored = tokens.make(text, name, role, node_name, latest().clock.wall(), expires_in)
        write(lambda draft: tokens.add(draft, stored, replacing))
        return stored.token.to_json() | {"token": text}, 201


@ns.route("/<token_id>")
@ns.param("token_id", "its public name, as the list shows it", **{"x-example": "9f86d081884c7d65"})
class OneToken(Resource):
    """One of them."""

    @ns.response(204, "revoked")
    @ns.response(404, "no token has this id")
    @needs(Role.ADMIN)
    def delete(self, token_id: str) -> Any:
        """Revoke a token at once and for good; its row stays.

        To revoke it once more changes nothing.
        """
        now = latest().clock.wall()
        write(lambda draft: tokens.revoke(draft, token_id, now))
        return "", 204
