"""What answers over HTTP, as one kind of record: a group of calls, those of the service and those that others bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Flask
from flask.typing import ResponseReturnValue

from infosvc.access.roles import needs, open_to_all
from infosvc.alerts.outside import ClusterLook
from infosvc.data.event_sources import EventSource
from infosvc.http.api.restx import Namespace
from infosvc.wire.records import Role

View = Callable[..., ResponseReturnValue]

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Route:
    """One call: its path, its name within the group, what answers it, which roles may make it (None: whoever asks)."""

    rule: str
    name: str
    view: View
    role: Role | tuple[Role, ...] | None
    method: str = "GET"


@dataclass(frozen=True)
class CallGroup:
    """Calls that belong together: a namespace of Flask-RESTX, which describes itself, or routes, or both.

    `document` makes what describes routes below /api/v1 to Swagger, when somebody asks for it: `tags` and `paths` of
    Swagger 2.0. The `schema` of a body is a record, that of an answer a record or several (A | B): of them schema and
    example are made. How any call is refused is added. A view may raise the errors of infosvc.wire.errors, and
    `flask.g.caller` is who calls.
    `events` tells what happens to what the calls are about, `cluster_look` what alerts must know.
    """

    name: str
    namespace: Namespace | None = None
    routes: tuple[Route, ...] = ()
    document: Callable[[], Mapping[str, Any]] | None = None
    events: EventSource | None = None
    cluster_look: ClusterLook | None = None

    def add_routes(self, app: Flask) -> None:
        """Let the application answer the routes; ValueError when it answers one of that name already."""
        for route in self.routes:
            endpoint = f"{self.name}.{route.name}"
            if endpoint in app.view_functions:
                raise ValueError(f"two calls have the name {endpoint}")
            roles = (route.role,) if isinstance(route.role, Role) else route.role
            declare = open_to_all if roles is None else needs(*roles)
            app.add_url_rule(route.rule, endpoint, declare(route.view), methods=[route.method])
