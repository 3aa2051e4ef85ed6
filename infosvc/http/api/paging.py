"""Long answers come in parts: each names the next one in its header Link, and `after` asks for it."""

from __future__ import annotations

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
    after, most = request.args.get("after", ""), most_bytes()
    body = bytearray(msgspec.json.encode({**(head or {}), key: []})[:-2])
    last: str | None = None
    link: str | None = None
    for row in rows:
        if getattr(row, name) <= after:
            continue
        if last is not None and len(body) >= most:
            link = next_link((), last)
            break
        body += msgspec.json.encode(row.to_json()) + b","
        last = getattr(row, name)
    if last is not None:
        del body[-1:]
    body += b"]}"
    response = Response(bytes(body), mimetype="application/json")
    if link is not None:
        response.headers["Link"] = link
    return response
