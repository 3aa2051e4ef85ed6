"""What a finished run means: its exit status and its output become an Outcome, a value or a reason."""

from __future__ import annotations

import unicodedata

from infosvc.records import Outcome

NO_DATA_STATUS = 3
OUTPUT_LIMIT = 65_535  # bytes: the longest value that the service keeps
_REASON_LINES = 3
_REASON_LIMIT = 500
_NOT_IN_A_LINE = ("Cc", "Zl", "Zp")  # control characters and Unicode's own line breaks


def parse_output(stdout: bytes) -> str:
    """The one line that a run printed, without blanks around it; ValueError tells why the output is no value.

    >>> parse_output(b"0.9375\\n")
    '0.9375'
    """
    try:
        value = stdout.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("the output is not UTF-8 text") from None
    if not value:
        raise ValueError("nothing was printed: print one line, or exit with 3 when there is no data")
    if "\n" in value:
        raise ValueError(f"{value.count(chr(10)) + 1} lines were printed: print exactly one")
    if any(unicodedata.category(char) in _NOT_IN_A_LINE and char != "\t" for char in value):
        raise ValueError("the output holds control characters: print one line of text")
    return value


def judge(status: int, stdout: bytes, stderr: bytes) -> tuple[Outcome, str | None, str | None]:
    """Outcome, value and reason of a run that ended by itself; a negative status is the signal that ended it."""
    if status == NO_DATA_STATUS:
        return Outcome.NO_DATA, None, last_lines(stderr) or None
    if status != 0:
        how = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
        return Outcome.FAILED, None, f"{how}: {last_lines(stderr) or 'nothing on stderr'}"
    if len(stdout) > OUTPUT_LIMIT:
        return Outcome.FAILED, None, f"more than {OUTPUT_LIMIT} bytes were printed"
    try:
        return Outcome.OK, parse_output(stdout), None
    except ValueError as error:
        return Outcome.FAILED, None, str(error)


def last_lines(stderr: bytes) -> str:
    """The end of what was complained, short enough to be shown in a table."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return " | ".join(lines[-_REASON_LINES:])[-_REASON_LIMIT:]
