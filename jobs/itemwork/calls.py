"""The calls of workers: what their bodies have to hold, and what is answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from jobs.application.calls import LARGEST_CALL, Caller, Refused, Request, decode_body, decode_query
from jobs.itemwork.dealer import Dealer
from jobs.itemwork.messages import Task

LARGEST_COMMIT = 32 << 20
"""Bytes of the rows of one lease."""


class Take(Caller):
    """What it holds already, and how many seconds it would wait for an answer, as it has nothing else to do."""

    holding: list[str]
    patience: float = 0.0


class Working(Caller):
    """A group that it begins with, by name."""

    lease: str
    group: list[str]


class Died(Working):
    """Why it did not end well."""

    reason: str


class Commit(Caller):
    """The query of a commit."""

    lease: str
    seconds: float
    bytes_read: int


def take(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /take"""
    call = decode_body(request.body, Take)
    offer = dealer.take(call.node_name, call.container_id, call.holding)
    if offer is None:
        return {"done": True}
    return {"lease": offer.to_json()} if isinstance(offer, Task) else {"wait": offer}


def commit(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /commit"""
    call = decode_query(request.query, Commit)
    if not (math.isfinite(call.seconds) and call.seconds >= 0 and call.bytes_read >= 0):
        raise Refused(f"seconds={call.seconds} and bytes_read={call.bytes_read} have to be 0 or more")
    answer = dealer.commit(call.node_name, call.container_id, call.lease, request.body, call.seconds, call.bytes_read)
    return {"answer": answer.name.lower(), "why": answer.value}


def heartbeat(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /heartbeat"""
    call = decode_body(request.body, Caller)
    return {"holding": dealer.heartbeat(call.node_name, call.container_id)}


def note_begin(dealer: Dealer, request: Request) -> None:
    """POST /working"""
    call = decode_body(request.body, Working)
    dealer.note_begin(call.node_name, call.container_id, call.lease, call.group)


def note_death(dealer: Dealer, request: Request) -> dict[str, Any]:
    """POST /died"""
    call = decode_body(request.body, Died)
    groups, convicted = dealer.note_death(call.node_name, call.container_id, call.lease, call.group, call.reason)
    return {"groups": [group.to_json() for group in groups], "convicted": convicted}


Call = Callable[[Dealer, Request], Mapping[str, Any] | None]
CALLS: Mapping[str, Call] = {
    "/take": take,
    "/commit": commit,
    "/heartbeat": heartbeat,
    "/working": note_begin,
    "/died": note_death,
}
"""By path; each raises Refused when the request is not as it has to be."""


LARGEST: Mapping[str, int] = {path: LARGEST_COMMIT if path == "/commit" else LARGEST_CALL for path in CALLS}
"""Bytes of a body, by path."""
