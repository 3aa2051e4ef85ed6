"""Values that a program reports: which lines do, in whatever pieces they come, and what is noted of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.kinds.task.printed import Spool
from jobs.kinds.task.reported import MARK, MOST_LINE_BYTES, MOST_NAMES, Noted, Reports, choose_evenly, parse, read_notes

LINES = {
    b"nodewise: loss=0.31 accuracy=0.9 step=120": (120, {"loss": 0.31, "accuracy": 0.9}),
    b"nodewise: step=0 loss=-1e-3": (0, {"loss": -0.001}),
    b"nodewise:   loss=.5\tval:x=1. \r": (None, {"loss": 0.5, "val:x": 1.0}),
    b"nodewise: loss=+5": (None, {"loss": 5.0}),
}
ORDINARY = [
    b"",
    b"nodewise:",
    b"nodewise: ",
    b"nodewise: done",
    b" nodewise: loss=1",
    b"Nodewise: loss=1",
    b"nodewise:loss=1",
    b"nodewise: loss=",
    b"nodewise: loss = 1",
    b"nodewise: =1",
    b"nodewise: loss=nan",
    b"nodewise: loss=inf",
    b"nodewise: loss=1e999",
    b"nodewise: loss=1_0",
    b"nodewise: loss=0x1",
    b"nodewise: loss=1 2",
    b"nodewise: loss=1 loss=2",
    b"nodewise: loss=1 and more",
    b"nodewise: l\xc3\xb6ss=1",
    "nodewise: loss=\N{ARABIC-INDIC DIGIT ONE}".encode(),
    b"nodewise: 1st=1",
    b"nodewise: val/x=1",
    b"nodewise: " + b"a" * 129 + b"=1",
    b"nodewise: loss=1 step=-1",
    b"nodewise: loss=1 step=1.5",
    b"nodewise: loss=1 step=1e3",
    b"nodewise: loss=1 step=9999999999999999",
    b"nodewise: step=1",
    b"nodewise: loss=1" + b"0" * 5000,
]


def quiet(said: str) -> None:
    raise AssertionError(said)


def values_of(notes: bytes) -> list[tuple[str, int, float]]:
    """What notes say but for the moments; each is a line of JSON."""
    said = [(one["name"], one["step"], one["value"]) for one in map(json.loads, notes.splitlines())]
    assert [one[1:] for one in read_notes(notes)] == said
    return said


@pytest.mark.parametrize("line", LINES, ids=repr)
def test_a_line_reports_values(line: bytes) -> None:
    assert parse(line) == LINES[line]


@pytest.mark.parametrize("line", ORDINARY, ids=lambda line: repr(line[:40]))
def test_any_other_line_is_an_ordinary_one(line: bytes) -> None:
    assert parse(line)[1] == {}


def test_of_a_long_line_whole_words_count_and_no_part_of_a_number() -> None:
    head = MARK + b"loss=1 "
    for filling in range(MOST_LINE_BYTES - len(head) - 12, MOST_LINE_BYTES):
        line = head + b" " * filling + b"more=12345 " + b"x" * 100
        whole = len(head) + filling + len(b"more=12345") <= MOST_LINE_BYTES
        assert parse(line)[1] == {"loss": 1.0} | ({"more": 12345.0} if whole else {})


def test_steps_are_counted_by_name_where_a_line_names_none() -> None:
    reports = Reports(quiet, clock=lambda: 1_700_000_000.1254)

    notes = reports.hear(b"nodewise: loss=3\nnodewise: loss=2 other=1\nnodewise: loss=1 step=10\nnodewise: loss=0\n")

    assert values_of(notes) == [("loss", 0, 3), ("loss", 1, 2), ("other", 0, 1), ("loss", 10, 1), ("loss", 11, 0)]
    assert notes.splitlines()[0] == b'{"at":1700000000.125,"name":"loss","step":0,"value":3.0}'
    assert next(read_notes(notes)) == Noted(1_700_000_000.125, "loss", 0, 3.0)


def test_a_line_counts_once_it_has_its_end() -> None:
    reports = Reports(quiet)

    assert reports.hear(b"nodewise: loss=1") == b""
    assert values_of(reports.hear(b"2\n")) == [("loss", 0, 12)]


WORDS = [
    b"nodewise: loss=0.5 step=3\n",
    b"nodewise: a=1 b=-2e3\n",
    b"nodewise: a=nan\n",
    b"nodewise: ",
    b"\n",
    b"\r\n",
    b"x" * 5000,
    b"plain\n",
    b"\nnodewise",
    b" " * 4080,
    b"b=7 ",
    b"\xff\x00",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.lists(st.integers(0, 30_000), max_size=12))
@example([b"nodewise: a=1 b=-2e3\n"] * 2, [1, 21, 22, 30])
def test_pieces_split_anywhere_report_what_the_whole_does(words: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(words)
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    reports = Reports(quiet, clock=lambda: 1.0)

    heard = b"".join(reports.hear(whole[begin:end]) for begin, end in pairwise(places))

    assert heard == Reports(quiet, clock=lambda: 1.0).hear(whole)
    lines = [parse(line)[1] for line in whole.split(b"\n")[:-1]]
    assert [(name, value) for name, _, value in values_of(heard)] == [pair for one in lines for pair in one.items()]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**15 - 1))
def test_a_number_is_noted_as_it_is(value: float, step: int) -> None:
    notes = Reports(quiet).hear(f"nodewise: x={value!r} step={step}\n".encode())

    assert values_of(notes) == [("x", step, value)]


def test_of_too_many_names_the_first_are_kept_and_it_is_said_once() -> None:
    said: list[str] = []
    reports = Reports(said.append)

    for _ in range(2):
        notes = b"".join(reports.hear(f"nodewise: v{number}=1\n".encode()) for number in range(MOST_NAMES + 2))

    assert [name for name, _, _ in values_of(notes)] == [f"v{number}" for number in range(MOST_NAMES)]
    assert said == ["the program reports values of more than 100 names: those of v100 and more are not kept"]


def test_of_too_many_values_the_first_are_kept_and_it_is_said_once() -> None:
    said: list[str] = []
    reports = Reports(said.append, clock=lambda: 1.0, most_bytes=150)

    notes = [reports.hear(b"nodewise: loss=1\n") for _ in range(9)]

    assert [bool(one) for one in notes] == [True] * 3 + [False] * 6
    assert said == ["the program has reported so many values that no more of them are kept"]


FOREIGN = [
    b"[" * 100_000,
    b'{"at":1.0,"name":"x","step":1,"value":NaN}',
    b'{"at":1.0,"name":"x","step":1,"value":1e999}',
    b'{"at":1.0,"name":"x\\u0000","step":1,"value":1}',
    b'{"at":1.0,"name":"x","step":-1,"value":1}',
    b'{"at":1.0,"name":"x","step":11111111111111111,"value":1}',
    b'{"at":1.0,"name":"x","step":1,"value":1} ',
    b"\xff",
]


@pytest.mark.parametrize("line", FOREIGN, ids=lambda line: repr(line[:60]))
def test_what_is_no_note_is_passed_over_among_notes(line: bytes) -> None:
    note = b'{"at":1.0,"name":"x","step":1,"value":0.5}'

    assert list(read_notes(b"\n".join([note, line, note, b""]))) == [Noted(1.0, "x", 1, 0.5)] * 2


def test_a_stream_that_is_not_passed_on_is_kept_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spool = Spool(tmp_path / "spool", None)

    spool.write(b"note\n")

    assert (spool.read(0), (tmp_path / "spool").stat().st_size) == (b"note\n", 5)
    assert capfd.readouterr() == ("", "")


@given(st.integers(0, 300), st.integers(2, 50))
def test_places_are_chosen_evenly_with_both_ends(count: int, most: int) -> None:
    places = list(choose_evenly(count, most))

    assert len(places) == min(count, most)
    assert places[:1] + places[-1:] == [0, count - 1][: 2 * bool(count)]
    gaps = [later - before for before, later in pairwise(places)]
    assert not gaps or max(gaps) - min(gaps) <= 1
