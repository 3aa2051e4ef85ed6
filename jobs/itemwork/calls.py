"""The calls of workers: what their bodies have to hold, and what is answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from jobs.images.rows_size import LARGEST_ROWS
from jobs.itemwork.dealer import Dealer
from jobs.itemwork.messages import Task
from jobs.itemwork.refusals import Refused

LARGEST_CALL = 1 << 20
S = TypeVar("S", bound=msgspec.Struct)


class Request(NamedTuple):
    """What a POST brings: the part of its address behind the question mark, and its body."""

    query: str
    body: bytes


class Caller(msgspec.Struct):
    """Every call names its node and container."""

    node_name: str
    container_id: str


class Take(Caller):
    """What it holds already."""

    holding: list[str]


class Working(Caller):
    """A group that it begins with, by name."""

    lease: str
    group: list[str]


class Died(Working):
    """Why it did not end well."""

    reason: str


class Failed(Caller):
    """Why this worker ends, and whether every other one would."""

    reason: str
    everywhere: bool


class Commit(Caller):
    """The query of a commit."""

    lease: str
    seconds: float
    bytes_read: int


def take(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /take"""
    said = _json(request.body, Take)
    offer = dealer.take(said.node_name, said.container_id, said.holding)
    if offer is None:
        return {"done": True}
    return {"lease": offer.to_json()} if isinstance(offer, Task) else {"wait": offer}


def commit(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /commit"""
    said = _query(request.query, Commit)
    if not (math.isfinite(said.seconds) and said.seconds >= 0 and said.bytes_read >= 0):
        raise Refused(f"seconds={said.seconds} and bytes_read={said.bytes_read} have to be 0 or more")
    answer = dealer.commit(said.node_name, said.container_id, said.lease, request.body, said.seconds, said.bytes_read)
    return {"answer": answer.name.lower(), "why": answer.value}


def heartbeat(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /heartbeat"""
    said = _json(request.body, Caller)
    return {"holding": dealer.heartbeat(said.node_name, said.container_id)}


def working(dealer: Dealer, request: Request) -> None:
    """POST /working"""
    said = _json(request.body, Working)
    dealer.working(said.node_name, said.container_id, said.lease, said.group)


def died(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /died"""
    said = _json(request.body, Died)
    groups, convicted = dealer.died(said.node_name, said.container_id, said.lease, said.group, said.reason)
    return {"groups": [group.to_json() for group in groups], "convicted": convicted}


def failed(request: Request) -> Failed:
    """POST /failed"""
    return _json(request.body, Failed)


Call = Callable[[Dealer, Request], Mapping[str, Any] | None]
CALLS: Mapping[str, Call] = {
    "/take": take,
    "/commit": commit,
    "/heartbeat": heartbeat,
    "/working": working,
    "/died": died,
}
"""By path; each raises Refused when the request is not as it has to be."""


def largest_body(path: str) -> int:
    """Bytes."""
    return LARGEST_ROWS if path == "/commit" else LARGEST_CALL


def _json(body: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"the body is not what this call needs: {error}") from None


def _query(query: str, kind: type[S]) -> S:
    try:
        return msgspec.convert(dict(parse_qsl(query, strict_parsing=True)), kind, strict=False)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Refused(f"the query is not what this call needs: {error}") from None
