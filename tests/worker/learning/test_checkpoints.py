"""Checkpoints: whole or not at all, never the one removed that a run may go on from, and carried to HDFS and back."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from jobs.kinds.train import carried
from jobs.kinds.train.carried import Carried
from learning.errors import LearningError
from learning.state import checkpoints
from learning.state.checkpoints import WANTED, Checkpoints, Interrupted, lay, steps_of
from learning.state.storing import Storing

NEVER = 1e9
REMEDY = "make room on its disk, and let the program write there"


def state(steps: int) -> bytes:
    """A state that only this step has."""
    return f"after {steps} steps".encode() * 100


def name(steps: int) -> str:
    """Of its checkpoint."""
    return f"{steps}-{hashlib.sha256(state(steps)).hexdigest()}.state"


def put(folder: Path, *steps: int) -> None:
    """Checkpoints."""
    for one in steps:
        lay(folder, name(one), state(one))


def damage(folder: Path, steps: int) -> Path:
    """As a disk does it."""
    file = folder / name(steps)
    file.write_bytes(file.read_bytes()[:-1])
    return file


def kept(folder: Path) -> list[int]:
    """The steps of all."""
    return sorted(steps for file in folder.iterdir() if (steps := steps_of(file.name)) is not None)


def store(storing: Storing, steps: int, confirmed: int = 0) -> None:
    """Without anything that still runs afterwards."""
    storing.store(steps, lambda: state(steps), confirmed=confirmed)
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join()


def until(holds: Callable[[], Any]) -> Any:
    """What is true of it once it is."""
    deadline = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.01)
    return found


def no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_is_confirmed_and_what_is_newer_stays_and_two_at_least(tmp_path: Path) -> None:
    storing = Storing(Checkpoints(tmp_path), 0.0)
    held = []
    for steps, confirmed in [(1, 0), (2, 0), (3, 0), (4, 2), (5, 2), (6, 6), (7, 7)]:
        store(storing, steps, confirmed)
        held.append(kept(tmp_path))

    assert held == [[1], [1, 2], [1, 2, 3], [2, 3, 4], [2, 3, 4, 5], [5, 6], [6, 7]]
    assert storing.last == 7


def test_a_run_that_went_back_keeps_what_it_stores(tmp_path: Path) -> None:
    put(tmp_path, 10, 40, 50)
    storing = Storing(Checkpoints(tmp_path), 0.0)

    store(storing, 20, confirmed=10)
    store(storing, 30, confirmed=20)

    assert kept(tmp_path) == [20, 30, 40, 50]


def test_two_states_after_the_same_steps_count_as_one(tmp_path: Path) -> None:
    other = f"-{hashlib.sha256(b'other').hexdigest()}.state"
    put(tmp_path, 1, 2, 3)
    for steps in (1, 4):
        lay(tmp_path, f"{steps}{other}", b"other")

    store(Storing(Checkpoints(tmp_path), 0.0), 4, confirmed=4)

    assert kept(tmp_path) == [3, 4, 4]


def test_a_new_process_reports_what_is_on_the_disk_before_it_stores(tmp_path: Path) -> None:
    put(tmp_path, 3, 20)

    assert Storing(Checkpoints(tmp_path), 60.0).last == 20
    assert Storing(None, 60.0).last == 0


def test_what_is_damaged_does_not_count_and_is_put_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, 1, 2, 3)
    torn = [damage(tmp_path, 2), damage(tmp_path, 3)]

    found = Checkpoints(tmp_path)

    assert found.last == 1
    assert kept(tmp_path) == [1]
    assert all(Path(f"{file}.damaged").exists() for file in torn)
    assert (
        f"nodewise: the checkpoint {torn[1]} is damaged, and is now {torn[1].name}.damaged\n" in capsys.readouterr().out
    )


def test_drafts_of_killed_writers_are_removed_and_those_that_are_written_stay(tmp_path: Path) -> None:
    old = [tmp_path / f".{name(1)}", tmp_path / f".{name(2)}.0a1b2c3d", tmp_path / ".profile"]
    live = tmp_path / f".{name(3)}.0a1b2c3d"
    for file in (*old, live):
        file.write_bytes(b"torn")
    for file in old:
        os.utime(file, (time.time() - 3600,) * 2)

    assert Checkpoints(tmp_path).last == 0
    assert {file.name for file in tmp_path.iterdir()} == {live.name, ".profile"}


def test_two_who_write_the_same_state_do_not_tear_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins amid the work of the first."""
    real = os.fsync
    drafts: list[str] = []

    def fsync(number: int) -> None:
        if not drafts:
            drafts.extend(file.name for file in tmp_path.iterdir())
            lay(tmp_path, name(1), state(1))
            assert (tmp_path / drafts[0]).exists()
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    lay(tmp_path, name(1), state(1))

    assert [file.name for file in tmp_path.iterdir()] == [name(1)]
    assert Checkpoints(tmp_path).last == 1


