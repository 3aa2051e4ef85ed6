"""Whether the service lives, and whether it can answer."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from flask import Response, current_app, jsonify

from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.wire.records import Role


def _live() -> Response:
    return jsonify({"status": "ok"})


def _readiness() -> Response:
    components_of(current_app).readiness.check()
    agents = "https" if components_of(current_app).settings.agent_ca else "http"
    return jsonify({"status": "ready", "agents": agents, "version": _version()})


@cache
def _version() -> str:
    """That of the distribution; a checkout that was never installed has none."""
    try:
        return version("nodewise")
    except PackageNotFoundError:
        return "unknown"


calls = CallGroup(
    "health", routes=(Route("/healthz", "live", _live, None), Route("/readyz", "ready", _readiness, Role.READER))
)
