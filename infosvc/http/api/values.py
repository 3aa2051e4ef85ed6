"""How values are answered: from the cached bytes of whole names, filtered as JSON, or as an Arrow stream."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from flask import Response, request

from infosvc.data import arrow
from infosvc.http.api.exchange import latest, query_number
from infosvc.state.current_values import Answer
from infosvc.wire.records import Datum, check_node_name


def answer(names: Sequence[str], *, several: bool) -> Response:
    """The values of some names in the form that the caller asked for; NotFound when one is not registered."""
    if request.accept_mimetypes.best_match(["application/json", arrow.MEDIA_TYPE]) == arrow.MEDIA_TYPE:
        found = [datum for name in names for datum in _find_data(name)]
        return Response(arrow.stream(found), mimetype=arrow.MEDIA_TYPE)
    if "node" in request.args or "max_age" in request.args:
        said = [_as_answer(name, _find_data(name)) for name in names]
        return _json(msgspec.json.encode({"data": said} if several else said[0]))
    return _whole([_current_answer(name) for name in names], several)


def _whole(answers: Sequence[Answer], several: bool) -> Response:
    etag = answers[0].etag
    body = answers[0].body
    if several:
        etag = '"' + hashlib.sha256("".join(found.etag for found in answers).encode()).hexdigest()[:32] + '"'
        body = b'{"data":[' + b",".join(found.body for found in answers) + b"]}"
    response = _json(body) if request.headers.get("If-None-Match") != etag else Response(status=304)
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "no-cache"
    return response


def _current_answer(data_name: str) -> Answer:
    found = latest()
    producer = found.configuration.producer(data_name)
    return found.current_values.answer(producer, found.clock.monotonic(), found.clock.wall())


def _find_data(data_name: str) -> list[Datum]:
    node = request.args.get("node")
    return latest().data(data_name, None if node is None else check_node_name(node, "node"), query_number("max_age"))


def _as_answer(data_name: str, found: Sequence[Datum]) -> dict[str, Any]:
    unit = latest().configuration.producer(data_name).unit
    shared = ("data_name", "unit")
    rows = [{key: value for key, value in datum.to_json().items() if key not in shared} for datum in found]
    return {"data_name": data_name, "unit": unit, "time": latest().clock.wall(), "values": rows}


def _json(body: bytes) -> Response:
    return Response(body, mimetype="application/json")
