"""Rows of a job held against the truth, and the table that tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import JobError
from jobs.images import labels
from jobs.images.accuracy import Accuracy, accuracy
from jobs.images.labels import Label


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    labels.write(tmp_path, {"cat_1.jpg": "cat", "cat_2.jpg": "cat", "a/dog_1.jpg": "dog"}, ["cat", "dog"])
    return tmp_path / labels.LABELS


def row(path: str, class_name: str | None, class_id: int | None = None, error: str | None = None) -> dict[str, Any]:
    return {"path": path, "class_name": class_name, "class_id": class_id, "error": error}


def test_right_wrong_and_unknown_are_counted_by_class(truth: Path) -> None:
    rows = [
        row("/data/cat_1.jpg", "cat", 0),
        row("/data/cat_2.jpg", "dog", 1),
        row("/data/a/dog_1.jpg", "dog", 1),
        row("/data/stranger.jpg", "dog", 1),
    ]

    found = accuracy(rows, truth)

    assert found == Accuracy(right=2, wrong=1, unknown=1, by_class={"cat": (1, 2), "dog": (1, 1)})
    assert found.ratio == pytest.approx(2 / 3)


def test_a_picture_that_could_not_be_classified_is_wrong(truth: Path) -> None:
    assert accuracy([row("/d/cat_1.jpg", None, None, "the file is empty")], truth).wrong == 1


def test_packed_pictures_are_known_by_the_names_they_had(truth: Path) -> None:
    found = accuracy([row("/data/p/images-00000.rec#a/dog_1.jpg", "dog", 1)], truth)

    assert (found.right, found.unknown) == (1, 0)


def test_the_name_of_another_folder_s_picture_is_not_taken_for_its_own(truth: Path) -> None:
    assert accuracy([row("/data/b/dog_1.jpg", "dog", 1)], truth).unknown == 1


@pytest.mark.parametrize(("class_id", "right"), [(0, 1), (1, 0)])
def test_without_names_numbers_are_compared(truth: Path, class_id: int, right: int) -> None:
    assert accuracy([row("/data/cat_1.jpg", f"class {class_id}", class_id)], truth).right == right


def test_names_count_more_than_numbers(truth: Path) -> None:
    assert accuracy([row("/data/cat_1.jpg", "cat", 281)], truth).right == 1


def test_nothing_known_has_no_ratio(truth: Path) -> None:
    assert accuracy([], truth).ratio is None


def test_the_table_comes_back_as_it_was_written(truth: Path) -> None:
    assert labels.read(truth) == {
        "cat_1.jpg": Label(0, "cat"),
        "cat_2.jpg": Label(0, "cat"),
        "a/dog_1.jpg": Label(1, "dog"),
    }
    assert (truth.parent / labels.CLASSES).read_text() == "cat\ndog\n"


@pytest.mark.parametrize("line", ["cat_1.jpg", "cat_1.jpg\tcat\t0", "cat_1.jpg\t0", "\t0\tcat", "a\t-1\tcat"])
def test_a_line_that_is_none_is_refused_by_its_number(line: str, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text(f"fine.jpg\t0\tcat\n{line}\n")

    with pytest.raises(JobError, match=r"t\.tsv line 2 is .*: write file name, class number and class name"):
        labels.read(tmp_path / "t.tsv")


def test_no_table_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"cannot be read \(No such file or directory\): name the labels\.tsv"):
        labels.read(tmp_path / "t.tsv")
    (tmp_path / "b.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobError, match="it is not text"):
        labels.read(tmp_path / "b.tsv")
