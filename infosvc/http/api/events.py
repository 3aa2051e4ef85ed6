"""Events: what happens in the cluster, as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
from flask import current_app, g, request

from infosvc.access.roles import SEES_TASKS, needs
from infosvc.core.service import components_of
from infosvc.data.events import TYPES, Broker, Filter, Watcher
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.api.stream import stream
from infosvc.wire.answers import Event
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Role

ns = Namespace("events", "Events: what happens, as it happens", path="/events")
calls = CallGroup("events", ns)

HEARTBEAT_SECONDS = 5.0  # how often a stream says something, and its caller is looked at again
REST_SECONDS = 0.02  # between two looks, so that many commits a second go out together

SEVERAL = {"type": "array", "collectionFormat": "multi"}
NAMES = SEVERAL | {"items": {"type": "string"}}

_LARGEST_ID = 2**62


@ns.route("")
class Events(Resource):
    """All that the caller asks for."""

    @ns.doc(security=[])
    @ns.produces(["text/event-stream"])
    @ns.param(
        "type",
        "may stand several times; all if left out",
        items={"type": "string", "enum": list(TYPES)},
        **SEVERAL,
        **{"x-example": ["value"]},
    )
    @ns.param(
        "name",
        "only events of this data name, and those of types node, job and task if asked for; may stand several times",
        **NAMES,
        **{"x-example": ["load_1m"]},
    )
    @ns.param("node", "only events of this node; may stand several times", **NAMES, **{"x-example": ["127.0.1.11"]})
    @ns.param(
        "Last-Event-ID",
        "go on after this event; what cannot be told any more comes as type gap",
        _in="header",
        pattern="^[0-9]{1,18}$",
        **{"x-example": "1"},
    )
    @ns.response(200, "the stream, which has no end")
    @ns.response(422, "an unknown type, or something that is not an event id")
    @ns.response(503, "too many callers watch")
    @needs(Role.READER)
    def get(self) -> Any:
        """Watch: a stream of server-sent events.

        value {data_name, node_name, data_value, outcome, time}, node {node_name, state}, slot {node_name, data_name,
        change, running, interval}, producer {data_name, change, version}, job {job_id, kind, state, final, ended,
        progress}, task {task_id, change, owner, name, state, reason, stop_asked, node_name, attempt, exit_code}, gap
        {missed}. A job is told when it appears, when its state changes and when it ends: within 4 s, for YARN is asked
        every 2 s while somebody watches jobs. Who first watches and then asks GET /jobs misses none. Users are told of
        their own tasks, submitters and admins of all; where Hadoop has Kerberos, of jobs too, which then name their
        owner.
        """
        broker: Broker = components_of(current_app).broker
        authenticator, caller = components_of(current_app).authenticator, g.caller
        wanted = _requested_filter()
        if "task" in wanted.types:
            authenticator.admit(caller, SEES_TASKS)
        watcher = broker.watch(
            replace(wanted, owners=caller.owners), _last_id(), caller.token_id or request.remote_addr or ""
        )
        parts = _parts(watcher, lambda: authenticator.still_valid(caller))
        return stream(parts, "text/event-stream", watcher.close)


def _parts(watcher: Watcher, valid: Callable[[], bool]) -> Iterator[bytes]:
    yield b"id: %d\n\n" % (watcher.place - 1)  # where a caller goes on that breaks off before the first event
    said = time.monotonic()
    while not watcher.has_ended and valid():
        silence = time.monotonic() - said
        told = b"".join(encode(event) for event in watcher.events(max(0.0, HEARTBEAT_SECONDS - silence)))
        if told or time.monotonic() - said >= HEARTBEAT_SECONDS:
            yield told or b": still here\n\n"
            said = time.monotonic()
        time.sleep(REST_SECONDS)


def encode(event: Event) -> bytes:
    """One event as a block of the stream.

    >>> encode(Event(7, "node", {"node_name": "n1", "state": "lost"}))
    b'id: 7\\nevent: node\\ndata: {"node_name":"n1","state":"lost"}\\n\\n'
    """
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.type.encode(), msgspec.json.encode(event.data))


def _requested_filter() -> Filter:
    args = request.args
    types = frozenset(args.getlist("type"))
    unknown = types - set(TYPES)
    if unknown:
        raise InvalidInput(f"type={sorted(unknown)[0]!r} is not allowed: one of {', '.join(TYPES)}", "type")
    return Filter(types, frozenset(args.getlist("name")), frozenset(args.getlist("node")))


def _last_id() -> int | None:
    text = request.headers.get("Last-Event-ID", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < _LARGEST_ID):
        raise InvalidInput(f"Last-Event-ID {text!r} is not allowed: the id of an event", "Last-Event-ID")
    return int(text)