def test_the_folder_is_on_the_disk_too_before_a_state_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = os.fsync, []
    found = Checkpoints(tmp_path)

    def fsync(number: int) -> None:
        seen.append((stat.S_ISDIR(os.fstat(number).st_mode), kept(tmp_path), found.last))
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    found.write(1, state(1), 0)
    found.wait()

    assert seen == [(False, [], 0), (True, [1], 0)]
    assert found.last == 1


def test_the_last_state_is_stored_even_if_it_is_not_due(tmp_path: Path) -> None:
    storing = Storing(Checkpoints(tmp_path), NEVER)

    store(storing, 1)
    storing.ensure(2, lambda: state(2), confirmed=0)

    assert kept(tmp_path) == [2]


def test_ensure_waits_for_what_is_being_written_and_stores_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, packed = threading.Event(), []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (go_on.wait(60), real(number)))
    storing = Storing(Checkpoints(tmp_path), 0.0)

    def pack() -> bytes:
        packed.append(1)
        return state(1)

    storing.store(1, pack, confirmed=0)
    storing.store(1, pack, confirmed=0)
    assert packed == [1], "a state is packed while another is written"
    threading.Timer(0.1, go_on.set).start()
    storing.ensure(1, pack, confirmed=0)

    assert (packed, storing.last, kept(tmp_path)) == ([1], 1, [1])
    storing.ensure(2, lambda: state(2), confirmed=0)
    assert (storing.last, kept(tmp_path)) == (2, [1, 2])


def test_no_state_is_stored_while_many_are_not_confirmed(tmp_path: Path) -> None:
    storing = Storing(Checkpoints(tmp_path), 0.0)
    for steps in range(1, 15):
        storing.store(steps, lambda: b"state", confirmed=0)
        storing.ensure(1, lambda: b"", confirmed=0)
    assert storing.last == 10

    storing.store(20, lambda: b"state", confirmed=10)
    storing.ensure(20, lambda: b"state", confirmed=10)

    assert storing.last == 20


def test_a_last_state_that_cannot_be_stored_ends_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    storing = Storing(Checkpoints(folder), NEVER)
    shutil.rmtree(folder)

    with pytest.raises(LearningError, match=rf"cannot be kept in {folder} \(No such file or directory\): {REMEDY}"):
        storing.ensure(9, lambda: state(9), confirmed=0)
    folder.mkdir()
    storing.ensure(9, lambda: state(9), confirmed=0)

    assert kept(folder) == [9]


def test_a_failure_amid_the_run_is_said_once_until_it_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    storing = Storing(Checkpoints(tmp_path), 0.0)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_room)
        for steps in (1, 2, 3):
            store(storing, steps)
    assert list(tmp_path.iterdir()) == [], "a draft takes room on a disk that is full"
    store(storing, 4)
    store(storing, 5)
    monkeypatch.setattr(os, "fsync", no_room)
    store(storing, 6)
    store(storing, 7)

    assert kept(tmp_path) == [4, 5]
    said = f"nodewise: checkpoints cannot be kept in {tmp_path} (No space left on device): {REMEDY}\n"
    assert capsys.readouterr() == (said * 2, "")


