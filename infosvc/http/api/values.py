"""How values are answered: from the cached bytes of whole names, filtered as JSON, or as an Arrow stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from flask import Response, request

from infosvc.data import arrow
from infosvc.http.api.exchange import latest, query_number
from infosvc.http.api.paging import most_bytes, next_link
from infosvc.state.current_values import Answer
from infosvc.state.rendering import Page, render
from infosvc.wire.records import Datum, check_node_name

_ROW_BYTES = 200  # of an Arrow stream, beside the texts


class _Asked(NamedTuple):
    """Which values were asked for: of one node, not older than so many seconds, of nodes behind `after`."""

    node: str | None
    max_age: float | None
    after: str

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == _Asked(None, None, "")

    def query(self) -> list[tuple[str, str]]:
        """As the call said it, but for `after`."""
        parameters = {"node": self.node} | {name: request.args.get(name) for name in ("max_age", "skip_unknown")}
        return [(name, value) for name, value in parameters.items() if value is not None]


Part = TypeVar("Part", Answer, Page)


class _Rest(NamedTuple):
    """What one answer has no room for: these names, the first from behind the node `after` on."""

    names: Sequence[str]
    after: str | None


def answer(names: Sequence[str], *, several: bool) -> Response:
    """The values of some names in the form that the caller asked for; NotFound when one is not registered.

    All but those of `max_age` have an ETag: how old values are changes all the time.
    """
    for name in names:
        latest().configuration.producer(name)
    node = request.args.get("node")
    named = None if node is None else check_node_name(node, "node")
    asked = _Asked(named, query_number("max_age"), request.args.get("after", ""))
    in_arrow = request.accept_mimetypes.best_match(["application/json", arrow.MEDIA_TYPE]) == arrow.MEDIA_TYPE
    etag = None
    if asked.max_age is None:
        whole = [_current_answer(name) for name in names]  # before the values: no tag is newer than what it tags
        etag = _tag(whole, several, "arrow" if in_arrow else "", asked.node or "", asked.after)
        if request.if_none_match.contains_weak(etag):
            return _finish(Response(status=304), in_arrow, etag)
    body, rest = _values(names, asked, several, in_arrow)
    response = _finish(Response(body), in_arrow, etag)
    if rest is not None:
        some = [("name", name) for name in rest.names] if several else []
        response.headers["Link"] = next_link([*some, *asked.query()], rest.after)
    return response


def _values(names: Sequence[str], asked: _Asked, several: bool, in_arrow: bool) -> tuple[bytes, _Rest | None]:
    if in_arrow:
        return _as_arrow(names, asked)
    if asked.is_all:
        answers, rest = _take(names, asked, lambda name, _: _current_answer(name))
        return _join(answers, several), rest
    pages, rest = _take(names, asked, _page)
    return _join(pages, several), rest


def _finish(response: Response, in_arrow: bool, etag: str | None) -> Response:
    response.mimetype = arrow.MEDIA_TYPE if in_arrow else "application/json"
    if etag is not None:
        response.headers["ETag"] = f'"{etag}"'
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Vary"] = "Accept"
    return response


def _take(names: Sequence[str], asked: _Asked, make: Callable[[str, _Asked], Part]) -> tuple[list[Part], _Rest | None]:
    """As many names as fit into an answer, at least a part of the first; `after` counts for that alone."""
    parts: list[Part] = []
    size = 0
    for place, name in enumerate(names):
        part = make(name, asked if place == 0 else asked._replace(after=""))
        size += len(part.body)
        if parts and size > most_bytes():
            return parts, _Rest(names[place:], None)
        parts.append(part)
        if part.last is not None:
            return parts, _Rest(names[place:], part.last)
    return parts, None


def _join(parts: Sequence[Answer] | Sequence[Page], several: bool) -> bytes:
    return b'{"data":[' + b",".join(part.body for part in parts) + b"]}" if several else parts[0].body


def _tag(answers: Sequence[Answer], several: bool, *more: str) -> str:
    """What changes whenever one of the names does, without quotes; each form of an answer has tags of its own."""
    if not several and not any(more):
        return answers[0].etag.strip('"')
    text = "\n".join([*(answer.etag for answer in answers), *more, str(several)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _current_answer(data_name: str) -> Answer:
    view = latest()
    producer = view.configuration.producer(data_name)
    return view.current_values.answer(producer, view.clock.monotonic(), view.clock.wall(), most_bytes())


def _page(data_name: str, asked: _Asked) -> Page:
    view = latest()
    rows = view.rows(data_name, *asked)
    producer = view.configuration.producer(data_name)
    text_bytes = view.current_values.size(data_name)
    return render(producer, rows, view.clock.monotonic(), view.clock.wall(), most_bytes(), text_bytes)


def _as_arrow(names: Sequence[str], asked: _Asked) -> tuple[bytes, _Rest | None]:
    data: list[Datum] = []
    size = 0
    rest: _Rest | None = None
    for place, name in enumerate(names):
        rows = latest().rows(name, *(asked if place == 0 else asked._replace(after="")))
        for datum in latest().iter_data(name, rows):
            if data and size >= most_bytes():
                rest = _Rest(names[place:], data[-1].node_name if data[-1].data_name == name else None)
                break
            data.append(datum)
            size += _ROW_BYTES + sum(len(text or "") for text in (datum.data_value, datum.reason, datum.unit))
        if rest is not None:
            break
    return arrow.stream(data), rest
