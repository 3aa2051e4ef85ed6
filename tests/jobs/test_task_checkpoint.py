"""Checkpoints of tasks in a folder of this machine in the place of HDFS: when they are kept, and which one counts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hadoop.client.filesystem import Entry
from hadoop.errors import HadoopError
from jobs.kinds.task import checkpoint
from jobs.kinds.task.checkpoint import Checkpoint


class Folder:
    """A folder with the methods of a FileSystem; it may be away."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.is_away = False

    def path(self, name: str) -> Path:
        if self.is_away:
            raise HadoopError("HDFS is away")
        return self._root / name.lstrip("/")

    def entries(self, folder: str) -> list[Entry]:
        place = self.path(folder)
        return [Entry(one.name, 0, 0.0) for one in sorted(place.iterdir())] if place.exists() else []

    def make_folder(self, name: str) -> None:
        self.path(name).mkdir(parents=True, exist_ok=True)

    def upload(self, local: Path, name: str) -> None:
        shutil.copyfile(local, self.path(name))

    def download(self, name: str, local: Path) -> None:
        shutil.copytree(self.path(name), local)

    def rename(self, source: str, target: str) -> None:
        if self.path(target).exists():
            raise HadoopError(f"{target} exists")
        self.path(source).rename(self.path(target))

    def delete(self, name: str) -> None:
        shutil.rmtree(self.path(name), ignore_errors=True)


@pytest.fixture
def hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr(checkpoint, "LOOK_SECONDS", 0.05)
    return Folder(tmp_path / "hdfs")


@pytest.fixture
def start(hdfs: Folder, tmp_path: Path) -> Iterator[Callable[[str], tuple[Checkpoint, Path, bool]]]:
    """Begin a start in a folder of its own: whether it found a checkpoint."""
    begun: list[Checkpoint] = []

    def begin(name: str) -> tuple[Checkpoint, Path, bool]:
        place: Any = hdfs
        made = Checkpoint(place, "/ckpt/", tmp_path / name)
        found = made.begin()
        begun.append(made)
        return made, tmp_path / name, found

    yield begin
    for made in begun:
        made.close()


Start = Callable[[str], tuple[Checkpoint, Path, bool]]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def put(folder: Path, name: str, content: bytes) -> None:
    """Write a file that is never seen half written: that would be one more checkpoint."""
    written = folder.parent / "written"
    written.write_bytes(content)
    written.replace(folder / name)


def test_what_is_quiet_is_kept_and_the_next_start_finds_the_last_of_it(start: Start, hdfs: Folder) -> None:
    first, folder, found = start("one")
    assert not found and list(folder.iterdir()) == []
    for step in ("1", "2", "3"):
        put(folder, "step", step.encode())
        until(lambda number=step: (hdfs.path(f"/ckpt/start-1/{number}/step")).exists())  # type: ignore[misc]
    (folder / "deep").mkdir()
    put(folder, "deep/weights", b"\0\xff")
    first.close()

    assert sorted(one.name for one in hdfs.entries("/ckpt/start-1")) == ["3", "4"], "older ones go"
    _, again, found = start("two")
    assert found
    assert ((again / "step").read_text(), (again / "deep" / "weights").read_bytes()) == ("3", b"\0\xff")


def test_a_start_that_left_nothing_hides_nothing(start: Start) -> None:
    first, folder, _ = start("one")
    (folder / "step").write_text("1")
    first.close()
    second, _, _ = start("two")
    second.close()

    _, third, found = start("three")

    assert found and (third / "step").read_text() == "1"


def test_what_a_start_keeps_that_wakes_up_late_does_not_count(start: Start) -> None:
    old, olds, _ = start("old")
    (olds / "step").write_text("1")
    until(lambda: old._kept)
    new, news, _ = start("new")
    (news / "step").write_text("2")
    new.close()
    (olds / "step").write_text("late")
    old.close()

    assert (start("next")[1] / "step").read_text() == "2"


def test_what_changes_all_the_time_is_kept_all_the_same(
    start: Start, hdfs: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LONGEST_SECONDS", 0.3)
    made, folder, _ = start("one")
    deadline, number = time.monotonic() + 60, 0
    while not hdfs.entries("/ckpt/start-1"):
        (folder / "step").write_text(str(number := number + 1))
        assert time.monotonic() < deadline
        time.sleep(0.01)
    made.close()


def test_while_hdfs_is_away_nothing_breaks_and_the_last_is_kept_afterwards(
    start: Start, hdfs: Folder, capfd: pytest.CaptureFixture[str]
) -> None:
    made, folder, _ = start("one")
    hdfs.is_away = True
    (folder / "step").write_text("1")
    until(lambda: "the checkpoint is not kept: HDFS is away" in capfd.readouterr().out)
    hdfs.is_away = False

    until(lambda: hdfs.path("/ckpt/start-1/1/step").exists())
    made.close()


def test_the_last_is_kept_if_hdfs_comes_back_soon(start: Start, hdfs: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    made, folder, _ = start("one")
    put(folder, "step", b"1")
    hdfs.is_away = True

    def wait(_: float) -> None:
        hdfs.is_away = False

    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(sleep=wait, monotonic=time.monotonic))
    made.close()

    assert hdfs.path("/ckpt/start-1/1/step").read_text() == "1"


def test_nothing_of_a_users_own_is_deleted(start: Start, hdfs: Folder) -> None:
    hdfs.make_folder("/ckpt/1")
    hdfs.make_folder("/ckpt/start-up")
    for name in ("a", "b", "c", "d"):
        made, folder, _ = start(name)
        for step in range(3):
            (folder / "step").write_text(f"{name}{step}")
            until(lambda made=made, step=step: made._number > step)  # type: ignore[misc]
        made.close()

    assert {"1", "start-up"} <= {one.name for one in hdfs.entries("/ckpt")}
    assert [one.name for one in hdfs.entries("/ckpt") if one.name[-1].isdigit()] == ["1", "start-3", "start-4"]
