"""Tunnels: two-way bytes between a user's command and the runner of a task, which pass through the service."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from flask import current_app, request

from infosvc.access.roles import Caller, needs
from infosvc.core.service import Components, components_of
from infosvc.http.api.body import body, read
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import caller, latest, query_number, record_call
from infosvc.http.api.restx import File, Namespace, Resource
from infosvc.http.api.stream import stream
from infosvc.http.openapi.document import MEDIA_TYPE
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.tasks import listing
from infosvc.tasks.tunnels import MOST_WAITING_BYTES, End, OpenTunnel, Tunnels
from infosvc.wire.errors import Conflict, Forbidden, InvalidInput, NotFound, TooLarge
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TASK_ID
from infosvc.wire.tasks import EXAMPLE_ID, Task, TaskState
from infosvc.wire.tunnel.described import TUNNEL_ID, Tunnel, TunnelBody, TunnelList
from infosvc.wire.tunnel.frames import IDLING

ns = Namespace("tunnels", "Tunnels: terminals and connections to tasks", path="/tunnels")
calls = CallGroup("tunnels", ns)

LONGEST_WAIT = 10.0
WAIT = {"minimum": 0, "maximum": LONGEST_WAIT}
BYTES = "application/octet-stream"
ID = {"pattern": TUNNEL_ID, "x-example": "0f" * 16}
FRAMES = {"_in": "body", "required": True, "schema": {"type": "string", "format": "binary"}, MEDIA_TYPE: BYTES}
DIGITS = "^[0-9]{1,18}$"
BEGIN = {"required": True, "pattern": DIGITS, "x-example": "0"}

tunnel_body = body_model(ns, TunnelBody)
tunnel_said = answer_model(ns, Tunnel)
tunnels_said = answer_model(ns, TunnelList)


@ns.route("")
class AllTunnels(Resource):
    """All that wait, and a new one."""

    @ns.param("task_id", "only those to this task", pattern=TASK_ID.pattern, **{"x-example": EXAMPLE_ID})
    @ns.param("seconds", "wait for one at most so long, as submitters may", type="number", default=0, **WAIT)
    @ns.response(200, "those that wait", tunnels_said)
    @ns.response(403, "the token is that of another task")
    @ns.response(422, "seconds is no number from 0 to 10")
    @ns.response(503, "too many callers wait for tunnels")
    @needs(Role.SUBMITTER, Role.TASK)
    def get(self) -> Any:
        """List tunnels that wait for the runners of their tasks.

        Submitters ask for all and call the runners; the runner of a task asks for its own.
        """
        task_id = request.args.get("task_id", "")
        seconds = _seconds()
        if caller().role is Role.TASK:
            _check_task(caller(), task_id)
            seconds = 0.0
        return TunnelList(tuple(_tunnels().waiting(task_id, seconds))).to_json()

    @ns.expect(tunnel_body)
    @ns.response(201, "the tunnel", tunnel_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(404, "the caller may see no task of this id")
    @ns.response(409, "its program does not run, or there are too many tunnels")
    @ns.response(422, "a field is wrong; the answer names it")
    @ns.response(503, "the service ends, or its database does not answer")
    @needs(Role.USER)
    def post(self) -> Any:
        """Open a tunnel to the runner of a task whose program runs.

        It ends when one of its ends is closed, when the task or the token of its user ends, and when nobody joins it
        within a minute.
        """
        wanted = read(TunnelBody, body())
        task = listing.find(latest().configuration, caller().owners, wanted.task_id).task
        if task.state is not TaskState.RUNNING:
            raise Conflict(f"{task.task_id} is {task.state}", "task_id", remedy="wait until its program runs")
        return _open(task).to_json(), 201


@ns.route("/<tunnel_id>")
@ns.param("tunnel_id", "the id of the tunnel", **ID)
class OneTunnel(Resource):
    """One of them."""

    @ns.produces([BYTES])
    @ns.response(200, "frames, until the tunnel ends", File)
    @ns.response(404, "there is no such tunnel of the caller's")
    @ns.response(409, "this end is read already")
    @needs(Role.USER, Role.TASK)
    def get(self, tunnel_id: str) -> Any:
        """Read what comes from the other end: a stream of frames, which ends with the tunnel.

        A frame has a byte that tells its kind (0 nothing, 1 opens a line, 2 bytes of a line, 3 how many of them were
        taken, 4 columns and rows, 5 the end of a line), the number of its line in two bytes, the length of its content
        in four bytes, and the content. An end sends at most 256 KiB of a line before the other says they were taken.
        """
        tunnel, end = _end(tunnel_id)
        if request.method == "HEAD":  # which only looks, and takes nobody's place
            tunnel.check_unread(end)
            return stream(iter(()), BYTES, lambda: None)
        components, who, parts = components_of(current_app), caller(), tunnel.read(end)
        parts = _while(parts, lambda: components.authenticator.still_valid(who), lambda: _goes_on(components, tunnel))
        return stream(parts, BYTES, lambda: components.tunnels.leave(tunnel, end))

    @ns.param("begin", "bytes that this end has sent before", **BEGIN)
    @ns.param("frames", "whole frames, at most 256 KiB", **FRAMES)
    @ns.response(204, "on their way")
    @ns.response(404, "there is no such tunnel of the caller's")
    @ns.response(409, "something that was sent before has not come")
    @ns.response(413, "the body is too long")
    @ns.response(422, "the body is not made of frames, or begin is no number")
    @ns.response(503, "the other end reads too slowly; send it again")
    @needs(Role.USER, Role.TASK)
    def post(self, tunnel_id: str) -> Any:
        """Send frames to the other end.

        The same call again sends nothing twice. It leaves no line in the audit log.
        """
        tunnel, end = _end(tunnel_id)
        content = request.get_data(cache=False)
        if len(content) > MOST_WAITING_BYTES:
            raise TooLarge(f"the body has {len(content)} bytes: it may have {MOST_WAITING_BYTES}", "body")
        tunnel.write(end, _begin(), content)
        return "", 204

    @ns.response(204, "ended")
    @ns.response(404, "there is no such tunnel of the caller's")
    @needs(Role.USER, Role.TASK)
    def delete(self, tunnel_id: str) -> Any:
        """End a tunnel, and what its lines lead to.

        Both ends hear of it.
        """
        tunnel, _ = _end(tunnel_id)
        _tunnels().end(tunnel)
        return "", 204


def _tunnels() -> Tunnels:
    tunnels: Tunnels = components_of(current_app).tunnels
    return tunnels


def _open(task: Task) -> Tunnel:
    """Open a tunnel to this task, then note that in the audit log, so that a refused call has no line that says 201."""
    tunnels = _tunnels()
    tunnel = tunnels.open(task.task_id, task.owner, caller().user_name)
    try:
        record_call()
    except BaseException:
        tunnels.end(tunnel)
        raise
    return tunnel.told


def _end(tunnel_id: str) -> tuple[OpenTunnel, End]:
    """A tunnel, and at which end of it the caller is; NotFound when it is none of the caller's."""
    tunnel, who = _tunnels().find(tunnel_id), caller()
    if who.role is Role.TASK:
        is_own, end = who.task_id == tunnel.told.task_id, End.RUNNER
    else:
        is_own, end = who.owners is None or tunnel.owner in who.owners, End.USER
    if not is_own:
        raise NotFound(f"there is no tunnel {tunnel_id[:40]}: it may have ended", "tunnel_id")
    return tunnel, end


def _check_task(who: Caller, task_id: str) -> None:
    if who.task_id != task_id:
        raise Forbidden(f"the token of {who.task_id} may not ask for other tunnels than its own")


def _seconds() -> float:
    seconds = query_number("seconds") or 0.0
    if seconds > LONGEST_WAIT:
        raise InvalidInput(f"seconds={seconds:g} is not allowed: 0 to {LONGEST_WAIT:g}", "seconds")
    return seconds


def _begin() -> int:
    text = request.args.get("begin", "")
    if not re.fullmatch(DIGITS, text):
        raise InvalidInput(f"begin={text[:40]!r} is not allowed: the bytes that were sent before", "begin")
    return int(text)


def _goes_on(components: Components, tunnel: OpenTunnel) -> bool:
    """Whether the task has not ended, whose runner may not have come by then."""
    stored = components.latest.configuration.tasks.get(tunnel.told.task_id)
    return stored is not None and not stored.task.state.is_final


def _while(parts: Iterator[bytes], is_valid: Callable[[], bool], has_more: Callable[[], bool]) -> Iterator[bytes]:
    """The parts that come while their reader is valid and more may come; what has come is still told."""
    for part in parts:
        if not is_valid() or (part == IDLING and not has_more()):
            return
        yield part
