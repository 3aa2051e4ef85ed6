"""What every namespace needs of a request but its body: who asks for what, the way to what is known, and changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from flask import current_app, g, request

from infosvc.access.audit import AuditLog
from infosvc.access.authenticator import HOLDER
from infosvc.access.noted_calls import NotedCalls
from infosvc.access.roles import Caller
from infosvc.core.service import components_of
from infosvc.data import intake
from infosvc.state.transaction import Transaction
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.errors import InvalidInput, PreconditionFailed
from infosvc.wire.records import Receipt, Report

T = TypeVar("T")


def latest() -> Latest:
    """What readers ask."""
    view: Latest = components_of(current_app).latest
    return view


def write(change: Callable[[Transaction], T], detail: str | None = None) -> T:
    """Make one change for whoever calls, with its line in the audit log; returns when both are stored.

    A change that a PUT asks for returns whether something is new, alone or as the last of several; that of a POST may.
    The line holds the
    `detail`, which is the body if it is left out.
    """
    seal, method = _audit_line(detail), request.method

    def apply_and_seal(transaction: Transaction) -> T:
        done = change(transaction)
        seal(transaction, _status(method, done))
        return done

    return _writer().write(apply_and_seal)


def write_unlogged(change: Callable[[Transaction], T]) -> T:
    """Make one change without a line in the audit log, as programs make again and again; returns when it is stored."""
    return _writer().write(change)


def caller() -> Caller:
    """Who calls."""
    known: Caller = g.caller
    return known


def record_call() -> None:
    """Put this call into the audit log although it changes nothing that the service keeps; returns when it is stored.

    For calls that change something elsewhere, such as one that ends a job.
    """
    seal, status = _audit_line(None), _status(request.method, None)
    _writer().write(lambda transaction: seal(transaction, status))


def _audit_line(detail: str | None) -> Callable[[Transaction, int], None]:
    """What puts the line of this call, with its status, into a commit, which another thread makes."""
    log: AuditLog = components_of(current_app).audit_log
    who, address, call = g.caller.name, request.remote_addr or "", f"{request.method} {request.full_path.rstrip('?')}"
    said, at = request.get_data(as_text=True) if detail is None else detail, latest().clock.wall()
    return lambda transaction, status: log.record(transaction, at, who, address, call, status, said)


def _writer() -> Writer:
    writer: Writer = components_of(current_app).writer
    return writer


def note_refusal(status: int, message: str) -> None:
    """Put into the audit log that the call is refused."""
    note_call(request.environ.get(HOLDER, g.caller), status, message)


def note_call(caller: Caller, status: int, message: str = "") -> None:
    """Put into the audit log how a call was answered that changes nothing the service keeps; nobody waits for it."""
    call = f"{request.method} {request.path[:255]}"
    noted: NotedCalls = components_of(current_app).noted_calls
    noted.note(caller.name, request.remote_addr or "", call, status, message, caller.token_id)


def _status(method: str, done: Any) -> int:
    """What a change is answered with."""
    if method == "DELETE":
        return 204 if done is None else 200
    new = done[-1] if isinstance(done, tuple) else done
    return 201 if new or (method == "POST" and new is not False) else 200


def take_in(node_name: str, report: Report) -> Receipt:
    """Take one report; returns when it is acknowledged."""
    return intake.take(latest(), _writer(), node_name, report, g.caller)


def if_match() -> int | None:
    """The version that `If-Match` names, None without it; `*` names whatever is registered now."""
    header = request.headers.get("If-Match", "").strip()
    if not header:
        return None
    if header == "*":
        return _present_version((request.view_args or {})["data_name"])
    number = header.strip('"')
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise InvalidInput(
            f"If-Match {header!r} is not a version", "If-Match", remedy="send the producer's version number"
        )
    return int(number)


def _present_version(data_name: str) -> int:
    known = latest().configuration.producers.get(data_name)
    if known is None:
        raise PreconditionFailed(
            f"{data_name} is not registered, as If-Match says", "If-Match", remedy="leave If-Match out"
        )
    return known.version


def query_flag(name: str) -> bool:
    """Whether the query string says true; false without it."""
    text = request.args.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidInput(f"{name}={text!r} is not allowed: true or false", name)
    return text == "true"


def query_number(name: str) -> float | None:
    """A non-negative number of the query string, None without it."""
    text = request.args.get(name)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidInput(f"{name}={text!r} is not allowed: seconds, 0 or more", name)
    return number
