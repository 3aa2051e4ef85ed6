"""The page that Prometheus scrapes, and the counting of what Flask answers."""

from __future__ import annotations

import time

from flask import Response, current_app, g, request

from infosvc.core.metrics import CONTENT_TYPE
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.wire.records import Role

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE"})


def _scrape() -> Response:
    return Response(components_of(current_app).metrics.render(), content_type=CONTENT_TYPE)


calls = CallGroup("metrics", routes=(Route("/metrics", "scrape", _scrape, Role.READER),))


def begin() -> None:
    """Note when a call began; before anything else is done to it, so that refusals count too."""
    g.began = time.perf_counter()


def count(response: Response) -> Response:
    """Count a call, and the time that it took."""
    rule = request.url_rule.rule if request.url_rule else "unknown"
    method = request.method if request.method in METHODS else "other"
    seconds = time.perf_counter() - g.began
    components_of(current_app).metrics.calls.count(f"{method} {rule}", response.status_code, seconds)
    return response