def test_errors_of_the_writer_are_those_of_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Checkpoints(tmp_path)
    monkeypatch.setattr(checkpoints, "lay", lambda *_: [][1])
    found.write(1, state(1), 0)

    with pytest.raises(LearningError, match=r"IndexError\('list index out of range'\)"):
        found.wait()


def test_a_state_is_stored_even_if_older_ones_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, 1, 2)
    storing = Storing(Checkpoints(tmp_path), NEVER)
    monkeypatch.setattr(Path, "unlink", no_room)

    storing.ensure(3, lambda: state(3), confirmed=3)
    store(storing, 3)

    assert kept(tmp_path) == [1, 2, 3]
    assert "cannot be kept" in capsys.readouterr().out


def test_a_checkpoint_is_read(tmp_path: Path) -> None:
    put(tmp_path, 1, 2)

    assert Storing(Checkpoints(tmp_path), 60.0).read(1, lambda: True) == state(1)


def test_without_a_folder_nobody_has_a_state() -> None:
    with pytest.raises(LearningError, match="there is no folder of checkpoints: start the run again"):
        Storing(None, 60.0).read(3, lambda: False)


def test_a_member_that_lacks_a_checkpoint_waits_for_it(tmp_path: Path) -> None:
    def bring() -> None:
        if until((tmp_path / WANTED).exists):
            put(tmp_path, 4)

    thread = threading.Thread(target=bring)
    thread.start()
    content = Checkpoints(tmp_path).read(4, lambda: False)
    thread.join()

    assert content == state(4)
    assert not (tmp_path / WANTED).exists()


def test_a_damaged_checkpoint_is_asked_for_again(tmp_path: Path) -> None:
    put(tmp_path, 4, 5)
    found = Checkpoints(tmp_path)
    damage(tmp_path, 4)

    def is_over() -> bool:
        assert kept(tmp_path) == [5] and (tmp_path / WANTED).read_text() == "4"
        put(tmp_path, 4)
        return False

    assert found.read(4, is_over) == state(4)


def test_nobody_waits_for_a_checkpoint_of_a_generation_that_is_over(tmp_path: Path) -> None:
    began = time.monotonic()
    over = iter([False, False, True])

    with pytest.raises(Interrupted):
        Checkpoints(tmp_path).read(4, lambda: next(over))

    assert time.monotonic() - began < checkpoints.FETCH_SECONDS / 5
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_nobody_brings_is_an_error_whose_remedy_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "FETCH_SECONDS", 0.3)
    put(tmp_path, 3, 4)
    found = Checkpoints(tmp_path)
    damage(tmp_path, 4)

    with pytest.raises(LearningError, match=r"no whole checkpoint after 4 steps .*newest one that is whole"):
        found.read(4, lambda: False)

    assert not (tmp_path / WANTED).exists()
    assert Checkpoints(tmp_path).last == 3


def test_a_checkpoint_that_is_pruned_while_it_is_read_is_no_other_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "FETCH_SECONDS", 0.3)
    put(tmp_path, 4)
    found = Checkpoints(tmp_path)
    real = Path.read_bytes

    def read_bytes(self: Path) -> bytes:
        self.unlink()
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)

    with pytest.raises(LearningError, match="no whole checkpoint after 4 steps"):
        found.read(4, lambda: False)


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    found = Checkpoints(folder)
    shutil.rmtree(folder)

    with pytest.raises(LearningError, match=r"after 4 steps cannot be read in .* \(No such file or directory\): let"):
        found.read(4, lambda: False)


class Folders:
    """HDFS in a folder, so that a test can damage what lies there; what is `failing` is away."""

    failing = False

    def _file(self, path: str) -> Path:
        if self.failing:
            raise RuntimeError("HDFS is away")
        return Path(path)

    def mkdirs(self, path: str, create_parent: bool) -> None:
        self._file(path).mkdir(parents=create_parent, exist_ok=True)

    def create(self, path: str, _: Any) -> IO[bytes]:
        return self._file(path).open("wb")

    def read(self, path: str) -> IO[bytes]:
        return self._file(path).open("rb")

    def rename(self, path: str, to: str, overwrite: bool) -> None:
        assert overwrite
        self._file(path).replace(to)

    def delete(self, path: str) -> None:
        self._file(path).unlink()

    def list_status(self, path: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(path=str(file)) for file in self._file(path).iterdir()]


