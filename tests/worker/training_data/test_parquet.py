"""Parquet as a data set: rows by their numbers, row groups kept as far as memory goes, and what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.training_data.files import Span
from jobs.training_data.parquet import HdfsParquet, hdfs_parquet
from jobs.training_data.row_groups import Arrays, Columns, RowGroups
from learning.errors import LearningError
from tests.worker.training_data.shelf import Shelf

COLUMNS = Columns(("a", "many"), "y", np.dtype("float64"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """/rows with two files of 25 and 15 rows in row groups of 10, and what is no Parquet."""
    (tmp_path / "rows").mkdir()
    for first, rows in ((0, 25), (25, 15)):
        number = np.arange(first, first + rows)
        many = pa.array([[float(one), one + 0.5] for one in number], pa.list_(pa.float32()))
        table = pa.table({"a": number / 2, "many": many, "y": number.astype(np.int32), "name": number.astype(str)})
        pq.write_table(table, tmp_path / "rows" / f"{first:02}.parquet", row_group_size=10)
    (tmp_path / "rows" / "notes.txt").write_text("about the rows")
    return tmp_path


def test_rows_come_in_the_order_of_their_numbers_from_all_files(root: Path) -> None:
    data = HdfsParquet(Shelf(root), "/rows", COLUMNS)

    x, y = data.batch_of([39, 0, 24, 25, 7])

    assert len(data) == 40
    assert x.tolist() == [[n / 2, n, n + 0.5] for n in (39, 0, 24, 25, 7)]
    assert (str(y.dtype), y.tolist()) == ("int64", [39, 0, 24, 25, 7])


def test_one_file_is_a_data_set_too_and_targets_may_be_no_whole_numbers(root: Path) -> None:
    data = HdfsParquet(Shelf(root), "/rows/25.parquet", Columns(("y",), "a", np.dtype("float32")))

    x, y = data.batch_of([0, 1])

    assert {str(x.dtype), str(y.dtype)} == {"float32"}
    assert (x.tolist(), y.tolist()) == ([[25.0], [26.0]], [12.5, 13.0])


def test_rows_lie_where_the_middle_of_their_row_group_does(root: Path) -> None:
    told = pq.ParquetFile(root / "rows" / "00.parquet").metadata
    second = told.row_group(1).column(0).data_page_offset
    ends = {"/rows/00.parquet": [Span(0, second, ("n1",)), Span(second, 9999999, ("n2", "n3"))]}
    shelf = Shelf(root, ends | {"/rows/25.parquet": [Span(0, 9999999, ())]})

    places = HdfsParquet(shelf, "/rows", COLUMNS).places_of(range(40))

    assert places == [("n1",)] * 10 + [("n2", "n3")] * 15 + [()] * 15


def test_row_groups_that_were_used_last_are_kept_as_far_as_memory_goes() -> None:
    read: list[int] = []

    def arrays(number: int) -> Arrays:
        read.append(number)
        return Arrays(np.zeros((10, 2)), np.zeros(10, np.int64))

    groups = RowGroups(arrays, most=2 * 240)
    for number in (1, 2, 1, 3, 1, 2):
        groups.get(number)

    assert read == [1, 2, 3, 2]


def test_what_does_not_fit_is_read_all_the_same() -> None:
    groups = RowGroups(lambda number: Arrays(np.full((1, 1), number), np.zeros(1)), most=1)

    assert [groups.get(number).x.item() for number in (4, 5)] == [4, 5]


def test_only_the_columns_that_are_used_are_read(tmp_path: Path) -> None:
    (tmp_path / "wide.parquet").touch()
    chance = np.random.default_rng(1)
    table = pa.table({name: chance.normal(size=20_000) for name in "abcdefgh"} | {"y": np.zeros(20_000, np.int64)})
    pq.write_table(table, tmp_path / "wide.parquet")
    shelf = Shelf(tmp_path)

    HdfsParquet(shelf, "/wide.parquet", Columns(("c",), "y", np.dtype("float32"))).batch_of([1])

    assert sum(length or 0 for _, _, length in shelf.read_at) < (tmp_path / "wide.parquet").stat().st_size / 3


WRONG: dict[str, tuple[Any, str]] = {
    "no column": (
        Columns(("a", "b"), "y", np.dtype("f4")),
        "/rows/00.parquet has no column b: it has a, many, y, name",
    ),
    "no target": (Columns(("a",), "z", np.dtype("f4")), "/rows/00.parquet has no column z: it has a, many, y, name"),
    "a text": (Columns(("name",), "y", np.dtype("f4")), "the column name of /rows/00.parquet holds string: name"),
}


@pytest.mark.parametrize(("columns", "said"), WRONG.values(), ids=WRONG)
def test_columns_that_are_no_numbers_or_not_there_are_refused(root: Path, columns: Columns, said: str) -> None:
    with pytest.raises(LearningError) as caught:
        HdfsParquet(Shelf(root), "/rows", columns)
    assert str(caught.value).startswith(said)


def test_rows_without_a_value_and_unequal_lists_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, None], "many": [[1.0], [1.0, 2.0]], "y": [0, 1]}), tmp_path / "bad.parquet")

    for name, said in (("a", "has rows without a value: fill"), ("many", "has lists of 1 to 2 numbers: make")):
        data = HdfsParquet(Shelf(tmp_path), "/bad.parquet", Columns((name,), "y", np.dtype("f4")))
        with pytest.raises(LearningError, match=f"^the column {name} of /bad.parquet {said}"):
            data.batch_of([0])


def test_what_is_no_parquet_and_a_folder_without_any_are_refused(root: Path) -> None:
    with pytest.raises(LearningError, match=r"^/rows/notes\.txt cannot be read as Parquet: "):
        HdfsParquet(Shelf(root), "/rows/notes.txt", COLUMNS)
    (root / "empty").mkdir()
    with pytest.raises(LearningError, match=r"^/empty holds no rows: name a file, or a folder with \*\.parquet"):
        HdfsParquet(Shelf(root), "/empty", COLUMNS)
    with pytest.raises(LearningError, match="inputs are 'width': give a list of columns"):
        hdfs_parquet("/rows", "width", "y")


def test_a_damaged_end_of_a_file_is_named(root: Path) -> None:
    file = root / "rows" / "25.parquet"
    content = bytearray(file.read_bytes())
    content[-60:-8] = bytes(52)
    file.write_bytes(content)

    with pytest.raises(LearningError, match=r"/rows/25.parquet cannot be read as Parquet"):
        HdfsParquet(Shelf(root), "/rows", COLUMNS)


def test_lists_of_other_lengths_in_another_file_are_refused(root: Path) -> None:
    table = pa.table({"a": [1.0], "many": pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float32())), "y": [1]})
    pq.write_table(table, root / "rows" / "40.parquet")
    data = HdfsParquet(Shelf(root), "/rows", COLUMNS)

    with pytest.raises(LearningError, match=r"of /rows/40.parquet has samples of the shape .* write lists of equal"):
        data.batch_of([0, 40])


def test_a_type_that_is_none_is_refused() -> None:
    with pytest.raises(LearningError, match="dtype is 'foo': give one of float32"):
        hdfs_parquet("/rows", ["a"], "y", dtype="foo")


def test_a_large_read_is_made_of_pieces(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.training_data.contents.PIECE_BYTES", 100)

    assert HdfsParquet(Shelf(root), "/rows", COLUMNS).batch_of([39, 0])[1].tolist() == [39, 0]


def test_a_row_group_that_does_not_fit_into_memory_is_not_called_broken(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 2147483648 failed")

    data = HdfsParquet(Shelf(root), "/rows", COLUMNS)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", refuse)

    with pytest.raises(MemoryError, match="malloc of size"):
        data.batch_of([0])
