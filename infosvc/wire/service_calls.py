"""How a client makes its calls: what goes along with each, what becomes of an answer, long ones in parts.

Standard library only, so it travels to nodes and containers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

from infosvc.wire.connection import API, Answer, Call, Connections, encode_json, error_from
from infosvc.wire.errors import InvalidInput, NotReady, Unauthorized

T = TypeVar("T")


class ServiceCalls:
    """The calls of one caller to one service, which clients are made from."""

    def __init__(self, url: str, token: str | None, timeout: float, ca_file: str | Path | None, retries: int) -> None:
        if token and not (token.isascii() and len(token.split()) == 1):
            raise Unauthorized(
                "the token is not one word of plain characters", remedy="name the service's with --token-file"
            )
        self._connections = Connections(url, timeout, ca_file)
        self.url = self._connections.url
        self._base = self._connections.base + API
        self._token = token
        self._retries = retries

    def close(self) -> None:
        """Let go of the connections that are kept; the client may still be used."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, path: str, read: Callable[[Any], T]) -> T:
        return self._read(self._call("GET", path), read)

    def _list(self, path: str, read: Callable[[Any], list[T]]) -> list[T]:
        """What `read` makes of an answer, and of the parts that follow it when it is long."""
        items: list[T] = []
        while path:
            answer = self._send("GET", path)
            items += self._read(self._json(answer), read)
            path = next_path(path, answer)
        return items

    def _delete(self, path: str, headers: Mapping[str, str] | None = None) -> None:
        answer = self._send("DELETE", path, headers=headers or {}, repeatable=not headers)
        if not (answer.repeated and answer.status == 404):  # the first try has done it, and its answer was lost
            self._json(answer)

    def _read(self, reply: Any, read: Callable[[Any], T]) -> T:
        """What `read` makes of an answer; whatever else listens there can answer anything."""
        try:
            return read(reply)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._foreign() from error

    def _foreign(self) -> NotReady:
        return NotReady(
            f"{self.url} answered, but is not an information service", "url", remedy="name another one with --url"
        )

    def _call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **how: Any
    ) -> Any:
        return self._json(self._send(method, path, body, headers or {}, **how))

    def _json(self, answer: Answer) -> Any:
        if answer.status >= 400:
            raise error_from(answer.status, answer.body)
        if answer.status >= 300:
            raise self._foreign()
        return self._read(answer.body or b"{}", json.loads)

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
        retries: int | None = None,
    ) -> Answer:
        sent = {**self._headers(), **(headers or {})}
        data = None if body is None else encode_json(body)
        if data is not None:
            sent["Content-Type"] = "application/json"
        call = Call(method, self._base + path, data, sent, repeatable)
        return self._connections.ask(call, self._retries if retries is None else retries)

    def _headers(self) -> dict[str, str]:
        return {"Accept": "application/json"} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})


def segment(name: str) -> str:
    """A name as one part of a path; InvalidInput when it cannot be one."""
    if not name or "/" in name or name in (".", ".."):  # a service might take it for several parts, or for none
        raise InvalidInput(f"{name!r} cannot be a name", remedy="give one that is not empty and has no '/'")
    return quote(name, safe="")


def query_of(**asked: object) -> str:
    """What is asked for as the query of a path; what is None or empty is left out."""
    given = {key: value for key, value in asked.items() if value not in (None, [])}
    return f"?{urlencode(given, doseq=True)}" if given else ""


def next_path(path: str, answer: Answer) -> str:
    """Where the rest of a long answer is, empty when this is all; the service names the query of the same path."""
    query, _, kind = answer.headers.get("Link", "").partition(">")
    is_next = query.startswith("<?") and "next" in kind
    return path.partition("?")[0] + query[1:] if is_next else ""
