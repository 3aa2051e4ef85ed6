"""Images as a data set: labels from sub-folders, tables and packs, the same pixels in all, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from jobs.images import labels, recordio
from jobs.images.decoding import decode, prepare
from jobs.images.preparation import Preparation
from jobs.training_data.files import Span
from jobs.training_data.images import HdfsImages, hdfs_images
from learning.errors import LearningError
from tests.worker.training_data.shelf import Shelf

HOW = Preparation((8, 8), 8)
SHOWN = {"cat/1.png": "cat", "cat/2.png": "cat", "dog/1.png": "dog"}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """/pictures with a sub-folder a label, and what Hadoop passes over."""
    chance = np.random.default_rng(3)
    for name in SHOWN:
        file = tmp_path / "pictures" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(file), chance.integers(256, size=(12, 10, 3), dtype=np.uint8))
    (tmp_path / "pictures" / "_SUCCESS").touch()
    return tmp_path / "pictures"


def pack(folder: Path, label: Callable[[str], float], with_lengths: bool, mark: bytes = b"") -> None:
    """All pictures as one pack in /packs, with their labels in the list."""
    target = folder.parent / "packs"
    target.mkdir()
    rec, idx, lst, lengths = b"", "", "", ""
    for key, name in enumerate(sorted(SHOWN)):
        content = (folder / name).read_bytes() + mark
        idx += f"{key}\t{len(rec)}\n"
        lst += f"{key}\t{label(SHOWN[name]):f}\t{name}\n"
        lengths += f"{key}\t{len(rec) + recordio.HEAD_BYTES}\t{len(content)}\n"
        rec += recordio.record(key, 0.0, content)
    for kind, content in (("rec", rec), ("idx", idx.encode()), ("lst", lst.encode()), ("len", lengths.encode())):
        if kind != "len" or with_lengths:
            (target / f"images-00000.{kind}").write_bytes(content)


def seen(folder: Path, name: str) -> np.ndarray:
    """What a network sees of a picture."""
    return prepare(decode((folder / name).read_bytes(), HOW.needed_side), HOW)


def images(root: Path, path: str = "/pictures", table: str | None = None, *, skip: bool = False) -> HdfsImages:
    return HdfsImages(Shelf(root), path, HOW, table, is_broken_skipped=skip)


def test_sub_folders_are_labels_in_the_order_of_their_names(pictures: Path, tmp_path: Path) -> None:
    data = images(tmp_path)

    x, y = data.batch_of([2, 0])

    assert len(data) == 3
    assert y.tolist() == [1, 0]
    assert np.array_equal(x, [seen(pictures, "dog/1.png"), seen(pictures, "cat/1.png")])


@pytest.mark.parametrize("with_lengths", [True, False], ids=["ours", "MXNet's"])
def test_packs_give_the_same_images_with_the_labels_of_their_list(
    pictures: Path, tmp_path: Path, with_lengths: bool
) -> None:
    pack(pictures, {"cat": 4.0, "dog": 7.0}.__getitem__, with_lengths)

    x, y = images(tmp_path, "/packs").batch_of([0, 1, 2])

    assert y.tolist() == [4, 4, 7]
    assert np.array_equal(x, images(tmp_path).batch_of([0, 1, 2])[0])


def test_an_image_that_mxnet_has_split_is_put_together(pictures: Path, tmp_path: Path) -> None:
    padding = (
        b"\0" * 64 + b"".join(bytes(shift) + recordio.MAGIC.to_bytes(4, "little") for shift in range(4)) + b"\0" * 64
    )
    pack(pictures, lambda _: 1.0, with_lengths=False, mark=padding)

    x, _ = images(tmp_path, "/packs").batch_of([0, 1, 2])

    assert np.array_equal(x, images(tmp_path).batch_of([0, 1, 2])[0])


@pytest.mark.parametrize("packed", [True, False], ids=["packs", "files"])
def test_a_table_gives_the_labels_of_files_and_of_packs(pictures: Path, tmp_path: Path, packed: bool) -> None:
    labels.write(tmp_path, SHOWN, ["dog", "cat"])
    pack(pictures, lambda _: -1.0, with_lengths=True)

    data = images(tmp_path, "/packs" if packed else "/pictures", str(tmp_path / labels.LABELS))

    assert data.batch_of([0, 1, 2])[1].tolist() == [1, 1, 0]


def test_places_are_those_of_the_block_in_which_an_image_begins(pictures: Path, tmp_path: Path) -> None:
    pack(pictures, lambda _: 1.0, with_lengths=True)
    third = int((tmp_path / "packs/images-00000.idx").read_text().split()[5])
    blocks = [Span(0, third, ("a", "b")), Span(third, 9999999, ("c",))]

    data = HdfsImages(Shelf(tmp_path, {"/packs/images-00000.rec": blocks}), "/packs", HOW, None)

    assert data.places_of(range(3)) == [("a", "b"), ("a", "b"), ("c",)]


def test_nobody_stops_when_places_are_not_known(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert images(tmp_path).places_of(range(3)) == [(), (), ()]
    assert "nodewise: where 3 of 3 files lie is not known: the NameNode does not answer" in capsys.readouterr().out


def test_other_images_or_labels_have_another_fingerprint(pictures: Path, tmp_path: Path) -> None:
    first, same = images(tmp_path).fingerprint, images(tmp_path).fingerprint
    (pictures / "cat" / "2.png").rename(pictures / "dog" / "2.png")

    assert first == same != images(tmp_path).fingerprint


def test_a_broken_image_is_named_or_skipped(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pictures / "cat" / "2.png").write_bytes((pictures / "cat" / "2.png").read_bytes()[:60])
    (pictures / "dog" / "0.png").touch()
    data = images(tmp_path)

    with pytest.raises(LearningError, match=r"^/pictures/cat/2\.png is broken \(.*\): take it out of the folder"):
        data.batch_of([1])
    with pytest.raises(LearningError, match=r"^/pictures/dog/0\.png is broken \(the file is empty\)"):
        data.batch_of([2])
    data = images(tmp_path, skip=True)
    assert data.batch_of([0, 1])[1].tolist() == [0, 1]
    assert len(data) == 2
    assert "nodewise: /pictures/cat/2.png is skipped" in capsys.readouterr().out


def empty_label(folder: Path) -> None:
    (folder / "horse").mkdir()


def no_images(folder: Path) -> None:
    for name in SHOWN:
        (folder / name).unlink()
    (folder / "cat").rmdir()
    (folder / "dog").rmdir()


def without_folder(folder: Path) -> None:
    (folder / "cat" / "1.png").rename(folder / "1.png")


def nothing(folder: Path) -> None:
    no_images(folder)
    (folder / "_SUCCESS").unlink()
    folder.rmdir()


WRONG: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (no_images, "/pictures holds no images: `nodewise images load` or `pack` puts some there"),
    "not there": (nothing, "/pictures is not in HDFS: check the path"),
    "a label without images": (empty_label, "/pictures/horse holds no images of its label: put some there, or remove"),
    "an image without label": (without_folder, "/pictures/1.png lies in no sub-folder, whose name would be its label"),
}


@pytest.mark.parametrize(("spoil", "said"), WRONG.values(), ids=WRONG)
def test_a_folder_that_cannot_be_used_is_refused_in_a_sentence(
    pictures: Path, tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(pictures)

    with pytest.raises(LearningError) as caught:
        images(tmp_path)
    assert str(caught.value).startswith(said)


TABLES = {
    "missing": ({**SHOWN, "cat/9.png": "cat"}, "/pictures has no image cat/9.png, although the labels name it"),
    "unnamed": ({"cat/1.png": "cat", "dog/1.png": "dog"}, "/pictures/cat/2.png has no label: add it to the labels"),
}


@pytest.mark.parametrize(("shown", "said"), TABLES.values(), ids=TABLES)
def test_a_table_that_does_not_fit_is_refused(pictures: Path, tmp_path: Path, shown: dict[str, str], said: str) -> None:
    labels.write(tmp_path, shown, ["cat", "dog"])

    with pytest.raises(LearningError) as caught:
        images(tmp_path, table=str(tmp_path / labels.LABELS))
    assert str(caught.value).startswith(said)


def test_a_pack_without_labels_or_without_its_list_is_refused(pictures: Path, tmp_path: Path) -> None:
    pack(pictures, lambda _: -1.0, with_lengths=True)

    with pytest.raises(LearningError, match=r"images-00000\.rec has no label for cat/1\.png: pack the images with"):
        images(tmp_path, "/packs")
    (tmp_path / "packs/images-00000.lst").unlink()
    with pytest.raises(LearningError, match=r"images-00000\.rec has no images-00000\.lst beside it: copy the pack"):
        images(tmp_path, "/packs")


def test_a_path_a_choice_and_a_cluster_that_cannot_be_used_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(LearningError, match="broken is 'ignore': give 'stop' or 'skip'"):
        hdfs_images("/pictures", broken="ignore")
    with pytest.raises(LearningError, match="pictures is not a path of HDFS: begin with hdfs:/// or /"):
        hdfs_images("pictures")
    with pytest.raises(LearningError, match=r"there is no HDFS to read from .*: let HADOOP_CONF_DIR name the folder"):
        hdfs_images("/pictures")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": "224"}, "size is '224'"),
        ({"resize": -3}, "resize -3"),
        ({"channels": "xyz"}, "channels are 'xyz': give one of RGB, BGR, grey"),
        ({"mean": [0.5], "std": [0.2]}, "give 3 of each for the channels RGB"),
        ({"std": [0.1, 0.0, 0.1]}, "with each std above 0"),
    ],
)
def test_a_preparation_that_cannot_be_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(LearningError, match=said):
        hdfs_images("/pictures", **more)


def test_images_that_are_prepared_otherwise_have_another_fingerprint(pictures: Path, tmp_path: Path) -> None:
    assert (
        images(tmp_path).fingerprint
        != HdfsImages(Shelf(tmp_path), "/pictures", Preparation((8, 8), 9), None).fingerprint
    )


class Narrow(Shelf):
    def read(self, path: str, offset: int, length: int | None) -> bytes:
        raise MemoryError


def test_images_that_do_not_fit_into_memory_are_not_called_unreadable(pictures: Path) -> None:
    data = HdfsImages(Narrow(pictures.parent), "/pictures", HOW, None)

    with pytest.raises(MemoryError, match=r"/pictures/cat/1.png needs more memory"):
        data.batch_of([0])
