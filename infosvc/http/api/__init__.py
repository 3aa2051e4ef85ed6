"""The list of namespaces; to add one, write its file and name it here."""

from __future__ import annotations

from flask import Blueprint

from infosvc.http.api import audit, data, events, explain, nodes, producers, slots, tokens
from infosvc.http.api.restx import Api

NAMESPACES = (producers.ns, nodes.ns, slots.ns, data.ns, tokens.ns, audit.ns, events.ns, explain.ns)

PREFIX = "/api/v1"

ABOUT = (
    "What every node of the cluster can do right now. Beyond reading on loopback, calls take a token: `Authorization: "
    'Bearer TOKEN`. A browser shows its token once, `POST /api/v1/session` with `{"token": "..."}`, and has a cookie '
    "from then on; its changes carry the `csrf_token` that `GET /api/v1/session` tells, as X-CSRF-Token, and `DELETE` "
    "ends that. Beside these calls, `/metrics` is for Prometheus, `/healthz` and `/readyz` say whether it lives and "
    "can answer, and `/explain` is a page."
)


def build() -> Blueprint:
    """All namespaces under /api/v1, with Swagger UI at its root."""
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
    for namespace in NAMESPACES:
        api.add_namespace(namespace)
    return blueprint
