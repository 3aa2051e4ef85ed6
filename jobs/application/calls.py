"""What containers ask their application master over HTTP, whatever the kind of job: requests, refusals, decoding."""

from __future__ import annotations

from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

LARGEST_CALL = 1 << 20
"""Bytes of a body, unless a call says otherwise."""
S = TypeVar("S", bound=msgspec.Struct)


class Refused(Exception):
    """A call is not as it has to be: the same one would be refused again. Nothing else that fails is the caller's."""


class NotYet(Exception):
    """The application master cannot answer now: the same call is to be made again soon."""


class Gone(Exception):
    """The container is not the one that its application master counts on, and has to end."""


class Request(NamedTuple):
    """What a POST brings: the part of its address behind the question mark, and its body.

    `connection` is the same object for all requests that come by one connection.
    """

    query: str
    body: bytes
    connection: object = None


class Caller(msgspec.Struct):
    """Every call names its node and container."""

    node_name: str
    container_id: str


class Failed(Caller):
    """POST /failed: why this container ends, and whether every other one would."""

    reason: str
    everywhere: bool


def decode_body(body: bytes, kind: type[S]) -> S:
    """The JSON object of a body; Refused when it is not what the call needs."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"the body is not what this call needs: {error}") from None


def decode_query(query: str, kind: type[S]) -> S:
    """The fields of a query; Refused when they are not what the call needs."""
    try:
        return msgspec.convert(dict(parse_qsl(query, strict_parsing=True)), kind, strict=False)
    except (msgspec.MsgspecError, ValueError) as error:
        raise Refused(f"the query is not what this call needs: {error}") from None