@pytest.fixture
def member(tmp_path: Path) -> Path:
    """The folder of a member."""
    (tmp_path / "member").mkdir()
    return tmp_path / "member"


@pytest.fixture
def hdfs(tmp_path: Path) -> Path:
    """The folder in HDFS, which is made with the first checkpoint."""
    return tmp_path / "out" / "checkpoints"


@pytest.fixture
def carrying(member: Path, hdfs: Path, monkeypatch: pytest.MonkeyPatch) -> Carried:
    """Between both."""
    monkeypatch.setattr(carried, "Client", Folders)
    monkeypatch.setattr(carried, "ASK_SECONDS", 0.0)
    return Carried(member, str(hdfs))


def test_hdfs_keeps_what_the_member_keeps_and_the_newest_two(carrying: Carried, member: Path, hdfs: Path) -> None:
    put(member, 1, 2, 3)
    assert carrying.carry()
    assert kept(hdfs) == [1, 2, 3], "the run may go on from each of them"
    (hdfs / f".{name(1)}").write_bytes(b"torn")
    (hdfs / f".{name(9)}").write_bytes(b"is being written")
    put(member, 4)
    for steps in (1, 2, 3):
        (member / name(steps)).unlink()
    assert carrying.carry()

    assert {file.name for file in hdfs.iterdir()} == {name(3), name(4), f".{name(9)}"}


def test_what_hdfs_does_not_take_is_tried_again(
    carrying: Carried, member: Path, hdfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(member, 1)
    with monkeypatch.context() as away:
        away.setattr(Folders, "failing", True)
        assert not carrying.carry()

    assert carrying.carry()
    assert (hdfs / name(1)).read_bytes() == state(1)


def test_a_damaged_checkpoint_is_not_carried(carrying: Carried, member: Path, hdfs: Path) -> None:
    put(member, 1, 2)
    damage(member, 2)

    assert carrying.carry()
    assert kept(hdfs) == kept(member) == [1]


def test_the_newest_whole_one_is_fetched_and_a_damaged_one_put_aside(
    carrying: Carried, member: Path, hdfs: Path
) -> None:
    carrying.fetch_newest()
    assert kept(member) == []
    hdfs.mkdir(parents=True)
    put(hdfs, 1, 2, 3)
    torn = damage(hdfs, 3)

    carrying.fetch_newest()

    assert (kept(member), kept(hdfs)) == ([2], [1, 2])
    assert Path(f"{torn}.damaged").exists()
    assert Checkpoints(member).last == 2


def test_one_that_is_dropped_while_it_is_fetched_is_not_the_end(
    carrying: Carried, member: Path, hdfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hdfs.mkdir(parents=True)
    put(hdfs, 1, 2)
    real = Folders.list_status

    def list_status(self: Folders, path: str) -> list[SimpleNamespace]:
        found = real(self, path)
        (hdfs / name(2)).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Folders, "list_status", list_status)
    carrying.fetch_newest()

    assert kept(member) == [1]


def test_a_member_gets_what_it_asks_for_once_hdfs_has_it(
    carrying: Carried, member: Path, hdfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(Checkpoints(member).read(2, lambda: False)))
    reader.start()
    until(lambda: (member / WANTED).exists() and (member / WANTED).read_text() == "2")
    carrying.serve()
    with monkeypatch.context() as away:
        away.setattr(Folders, "failing", True)
        carrying.serve()
    hdfs.mkdir(parents=True)
    put(hdfs, 1, 2, 3)
    carrying.serve()
    reader.join()
    carrying.serve()

    assert found == [state(2)]
    assert [file.name for file in member.iterdir()] == [name(2)]
    (hdfs / name(2)).unlink()
    assert carrying.carry()
    assert kept(hdfs) == [1, 3], "what came from HDFS is not carried back"
