from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.agent.outcome import OUTPUT_LIMIT, judge, parse_output
from infosvc.records import Outcome


@given(st.binary(max_size=200))
def test_whatever_is_printed_the_value_is_one_clean_line_or_refused(stdout: bytes) -> None:
    try:
        value = parse_output(stdout)
    except ValueError as error:
        assert str(error)
    else:
        assert value == value.strip()
        assert len(value.splitlines()) == 1
        assert value.encode() in stdout


@given(st.floats(allow_nan=False), st.sampled_from(["", "\n", " \n"]))
def test_a_printed_number_comes_through(number: float, end: str) -> None:
    assert float(parse_output(f"{number!r}{end}".encode())) == number


@pytest.mark.parametrize(
    ("stdout", "said"),
    [
        (b"", "nothing was printed"),
        (b" \n", "nothing was printed"),
        (b"1\n2\n", "2 lines"),
        (b"\xff\n", "UTF-8"),
        (b"1\x002\n", "control"),
        (b"1\r2\n", "control"),
        ("1\u20282\n".encode(), "control"),
    ],
)
def test_output_that_is_no_value_is_refused_with_the_reason(stdout: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_output(stdout)


@pytest.mark.parametrize(
    ("status", "stdout", "stderr", "expected"),
    [
        (0, b"0.5\n", b"a warning", (Outcome.OK, "0.5", None)),
        (3, b"", b"no disk\n", (Outcome.NO_DATA, None, "no disk")),
        (3, b"0\n", b"", (Outcome.NO_DATA, None, None)),
        (1, b"0.5\n", b"one\ntwo\n\nthree\nfour\n", (Outcome.FAILED, None, "exit status 1: two | three | four")),
        (-9, b"", b"", (Outcome.FAILED, None, "ended by signal 9: nothing on stderr")),
        (0, b"x" * (OUTPUT_LIMIT + 1), b"", (Outcome.FAILED, None, f"more than {OUTPUT_LIMIT} bytes were printed")),
    ],
)
def test_a_run_is_judged_by_its_status_first(
    status: int, stdout: bytes, stderr: bytes, expected: tuple[Outcome, str | None, str | None]
) -> None:
    assert judge(status, stdout, stderr) == expected
