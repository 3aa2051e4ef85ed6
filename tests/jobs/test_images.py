"""Images made from packaged photographs, and which files of a folder are images at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from jobs.errors import JobError
from jobs.images import labels
from jobs.images.datasets import load, make, photographs
from tests.ports import free_port


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made") / "new"
    assert make(directory, 44, seed=7, sources=photographs(folders=())) == 44
    return directory


@pytest.fixture
def dead_port() -> int:
    return free_port()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_packages_bring_colour_photographs_without_a_download() -> None:
    names = {path.stem for path in photographs(folders=())}
    assert names >= {"astronaut", "coffee", "rocket", "hubble_deep_field", "china", "flower"}
    for path in photographs(folders=()):
        with Image.open(path) as image:
            assert image.mode in {"RGB", "RGBA"}


def test_large_photographs_of_other_folders_are_used_too(tmp_path: Path) -> None:
    Image.new("RGB", (500, 375)).save(tmp_path / "large.jpg")
    Image.new("RGB", (499, 375)).save(tmp_path / "small.jpg")
    (tmp_path / "text.jpg").write_text("no image")
    found = photographs(folders=(tmp_path, tmp_path / "missing"))
    assert [path.name for path in found if path.parent == tmp_path] == ["large.jpg"]


def test_pictures_have_the_usual_shape_and_size(made: Path) -> None:
    paths = list(made.glob("*.jpg"))
    assert len(paths) == 44
    for path in paths:
        with Image.open(path) as image:
            image.load()
            assert (image.format, image.size, image.mode) == ("JPEG", (500, 375), "RGB")
        assert 55_000 < path.stat().st_size <= 112_000


def test_every_photograph_is_used_and_named(made: Path) -> None:
    names = {path.stem.rpartition("_")[0] for path in made.glob("*.jpg")}
    assert names == {path.stem for path in photographs(folders=())}
    assert len(set(contents(made).values())) == 44 + 2


def test_every_picture_is_labelled_with_what_its_photograph_shows(made: Path) -> None:
    classes = (made / labels.CLASSES).read_text().splitlines()
    table = labels.read(made / labels.LABELS)

    assert len(classes) == 10
    assert classes[:2] == ["astronaut", "chelsea"]
    assert table.keys() == {path.name for path in made.glob("*.jpg")}
    assert all(classes[label.number] == label.name for label in table.values())
    assert {(file.rpartition("_")[0], label.name) for file, label in table.items()} == {
        (path.stem, "motorcycle" if path.stem.startswith("motorcycle_") else path.stem)
        for path in photographs(folders=())
    }


def test_labels_are_no_pictures_to_load(made: Path, tmp_path: Path, dead_port: int) -> None:
    for name in (labels.LABELS, labels.CLASSES):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    with pytest.raises(JobError, match="holds no files"):
        load(tmp_path, "/data", f"http://127.0.0.1:{dead_port}", "me")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / labels.LABELS).write_text("one of the user's own")
    with pytest.raises(JobError, match="HDFS does not answer"):
        load(tmp_path, "/data", f"http://127.0.0.1:{dead_port}", "me")


def test_the_same_seed_makes_the_same_files_and_another_seed_others(made: Path, tmp_path: Path) -> None:
    sources = photographs(folders=())
    make(tmp_path / "same", 44, seed=7, sources=sources)
    make(tmp_path / "other", 4, seed=8, sources=sources)
    assert contents(tmp_path / "same") == contents(made)
    same = contents(tmp_path / "other").items() & contents(made).items()
    assert {name for name, _ in same} == {labels.CLASSES}


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    make(tmp_path, 3, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("count", [0, -4])
def test_a_count_below_one_is_refused(count: int, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=f"cannot make {count} images: ask for 1 or more"):
        make(tmp_path / "new", count)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_holds_something_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(JobError, match="not an empty folder"):
        make(tmp_path, 3)
    with pytest.raises(JobError, match="not an empty folder"):
        make(tmp_path / "mine.txt", 3)
    assert contents(tmp_path) == {"mine.txt": b"keep"}


def test_a_place_that_cannot_be_written_is_one_sentence() -> None:
    with pytest.raises(JobError, match="cannot make images in /proc/pictures"):
        make(Path("/proc/pictures"), 1)


def test_no_photographs_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="no photographs"):
        make(tmp_path / "new", 1, sources=[])


def test_loading_an_empty_folder_is_refused(tmp_path: Path, dead_port: int) -> None:
    (tmp_path / "inner").mkdir()
    with pytest.raises(JobError, match="holds no files"):
        load(tmp_path, "/data", f"http://127.0.0.1:{dead_port}", "me")
    with pytest.raises(JobError, match="is not a folder"):
        load(tmp_path / "missing", "/data", f"http://127.0.0.1:{dead_port}", "me")


@pytest.mark.parametrize(
    "target", ["data/images", "", "hdfs://name:8020", "/data/../etc", "s3://data/images", "file:///data"]
)
def test_a_target_that_is_no_absolute_path_is_refused(target: str, made: Path, dead_port: int) -> None:
    with pytest.raises(JobError, match="not an absolute HDFS path"):
        load(made, target, f"http://127.0.0.1:{dead_port}", "me")


@pytest.mark.parametrize("target", ["hdfs://data/images", "hdfs://other:8020/images", "//data/images"])
def test_a_target_in_another_hdfs_is_refused(target: str, made: Path, dead_port: int) -> None:
    with pytest.raises(
        JobError, match=r"names the HDFS at (data|other), and .* at 127\.0\.0\.1 only: begin with hdfs:/"
    ):
        load(made, target, f"http://127.0.0.1:{dead_port}", "me")


@pytest.mark.parametrize("target", ["/data", "hdfs:///data", "hdfs:/data", "hdfs://127.0.0.1:8020/data"])
def test_every_way_to_write_a_folder_of_this_hdfs_is_understood(target: str, made: Path, dead_port: int) -> None:
    with pytest.raises(JobError, match="HDFS does not answer at"):
        load(made, target, f"http://127.0.0.1:{dead_port}", "me")


def test_an_hdfs_that_does_not_answer_is_one_sentence(made: Path, dead_port: int) -> None:
    with pytest.raises(JobError, match=f"HDFS does not answer at http://127.0.0.1:{dead_port}"):
        load(made, "/data", f"http://127.0.0.1:{dead_port}", "me")
