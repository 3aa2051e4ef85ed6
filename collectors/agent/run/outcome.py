"""What a finished run means: its exit status and its output become an Outcome, values or a reason."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infosvc.wire.records import Outcome

NO_DATA_STATUS = 3
OUTPUT_LIMIT = 65_535  # bytes: the longest value that the service keeps
_REASON_LINES = 3
_REASON_LIMIT = 500
_SHOWN_LIMIT = 60
_NOT_IN_A_LINE = ("Cc", "Zl", "Zp")  # control characters and Unicode's own line breaks


@dataclass(frozen=True)
class Verdict:
    """How a run ended: `value` is its own value, or how many names came in `values` if it printed no own one."""

    outcome: Outcome
    value: str | None = None
    reason: str | None = None
    values: Mapping[str, str] | None = None


def parse_output(stdout: bytes) -> str:
    """The one line that a run printed, without blanks around it; ValueError tells why the output is not a value.

    >>> parse_output(b"0.9375\\n")
    '0.9375'
    """
    value = _text(stdout)
    if "\n" in value:
        raise ValueError(f"{value.count(chr(10)) + 1} lines were printed: print exactly one")
    return _check_value(value, "the output")


def parse_values(stdout: bytes, emits: Sequence[str]) -> dict[str, str]:
    """The `name value` lines that a run printed, in any order; ValueError names the line that is wrong.

    >>> parse_values(b"load_1m 0.5\\nload_5m 0.25\\n", ["load_1m", "load_5m", "load_15m"])
    {'load_1m': '0.5', 'load_5m': '0.25'}
    """
    values: dict[str, str] = {}
    for number, line in enumerate(_text(stdout).split("\n"), 1):
        words = line.split(maxsplit=1)
        if not words:
            continue
        where = f"line {number} ({_quote(line)})"
        if words[0] not in emits:
            raise ValueError(f"{where} names nothing that this producer emits: print one of {', '.join(emits)}")
        if len(words) < 2:
            raise ValueError(f"{where} has no value: print `name value`, or leave the line out")
        if words[0] in values:
            raise ValueError(f"{where} brings {words[0]} a second time: print each name once")
        values[words[0]] = _check_value(words[1].strip(), where)
    return values


def classify_run(status: int, stdout: bytes, stderr: bytes, data_name: str, emits: Sequence[str] = ()) -> Verdict:
    """What a run of the producer `data_name` that ended by itself means; a negative status is the signal that ended it.

    Among the lines of a producer with `emits`, one of its own name brings its own value.
    """
    if status == NO_DATA_STATUS:
        return Verdict(Outcome.NO_DATA, None, last_lines(stderr) or None)
    if len(stdout) > OUTPUT_LIMIT:
        return Verdict(Outcome.FAILED, None, f"more than {OUTPUT_LIMIT} bytes were printed")
    if status != 0:
        how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
        return Verdict(Outcome.FAILED, None, f"{how}: {last_lines(stderr) or 'nothing on stderr'}")
    try:
        if not emits:
            return Verdict(Outcome.OK, parse_output(stdout))
        values = parse_values(stdout, (*emits, data_name))
        own = values.pop(data_name, str(len(values)))
        return Verdict(Outcome.OK, own, None, values)
    except ValueError as error:
        return Verdict(Outcome.FAILED, None, str(error)[:_REASON_LIMIT])


def last_lines(stderr: bytes) -> str:
    """The end of what was complained, short enough to be shown in a table."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return " | ".join(lines[-_REASON_LINES:])[-_REASON_LIMIT:]


def _text(stdout: bytes) -> str:
    try:
        text = stdout.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("the output is not UTF-8 text") from None
    if not text:
        raise ValueError("nothing was printed: print one line, or exit with 3 when there is no data")
    return text


def _check_value(value: str, where: str) -> str:
    if any(unicodedata.category(char) in _NOT_IN_A_LINE and char != "\t" for char in value):
        raise ValueError(f"{where} holds control characters: print one line of text")
    try:
        finite = math.isfinite(float(value))
    except ValueError:
        return value  # text, not a number
    if not finite:
        raise ValueError(f"{where} brings {_quote(value)}, which is not a finite number: exit with 3 for no data")
    return value


def _quote(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_LIMIT else text[:_SHOWN_LIMIT] + "...")
