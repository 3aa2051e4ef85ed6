"""Long answers come in parts: each names the next one in its header Link, and `after` asks for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from flask import Response, current_app, request

from infosvc.core.service import components_of
from infosvc.wire.fields import Record

AFTER = {"type": "string", "x-example": "127.0.1.11"}
LINK = {"Link": '<?QUERY>; rel="next", where the rest is, when this is not all'}


def next_link(query: Iterable[tuple[str, str]], after: str | None) -> str:
    """The header's text: the same path with this query, behind the last that was answered."""
    asked = [*query, *([] if after is None else [("after", after)])]
    return f'<?{urlencode(asked)}>; rel="next"'


def most_bytes() -> int:
    """How large an answer may be."""
    most: int = components_of(current_app).settings.max_answer
    return most


def answer_list(key: str, rows: Iterable[Record], name: str, head: Mapping[str, Any] | None = None) -> Response:
    """The field `key` with those records, sorted by the field `name`, that fit into an answer, behind the fields of
    `head`."""
    after = request.args.get("after", "")
    places = ((getattr(row, name), row) for row in rows)
    parts = ((place, row.to_json()) for place, row in places if place > after)
    return answer_part(key, parts, (), head)


def answer_part(
    key: str,
    rows: Iterable[tuple[str, Any]],
    query: Iterable[tuple[str, str]] = (),
    head: Mapping[str, Any] | None = None,
    most_rows: float = math.inf,
) -> Response:
    """The field `key` with those rows that fit into an answer, each given with its place; the rest is asked for with
    the same `query` after the place of the last."""
    most = most_bytes()
    body = bytearray(msgspec.json.encode({**(head or {}), key: []})[:-2])
    last: str | None = None
    link: str | None = None
    for number, (place, row) in enumerate(rows):
        if last is not None and (len(body) >= most or number >= most_rows):
            link = next_link(query, last)
            break
        body += msgspec.json.encode(row) + b","
        last = place
    if last is not None:
        del body[-1:]
    body += b"]}"
    response = Response(bytes(body), mimetype="application/json")
    if link is not None:
        response.headers["Link"] = link
    return response
