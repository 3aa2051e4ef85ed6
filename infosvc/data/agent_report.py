"""What an agent sends, decoded and checked in one pass; the pass is most of what taking in a value costs."""

from __future__ import annotations

import re
from typing import Annotated, NoReturn

import msgspec
from msgspec import Meta

from infosvc.wire.errors import InvalidInput, Malformed
from infosvc.wire.records import Outcome

LONGEST_VALUE = 65_535
LONGEST_REASON = 4_000
MOST_RUNS = 10_000
MOST_EMITTED = 1_000

_Seconds = Annotated[float, Meta(ge=0, le=1e15)]
_Sequence = Annotated[int, Meta(ge=0, le=2**62)]
_Count = Annotated[int, Meta(ge=0, le=10**9)]
_Status = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
_Text = Annotated[str, Meta(max_length=LONGEST_VALUE)]
_Name = Annotated[str, Meta(max_length=128)]  # what is not registered is left out, so its form needs no check


class Ran(msgspec.Struct, gc=False):
    """One run that ended in a slot, as records.Run says."""

    data_name: _Name
    outcome: Outcome
    duration: _Seconds | None
    value: _Text | None = None
    reason: _Text | None = None
    age: _Seconds = 0.0
    exit_status: _Status | None = None
    skipped: _Count = 0
    values: Annotated[dict[_Name, _Text], Meta(max_length=MOST_EMITTED)] | None = None


class Batch(msgspec.Struct, gc=False):
    """One report, as records.Report says."""

    boot: Annotated[str, Meta(min_length=1, max_length=64)]
    sequence: _Sequence
    runs: Annotated[list[Ran], Meta(max_length=MOST_RUNS)]
    agent_version: Annotated[str, Meta(max_length=64)] = ""
    dropped: _Count = 0


_MISSING = re.compile("Object missing required field `([^`]*)`")
_decoder = msgspec.json.Decoder(Batch)


def read_batch(body: bytes) -> Batch:
    """A report from the body of a request; InvalidInput names the field that is wrong."""
    try:
        batch = _decoder.decode(body)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `$")
        missing = _MISSING.match(said)
        field = ".".join(filter(None, (where.strip("`."), missing and missing[1]))) or None
        raise InvalidInput(f"{field or 'the report'}: {said}", field) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is no report ({error}): send one JSON object") from error
    for place, ran in enumerate(batch.runs):
        _check(ran, place)
    return batch


def check_text(text: str, field: str) -> str:
    """A value as it may be kept; InvalidInput when it is a number that is none, or too long, or half a character."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if number - number != 0:  # true for NaN and both infinities
        _refuse(field, text, "text or a finite number")
    if not text.isascii():
        _check_encoded(text, field)
    return text


def _check(ran: Ran, place: int) -> None:
    if ran.outcome is Outcome.OK:
        if ran.value is None and ran.values is None:
            raise InvalidInput(f"runs[{place}].value is missing: outcome ok brings one", f"runs[{place}].value")
        if ran.value is not None:
            check_text(ran.value, f"runs[{place}].value")
        for name, text in (ran.values or {}).items():
            check_text(text, f"runs[{place}].values[{name}]")
    if ran.reason is not None:
        ran.reason = ran.reason[-LONGEST_REASON:].encode(errors="replace").decode() or None


def _check_encoded(text: str, field: str) -> None:
    try:
        if len(text.encode()) > LONGEST_VALUE:
            _refuse(field, text, f"text of at most {LONGEST_VALUE} bytes")
    except UnicodeEncodeError:
        _refuse(field, text, "text without halves of characters")


def _refuse(field: str, value: str, allowed: str) -> NoReturn:
    raise InvalidInput(f"{field} is {value[:80]!r}: it must be {allowed}", field)
