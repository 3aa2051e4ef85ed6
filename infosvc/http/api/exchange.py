"""What every namespace needs of a request: its body, checked field by field, and the way to what is known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from flask import current_app, g, request

from infosvc.access import audit
from infosvc.access.audit import Refusals
from infosvc.access.authenticator import HOLDER
from infosvc.access.roles import Caller
from infosvc.core.service import parts_of
from infosvc.data import intake
from infosvc.data.agent_report import Batch
from infosvc.state.configuration import Latest
from infosvc.state.transaction import Draft
from infosvc.state.writer import Writer
from infosvc.wire.errors import InvalidInput, Malformed, PreconditionFailed
from infosvc.wire.records import Receipt, check_name

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MISSING: Any = object()
LARGEST = 1e15


def latest() -> Latest:
    """What readers ask."""
    found: Latest = parts_of(current_app).latest
    return found


def write(change: Callable[[Draft], T]) -> T:
    """Make one change for whoever calls, with its line in the audit log; returns when both are stored.

    A change that a PUT asks for returns whether something is new, alone or as the last of several.
    """
    writer: Writer = parts_of(current_app).writer
    who, address, call = g.caller.name, request.remote_addr or "", f"{request.method} {request.full_path.rstrip('?')}"
    detail, at = request.get_data(as_text=True), latest().clock.wall()
    method = request.method

    def audited(draft: Draft) -> T:
        done = change(draft)
        audit.record(draft, at, who, address, call, _status(method, done), detail)
        return done

    return writer.write(audited)


def record_call() -> None:
    """Put the call that is answered into the audit log as a change, though nothing that the service keeps changes."""
    write(lambda _draft: None)


def note_refusal(status: int, message: str) -> None:
    """Put into the audit log that the call is refused."""
    call = f"{request.method} {request.path[:255]}"
    refusals: Refusals = parts_of(current_app).refusals
    caller: Caller = request.environ.get(HOLDER, g.caller)
    refusals.note(caller.name, request.remote_addr or "", call, status, message)


def _status(method: str, done: Any) -> int:
    """What a change is answered with."""
    if method == "DELETE":
        return 204
    new = done[-1] if isinstance(done, tuple) else done
    return 201 if new or method == "POST" else 200


def take_in(node_name: str, batch: Batch) -> Receipt:
    """Take one report; returns when it is acknowledged."""
    writer: Writer = parts_of(current_app).writer
    return intake.take(latest(), writer, node_name, batch, g.caller)


def body() -> Fields:
    """The request's JSON object; Malformed when it is none, or too deep."""
    try:
        text = request.get_data().decode()
        found = json.loads(text, parse_constant=_refuse_constant)
        # An escaped half of a surrogate pair decodes, but can be stored nowhere.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is not JSON ({error}): send one object") from error
    if not isinstance(found, dict):
        raise Malformed(f"the body is a JSON {type(found).__name__}: send one object")
    deepest = parts_of(current_app).settings.max_depth
    if _depth(found) > deepest:
        raise Malformed(f"the body is nested deeper than {deepest} levels: send a flatter one")
    return Fields(found)


def if_match() -> int | None:
    """The version that `If-Match` names, None without it; `*` names whatever is registered now."""
    header = request.headers.get("If-Match", "").strip()
    if not header:
        return None
    if header == "*":
        return _present_version((request.view_args or {})["data_name"])
    number = header.strip('"')
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise InvalidInput(f"If-Match {header!r} is not a version: send the producer's version number", "If-Match")
    return int(number)


def _present_version(data_name: str) -> int:
    known = latest().picture.producers.get(data_name)
    if known is None:
        raise PreconditionFailed(f"{data_name} is not registered, as If-Match says: leave If-Match out", "If-Match")
    return known.version


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


class Fields:
    """A JSON object whose fields are taken one by one; InvalidInput names the field that is wrong."""

    def __init__(self, found: dict[str, Any], where: str = "") -> None:
        self._found = found
        self._where = where

    def text(self, name: str, default: Any = MISSING, *, most: int, empty: bool = True) -> str:
        """Text of at most `most` characters."""
        value = self._get(name, default)
        if not isinstance(value, str) or len(value) > most or not (value or empty):
            self.refuse(name, value, f"text of {'at most' if empty else '1 to'} {most} characters")
        return str(value)

    def number(self, name: str, default: Any = MISSING, *, above: float = -1.0, least: float = 0.0) -> float:
        """A finite number, larger than `above` and at least `least`."""
        value = self._get(name, default)
        allowed = f"a number greater than {above:g}" if above >= 0 else f"a number, at least {least:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(name, value, allowed)
        if not (above < value <= LARGEST and value >= least):
            self.refuse(name, value, f"{allowed}, at most {LARGEST:g}")
        return float(value)

    def whole(self, name: str, default: Any = MISSING, *, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(name, value, f"a whole number from {least} to {most}")
        return int(value)

    def names(self, name: str, most: int = 1_000) -> tuple[str, ...]:
        """A list of data names, each once; none when it is missing."""
        value = self._get(name, [])
        if not isinstance(value, list) or len(value) > most or not all(isinstance(item, str) for item in value):
            self.refuse(name, value, f"a list of at most {most} data names")
        if len(set(value)) < len(value):
            self.refuse(name, value, "a list that holds each name once")
        return tuple(check_name(item, f"{self._where}{name}[{place}]") for place, item in enumerate(value))

    def flag(self, name: str, default: Any = MISSING) -> bool:
        """True or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            self.refuse(name, value, "true or false")
        return bool(value)

    def choice(self, name: str, kind: type[E], default: Any = MISSING) -> E:
        """One member of an enumeration."""
        value = self._get(name, default)
        if value not in list(kind):
            self.refuse(name, value, "one of " + ", ".join(kind))
        return kind(value)

    def given(self, name: str) -> Any:
        """The field as it came, None when it is missing or null."""
        return self._found.get(name)

    def refuse(self, name: str, value: Any, allowed: str) -> NoReturn:
        """Raise InvalidInput for a field."""
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:80] + "..."
        raise InvalidInput(f"{self._where}{name} is {shown}: it must be {allowed}", self._where + name)

    def _get(self, name: str, default: Any) -> Any:
        value = self._found.get(name)
        if value is None:
            if default is MISSING:
                raise InvalidInput(f"{self._where}{name} is missing", self._where + name)
            return default
        return value


def _depth(found: Any) -> int:
    """How many lists and objects stand within each other at most."""
    depth, level = 0, [found]
    while level:
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [each for part in inner for each in (part.values() if isinstance(part, dict) else part)]
        depth += bool(inner)
    return depth


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
