"""Tokens: who may call, and as what."""

from __future__ import annotations

from typing import Any

from infosvc.access import tokens
from infosvc.access.roles import needs
from infosvc.http.api.body import body, read
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import latest, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.wire.answers import NewToken, TokenList
from infosvc.wire.bodies import TokenBody
from infosvc.wire.records import Role, check_node_name

ns = Namespace("tokens", "Tokens: who may call, and as what", path="/tokens")
calls = CallGroup("tokens", ns)

token_body = body_model(ns, TokenBody)
token_list = answer_model(ns, TokenList)
new_token = answer_model(ns, NewToken)


@ns.route("")
class Tokens(Resource):
    """All of them."""

    @ns.response(200, "all tokens, revoked and expired ones too", token_list)
    @needs(Role.ADMIN)
    def get(self) -> Any:
        """List all tokens, oldest first, without their secret text.

        The token that the service made for its first admin is not among them.
        """
        tokens = [stored.token for stored in latest().configuration.tokens.values()]
        return TokenList(tuple(sorted(tokens, key=lambda token: token.created_at))).to_json()

    @ns.expect(token_body)
    @ns.response(201, "the new token", new_token)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN)
    def post(self) -> Any:
        """Make a token; its text is shown this once, for only its SHA-256 is kept.

        A token of role agent is for one node, and may report for that one alone. One of role reader with a node_name
        reads the values of that node and nothing else.
        """
        asked = read(TokenBody, body())
        node_name = check_node_name(asked.node_name) if asked.node_name else None
        text, now = tokens.new_text(asked.role), latest().clock.wall()
        stored = tokens.make(text, asked.name, asked.role, node_name, now, asked.expires_in)
        write(lambda transaction: tokens.add(transaction, stored, asked.replace))
        return NewToken(**stored.token.to_json(), token=text).to_json(), 201


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
        write(lambda transaction: tokens.revoke(transaction, token_id, now))
        return "", 204
