from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.agent.run.outcome import OUTPUT_LIMIT, Verdict, classify_run, parse_output, parse_values
from infosvc.wire.records import Outcome


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


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["", "\n", " \n"]))
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
        (b"nan\n", "not a finite number"),
        (b"-inf\n", "not a finite number"),
        (b"1e999\n", "not a finite number"),
        (b"Infinity\n", "not a finite number"),
    ],
)
def test_output_that_is_no_value_is_refused_with_the_reason(stdout: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_output(stdout)


@pytest.mark.parametrize(
    ("status", "stdout", "stderr", "expected"),
    [
        (0, b"0.5\n", b"a warning", Verdict(Outcome.OK, "0.5")),
        (3, b"", b"no disk\n", Verdict(Outcome.NO_DATA, None, "no disk")),
        (3, b"0\n", b"", Verdict(Outcome.NO_DATA)),
        (1, b"0.5\n", b"one\ntwo\n\nthree\nfour\n", Verdict(Outcome.FAILED, None, "exit status 1: two | three | four")),
        (-9, b"", b"", Verdict(Outcome.FAILED, None, "ended by signal 9: nothing on stderr")),
        (
            -9,
            b"x" * (OUTPUT_LIMIT + 1),
            b"",
            Verdict(Outcome.FAILED, None, f"more than {OUTPUT_LIMIT} bytes were printed"),
        ),
        (
            0,
            b"x" * (OUTPUT_LIMIT + 1),
            b"",
            Verdict(Outcome.FAILED, None, f"more than {OUTPUT_LIMIT} bytes were printed"),
        ),
    ],
)
def test_a_run_is_judged_by_its_status_first(status: int, stdout: bytes, stderr: bytes, expected: Verdict) -> None:
    assert classify_run(status, stdout, stderr, "load") == expected


NAMES = ("load_1m", "load_5m", "model")


def test_named_values_come_in_any_order_and_some_may_be_missing() -> None:
    verdict = classify_run(0, b"model Xeon  E5 @ 2 GHz\n\n  load_1m\t0.5 \n", b"", "load", NAMES)

    assert verdict == Verdict(Outcome.OK, "2", None, {"model": "Xeon  E5 @ 2 GHz", "load_1m": "0.5"})


@pytest.mark.parametrize(
    ("stdout", "said"),
    [
        (b"", "nothing was printed"),
        (b"load_1m 1\nload_2m 1\n", r"line 2 \('load_2m 1'\) names nothing .* load_1m, load_5m, model"),
        (b"load_1m 1\nload_1m 2\n", r"line 2 .* a second time"),
        (b"load_1m\n", r"line 1 \('load_1m'\) has no value"),
        (b"load_1m 1\nload_5m nan\n", r"line 2 .* not a finite number"),
        (b"load_1m 1\x00\n", "line 1 .* control"),
        (b"\xff", "UTF-8"),
        (b"0.5\n", "names nothing"),
    ],
)
def test_a_bad_line_of_named_values_is_named(stdout: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_values(stdout, NAMES)
    assert classify_run(0, stdout, b"", "load", NAMES).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("stdout", "own", "values"),
    [
        (b"load 0.7\nload_1m 0.5\n", "0.7", {"load_1m": "0.5"}),
        (b"load_1m 0.5\nload heavy traffic\n", "heavy traffic", {"load_1m": "0.5"}),
        (b"load 0.7\n", "0.7", {}),
        (b"load 0\nload_1m 0.5\n", "0", {"load_1m": "0.5"}),
    ],
)
def test_a_line_of_the_producer_s_own_name_is_its_own_value(stdout: bytes, own: str, values: dict[str, str]) -> None:
    assert classify_run(0, stdout, b"", "load", NAMES) == Verdict(Outcome.OK, own, None, values)


@pytest.mark.parametrize(
    ("stdout", "said"),
    [
        (b"load 1\nload_1m 1\nload 2\n", "line 3 .* brings load a second time"),
        (b"load\nload_1m 1\n", "line 1 .* has no value"),
        (b"load nan\nload_1m 1\n", "line 1 .* not a finite number"),
        (b"0.7\nload_1m 1\n", "line 1 .* print one of load_1m, load_5m, model, load$"),
    ],
)
def test_a_bad_line_of_its_own_is_named(stdout: bytes, said: str) -> None:
    verdict = classify_run(0, stdout, b"", "load", NAMES)

    assert (verdict.outcome, verdict.value, verdict.values) == (Outcome.FAILED, None, None)
    assert re.search(said, verdict.reason or "")


def test_without_emits_a_value_is_a_line_whatever_name_it_begins_with() -> None:
    assert classify_run(0, b"load 0.7\n", b"", "load") == Verdict(Outcome.OK, "load 0.7")


@given(st.dictionaries(st.sampled_from(NAMES), st.integers().map(str), min_size=1))
def test_whatever_is_printed_for_each_name_comes_through(values: dict[str, str]) -> None:
    printed = "".join(f"{name} {text}\n" for name, text in values.items())

    assert parse_values(printed.encode(), NAMES) == values
