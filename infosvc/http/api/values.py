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
    """The values of some names in the form that the caller asked for; NotFound when one is not registered.

    All but those of `max_age` have an ETag: how old values are changes all the time.
    """
    in_arrow = request.accept_mimetypes.best_match(["application/json", arrow.MEDIA_TYPE]) == arrow.MEDIA_TYPE
    if "max_age" in request.args:
        return _finish(Response(_arrow(names)) if in_arrow else Response(_filtered(names, several)), in_arrow)
    whole = [_current_answer(name) for name in names]  # before the values, so that no tag is newer than what it tags
    etag = _tag(whole, several, "arrow" if in_arrow else "", request.args.get("node", ""))
    if request.if_none_match.contains_weak(etag):
        response = Response(status=304)
    elif in_arrow:
        response = Response(_arrow(names))
    elif "node" in request.args:
        response = Response(_filtered(names, several))
    else:
        response = Response(_whole(whole, several))
    response.headers["ETag"] = f'"{etag}"'
    response.headers["Cache-Control"] = "no-cache"
    return _finish(response, in_arrow)


def _finish(response: Response, in_arrow: bool) -> Response:
    response.mimetype = arrow.MEDIA_TYPE if in_arrow else "application/json"
    response.headers["Vary"] = "Accept"
    return response


def _tag(answers: Sequence[Answer], several: bool, *more: str) -> str:
    """What changes whenever one of the names does, without quotes; each form of an answer has tags of its own."""
    if not several and not any(more):
        return answers[0].etag.strip('"')
    said = "\n".join([*(found.etag for found in answers), *more, str(several)])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _whole(answers: Sequence[Answer], several: bool) -> bytes:
    return b'{"data":[' + b",".join(found.body for found in answers) + b"]}" if several else answers[0].body


def _filtered(names: Sequence[str], several: bool) -> bytes:
    said = [_as_answer(name, _find_data(name)) for name in names]
    return msgspec.json.encode({"data": said} if several else said[0])


def _arrow(names: Sequence[str]) -> bytes:
    return arrow.stream([datum for name in names for datum in _find_data(name)])


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
