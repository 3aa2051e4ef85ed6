"""The page that Prometheus scrapes, and the counting of what Flask answers."""

from __future__ import annotations

import time

from flask import Flask, Response, g, request

from infosvc.access.roles import needs
from infosvc.core.metrics import CONTENT_TYPE, Metrics
from infosvc.wire.records import Role

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE"})


def add(app: Flask, metrics: Metrics) -> None:
    """Serve /metrics, and count the calls; before anything else is done to a call, so that refusals count too."""

    @needs(Role.READER)
    def scrape() -> Response:
        return Response(metrics.render(), content_type=CONTENT_TYPE)

    def begin() -> None:
        g.began = time.perf_counter()

    def end(response: Response) -> Response:
        rule = request.url_rule.rule if request.url_rule else "unknown"
        method = request.method if request.method in METHODS else "other"
        metrics.calls.count(f"{method} {rule}", response.status_code, time.perf_counter() - g.began)
        return response

    app.before_request(begin)
    app.after_request(end)
    app.add_url_rule("/metrics", "metrics", scrape)
