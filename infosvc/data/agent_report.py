"""What an agent sends, decoded and checked in one pass; the pass is most of what taking in a value costs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, cast

import msgspec

from infosvc.data.structs import make_struct
from infosvc.wire.errors import InvalidInput, Malformed
from infosvc.wire.records import LONGEST_VALUE, Outcome, Report, Run

LONGEST_REASON = 4_000

_UNKNOWN = "Object contains unknown field"
_MISSING = re.compile("Object missing required field `([^`]*)`")
_strict = msgspec.json.Decoder(make_struct(Report, strict=True))
_decoder = msgspec.json.Decoder(make_struct(Report))


def read_report(body: bytes, pass_over: Callable[[], None] = lambda: None) -> Report:
    """A report from the body of a request; InvalidInput names the field that is wrong.

    Fields that are not known here may come from an agent of another version: `pass_over` is called once for a report
    that has some.
    """
    try:
        report = _decode(body, pass_over)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `$")
        missing = _MISSING.match(said)
        field = ".".join(filter(None, (where.strip("`."), missing and missing[1]))) or None
        raise InvalidInput(f"{field or 'the report'}: {said}", field) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is not a report ({error})", remedy="send one JSON object") from error
    for place, ran in enumerate(report.runs):
        _check(ran, place)
    return report


def _decode(body: bytes, pass_over: Callable[[], None]) -> Report:
    try:
        return _strict.decode(body)
    except msgspec.ValidationError as error:
        if not str(error).startswith(_UNKNOWN):
            raise
    report = _decoder.decode(body)
    pass_over()
    return report


def check_text(text: str, field: str) -> str:
    """A value as it may be kept; InvalidInput when it is NaN or infinite, too long, or holds half a character."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if number - number != 0:  # true for NaN and both infinities
        _refuse(field, text, "text or a finite number")
    if not text.isascii():
        _check_encoded(text, field)
    return text


def _check(ran: Run, place: int) -> None:
    if ran.outcome is Outcome.OK:
        if ran.value is None and ran.values is None:
            raise InvalidInput(
                f"runs[{place}].value is missing", f"runs[{place}].value", remedy="outcome ok brings one"
            )
        if ran.value is not None:
            check_text(ran.value, f"runs[{place}].value")
        for name, text in (ran.values or {}).items():
            check_text(text, f"runs[{place}].values[{name}]")
    if ran.reason is not None:
        reason = ran.reason[-LONGEST_REASON:].encode(errors="replace").decode() or None
        msgspec.structs.force_setattr(cast(msgspec.Struct, ran), "reason", reason)


def _check_encoded(text: str, field: str) -> None:
    try:
        if len(text.encode()) > LONGEST_VALUE:
            _refuse(field, text, f"text of at most {LONGEST_VALUE} bytes")
    except UnicodeEncodeError:
        _refuse(field, text, "text without halves of characters")


def _refuse(field: str, value: str, allowed: str) -> NoReturn:
    raise InvalidInput(f"{field} is {value[:80]!r}: it must be {allowed}", field)
