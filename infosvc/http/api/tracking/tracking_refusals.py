"""Refusals in the form that MLflow's client reads, so that it shows our sentence; and what is not supported here."""

from __future__ import annotations

from typing import NoReturn

from flask import Response, jsonify, request

from infosvc.access.roles import TRACKS, reads_its_body
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.wire.errors import NotFound

PREFIXES = ("/api/2.0/mlflow", "/api/3.0/mlflow")

_CODES = {
    "already_exists": "RESOURCE_ALREADY_EXISTS",
    "conflict": "RESOURCE_CONFLICT",
    "forbidden": "PERMISSION_DENIED",
    "invalid_input": "INVALID_PARAMETER_VALUE",
    "length_required": "INVALID_PARAMETER_VALUE",
    "not_found": "RESOURCE_DOES_NOT_EXIST",
    "not_ready": "TEMPORARILY_UNAVAILABLE",
    "not_supported": "ENDPOINT_NOT_FOUND",
    "revoked": "UNAUTHENTICATED",
    "too_large": "INVALID_PARAMETER_VALUE",
    "too_many_requests": "REQUEST_LIMIT_EXCEEDED",
    "unauthorized": "UNAUTHENTICATED",
}


class NotSupported(NotFound):
    """A call of MLflow that this service does not answer."""

    code = "not_supported"


def in_mlflows_form(response: Response) -> Response:
    """Turn the refusal of a call of MLflow's client into MLflow's own; any other answer stays as it is."""
    if response.status_code < 400 or not request.path.startswith(PREFIXES) or not response.is_json:
        return response
    error = response.get_json()["error"]
    code = _CODES.get(error["code"], "INTERNAL_ERROR")
    response.set_data(jsonify({"error_code": code, "message": error["message"]}).get_data())
    return response


def _refuse(**_path: str) -> NoReturn:
    raise NotSupported(
        f"{request.method} {request.path[:200]} is not supported here",
        remedy="this service tracks runs: experiments, params, tags and metrics",
    )


@reads_its_body  # which it does not: a large file gets the same sentence as a small one
def _refuse_artifacts(**_path: str) -> NoReturn:
    raise NotSupported(
        "this service keeps no files of runs, so artifacts cannot be logged or read here",
        remedy="run the program as a task that has an output; what it logs then goes into $OUTPUT",
    )


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ARTIFACTS = "/api/2.0/mlflow-artifacts"

others = CallGroup(
    "mlflow_others",
    routes=tuple(
        Route(f"{prefix}/<path:call>", f"{name}_{method}", view, TRACKS, method)
        for method in METHODS
        for prefix, name, view in (
            (PREFIXES[0], "v2", _refuse),
            (PREFIXES[1], "v3", _refuse),
            (ARTIFACTS, "artifacts", _refuse_artifacts),
        )
    ),
)
