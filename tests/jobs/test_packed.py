"""RecordIO files: what is written can be found again by offset and length, and nothing is forgotten in silence."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.commands.images import Size
from jobs.images import recordio
from jobs.images.recordio import (
    HEAD_BYTES,
    MAGIC,
    BadPack,
    Index,
    Places,
    Records,
    as_places,
    is_whole,
    locate,
    places,
    read_image,
)
from jobs.images.recordio import record as record_of
from jobs.images.recordio import records as records_of

MARK = struct.pack("<I", MAGIC)
PICTURES = st.lists(st.one_of(st.just(MARK), st.binary(max_size=9)), max_size=6).map(b"".join)


class Pack:
    """A pack in memory, as its four files."""

    def __init__(self, pictures: list[bytes], names: list[str] | None = None) -> None:
        made = [record_of(7 + key, 2.0, content) for key, content in enumerate(pictures)]
        self.offsets = [0, *accumulate(map(len, made))]
        self.rec = b"".join(made)
        self.idx = lines(*([7 + key, at] for key, at in enumerate(self.offsets[:-1])))
        self.lst = lines(*([7 + key, "2.000000", name] for key, name in enumerate(names or [])))
        self.len = lines(*([7 + n, self.offsets[n] + HEAD_BYTES, len(one)] for n, one in enumerate(pictures)))

    def read_at(self, offset: int, length: int) -> bytes:
        return self.rec[offset : offset + length]

    def located(self, found: Records) -> Places:
        table = np.array([locate(self.read_at, int(at)) for at in found.offsets], np.int64)
        return as_places(table.reshape(-1, 4))

    def index(self, with_lengths: bool = True) -> Index:
        found = records_of(self.idx)
        where = places(self.len, found) if with_lengths else self.located(found)
        return Index.of(found, where, self.lst, len(self.rec))


def lines(*rows: Sequence[object]) -> bytes:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()


@given(st.lists(PICTURES, max_size=5))
def test_every_picture_comes_back_whether_it_is_split_or_not(pictures: list[bytes]) -> None:
    pack = Pack(pictures)
    index = pack.index(with_lengths=False)

    assert len(index) == len(pictures)
    for number, content in enumerate(pictures):
        place = index.place(number)
        assert read_image(pack.read_at, int(index.offsets[number])) == content
        assert (place.length, place.is_split) == (len(content), not is_whole(content))
        assert place.is_split or pack.read_at(place.start, place.length) == content
        assert place.end == pack.offsets[number + 1]


@given(st.lists(PICTURES.filter(is_whole), max_size=5))
def test_stated_lengths_say_what_the_records_say(pictures: list[bytes]) -> None:
    stated, read = (Pack(pictures).index(with_lengths) for with_lengths in (True, False))

    assert [stated.place(n) for n in range(len(pictures))] == [read.place(n) for n in range(len(pictures))]


def test_the_mark_splits_a_record_only_at_a_multiple_of_four() -> None:
    assert [is_whole(b"x" * shift + MARK) for shift in range(5)] == [False, True, True, True, False]


def test_labels_before_a_picture_are_not_taken_for_it() -> None:
    content = struct.pack("<IfQQ", 3, 0, 7, 0) + struct.pack("<3f", 1, 2, 3) + b"picture"
    rec = struct.pack("<II", MAGIC, len(content)) + content + b"\0"

    place = locate(lambda at, count: rec[at : at + count], 0)

    assert rec[place.start : place.start + place.length] == b"picture"
    assert place.end == len(rec)


def test_an_index_in_any_order_is_put_in_the_order_of_the_bytes() -> None:
    pack = Pack([b"a" * 5, b"b" * 9, b"c"], ["a.jpg", "in/b.jpg", "c.jpg"])
    pack.idx, pack.len = (b"".join(text.splitlines(keepends=True)[::-1]) for text in (pack.idx, pack.len))

    index = pack.index()

    assert [index.name(n) for n in range(3)] == ["a.jpg", "in/b.jpg", "c.jpg"]
    assert [index.place(n).length for n in range(3)] == [5, 9, 1]


def test_names_are_told_apart_and_made_up_where_the_list_has_none() -> None:
    pack = Pack([b""] * 4, ["same.jpg", "ü 1.jpg", "same.jpg"])

    index = pack.index()

    assert [index.name(n) for n in range(4)] == ["same.jpg@0", "ü 1.jpg", "same.jpg@64", "@96"]
    assert Pack([b""]).index().name(0) == "@0"
    pack.lst = lines([7, 0, "a.jpg"], [7, 0, "b.jpg"], [8, 0, "c.jpg"])
    assert [pack.index().name(n) for n in range(2)] == ["@0", "c.jpg"], "the first could be either"


def test_a_list_may_have_more_labels_and_pictures_and_no_last_line_end() -> None:
    pack = Pack([b"", b""])
    pack.lst = b"9\t0\tgone.jpg\n8\t1.5\t2.5\tb b.jpg\n\n7\t0\ta.jpg"

    assert [pack.index().name(n) for n in range(2)] == ["a.jpg", "b b.jpg"]


def test_the_first_picture_behind_a_byte_is_found() -> None:
    index = Pack([b"x" * 8] * 3).index()

    assert [index.first_at(byte) for byte in (0, 1, 40, 41, 80, 81, 500)] == [0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("with_lengths", [True, False])
def test_a_record_that_the_index_does_not_name_is_refused(missing: int, with_lengths: bool) -> None:
    pack = Pack([b"x" * 8] * 3)
    for kind in ("idx", "len"):
        rows = getattr(pack, kind).splitlines(keepends=True)
        setattr(pack, kind, b"".join(rows[:missing] + rows[missing + 1 :]))

    with pytest.raises(BadPack, match=rf"does not name what it holds from byte {40 * missing} on"):
        pack.index(with_lengths)


def test_a_cut_file_is_refused() -> None:
    pack = Pack([b"x" * 8] * 3)
    pack.rec = pack.rec[:-4]

    with pytest.raises(BadPack, match="does not name what it holds from byte 116 on"):
        pack.index()


@pytest.mark.parametrize(
    "stated",
    [
        "",
        "7\t32\t8\n8\t72\t8\n",
        "7\t32\t8\n8\t72\t8\n9\t111\t8\n",
        "7\t32\t8\n8\t72\t8\n3\t112\t8\n",
        "7\t33\t7\n8\t72\t8\n9\t112\t8\n",
    ],
)
def test_lengths_that_belong_to_another_index_are_refused(stated: str) -> None:
    pack = Pack([b"x" * 8] * 3)
    pack.len = stated.encode()

    with pytest.raises(BadPack, match=r"has a \.len that belongs to another \.idx: delete the \.len"):
        pack.index()


def test_bytes_that_are_no_record_are_refused() -> None:
    pack = Pack([b"x" * 8] * 3)
    pack.idx = lines([7, 4])
    with pytest.raises(BadPack, match="holds no record at byte 4, where one should begin"):
        pack.index(with_lengths=False)

    pack.idx = lines([7, 400])
    with pytest.raises(BadPack, match="holds no record at byte 400"):
        pack.index(with_lengths=False)


def test_a_record_that_is_no_picture_of_mxnet_s_is_refused() -> None:
    rec = struct.pack("<II", MAGIC, 4) + b"text"

    with pytest.raises(BadPack, match="holds a record of 4 bytes at byte 0, too short"):
        locate(lambda at, count: rec[at : at + count], 0)


def test_parts_that_do_not_follow_one_another_are_refused() -> None:
    rec = Pack([b"x" * 8 + MARK]).rec[:-8] + record_of(1, 0, b"")

    with pytest.raises(BadPack, match="holds a record at byte 0 whose parts do not follow one another"):
        locate(lambda at, count: rec[at : at + count], 0)


@pytest.mark.parametrize(
    ("idx", "why"),
    [
        ("7\tx\n", r"has an \.idx that cannot be read"),
        ("7\n8\n", r"has an \.idx with 1 numbers in a line instead of 2"),
        ("a\t0\n", r"has an \.idx that cannot be read"),
    ],
)
def test_an_index_that_is_none_is_refused(idx: str, why: str) -> None:
    with pytest.raises(BadPack, match=why):
        records_of(idx.encode())


@pytest.mark.parametrize(
    ("lst", "why"), [("7 0 a.jpg\n", r"without tabs in b'7 0 a\.jpg'"), ("a\t0\tb.jpg\n", "a key that is not a number")]
)
def test_a_list_that_is_none_is_refused(lst: str, why: str) -> None:
    pack = Pack([b""])
    pack.lst = lst.encode()

    with pytest.raises(BadPack, match=why):
        pack.index()


def test_an_index_takes_no_more_than_200_bytes_a_picture() -> None:
    count = 20_000
    pack = Pack([b"x"] * count, [f"train/n01440764/n01440764_{number:05}.JPEG" for number in range(count)])

    index = pack.index()

    arrays = [index.offsets, *index.places[:3], index.names.begins, index.names.ends]
    assert sum(array.nbytes for array in arrays) + len(index.names.text) <= 200 * count
    assert index.name(count - 1) == "train/n01440764/n01440764_19999.JPEG"


def test_a_picture_longer_than_a_record_can_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordio, "MOST_BYTES", HEAD_BYTES)

    assert record_of(1, 0, b"x" * 8)
    with pytest.raises(ValueError, match="33 bytes do not fit into a record of 32"):
        record_of(1, 0, b"x" * 9)


@pytest.mark.parametrize(
    ("text", "size"), [("64MB", 64_000_000), ("500kB", 500_000), ("1.5 GB", 1_500_000_000), ("7", 7), ("3m", 3_000_000)]
)
def test_sizes_are_written_as_people_do(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "MB", "0", "-4MB", "4 pounds", "4MiB"])
def test_what_is_no_size_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.UsageError, match="is not a size of 1 byte or more: write it like 64MB"):
        Size().convert(text, None, None)
