"""Reading ahead: neighbours together, and again what could not be read."""

from __future__ import annotations

import threading
import time

import pytest

from jobs.itemwork.messages import Item
from jobs.worker import reading
from jobs.worker.reading import GAP_BYTES, LEAST_TRIES, MOST_BYTES, REQUEST_BYTES, Reader, Stalled, Unreadable


class Shelf:
    """Files in memory, and what is asked of them; `fails` are raised first."""

    def __init__(self, files: dict[str, bytes], fails: list[Exception] | None = None) -> None:
        self._files = files
        self._fails = fails or []
        self.asked: list[tuple[str, int, int | None]] = []
        self.open = threading.Event()
        self.open.set()

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        self.open.wait(60)
        self.asked.append((path, offset, length))
        if self._fails:
            raise self._fails.pop(0)
        if path not in self._files:
            raise FileNotFoundError(path)
        content = self._files[path]
        return content if length is None else content[offset : offset + length]

    def exists(self, path: str) -> bool:
        return path in self._files


class Clock:
    """Moves only while somebody sleeps, and not while a busy machine does something else."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.now += seconds


def read(shelf: Shelf, *pictures: Item) -> dict[str, bytes | Unreadable]:
    return {one[0].name: one[1] for one in Reader(shelf).fetch(pictures).items(10) if one}


def test_what_comes_with_its_bytes_is_not_read() -> None:
    shelf = Shelf({"/a": b"abc"})

    found = read(shelf, Item("sent", "", None, 2, b"xy"), Item("/a", "/a", None, 3), Item("empty", "", None, 0, b""))

    assert found == {"sent": b"xy", "/a": b"abc", "empty": b""}
    assert shelf.asked == [("/a", 0, None)]


def test_neighbours_in_a_file_are_read_together_and_cut_apart() -> None:
    content = bytes(range(200)) * 1000
    shelf = Shelf({"/a.rec": content})
    far = 100 + GAP_BYTES + 1
    places = {"b": (50, 50), "a": (10, 20), "c": (far, 30)}

    found = read(shelf, *[Item(name, "/a.rec", first, length) for name, (first, length) in places.items()])

    assert found == {name: content[first : first + length] for name, (first, length) in places.items()}
    assert sorted(shelf.asked) == [("/a.rec", 10, 90), ("/a.rec", far, 30)]


def test_one_request_does_not_grow_without_end() -> None:
    half = REQUEST_BYTES // 2 + 1
    shelf = Shelf({"/a.rec": b"x" * 2 * half})

    read(shelf, Item("a", "/a.rec", 0, half), Item("b", "/a.rec", half, half))

    assert sorted(shelf.asked) == [("/a.rec", 0, half), ("/a.rec", half, half)]


def test_neighbours_of_different_files_are_not_mixed() -> None:
    shelf = Shelf({"/a": b"abc", "/b": b"abc"})

    assert read(shelf, Item("a", "/a", 0, 2), Item("b", "/b", 2, 1)) == {"a": b"ab", "b": b"c"}


def test_what_cannot_be_read_for_a_moment_is_read_again() -> None:
    shelf = Shelf({"/a": b"abc"}, fails=[RuntimeError("All DataNodes failed"), OSError("reset")])

    assert read(shelf, Item("/a", "/a", None, 3)) == {"/a": b"abc"}
    assert len(shelf.asked) == 3


def test_what_cannot_be_read_at_all_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "GIVE_UP_SECONDS", 0.5)
    shelf = Shelf({"/a": b"abc"}, fails=[RuntimeError("All DataNodes failed\nat java")] * 9)

    said = str(read(shelf, Item("/a", "/a", None, 3))["/a"])

    assert said == "cannot be read from HDFS: RuntimeError: All DataNodes failed"
    assert 1 < len(shelf.asked) < 9


def test_what_does_not_fit_into_memory_is_not_asked_for_again() -> None:
    shelf = Shelf({"/a": b"abc"}, fails=[MemoryError()])

    assert str(read(shelf, Item("/a", "/a", None, 3))["/a"]) == "needs more memory than the container has"
    assert len(shelf.asked) == 1


def test_one_try_that_takes_all_the_time_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "GIVE_UP_SECONDS", 0.0)
    fails: list[Exception] = [RuntimeError("All DataNodes failed")] * (LEAST_TRIES - 1)

    assert read(Shelf({"/a": b"abc"}, fails), Item("/a", "/a", None, 3)) == {"/a": b"abc"}


@pytest.mark.parametrize("offset", [None, 0])
def test_a_picture_that_is_too_long_is_not_read(offset: int | None) -> None:
    shelf = Shelf({"/a": b"abc"})
    long, fine = Item("long", "/a", offset, MOST_BYTES + 1), Item("fine", "/a", 1, 2)

    found = read(shelf, long, fine)

    assert str(found["long"]) == "has 256,000,001 bytes, at most 256,000,000 are read"
    assert found["fine"] == b"bc"
    assert shelf.asked == [("/a", 1, 2)]


def test_no_bytes_are_not_asked_for() -> None:
    shelf = Shelf({"/a.rec": b"abc"})

    assert read(shelf, Item("a", "/a.rec", 3, 0)) == {"a": b""}
    assert not shelf.asked


def test_a_read_that_never_returns_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "STALLED_SECONDS", 0.1)
    shelf = Shelf({"/a": b"abc"})
    shelf.open.clear()
    pictures = Reader(shelf).fetch([Item("/a", "/a", None, 3)]).items(0.01)

    with pytest.raises(Stalled, match="no read of HDFS has returned"):
        list(pictures)
    shelf.open.set()


def test_a_read_that_is_refused_again_and_again_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("STALLED_SECONDS", 0.5), ("FIRST_PAUSE", 0.05), ("LONGEST_PAUSE", 0.05)):
        monkeypatch.setattr(reading, name, seconds)
    monkeypatch.setattr(reading, "time", Clock())
    shelf = Shelf({"/a": b"abc"}, fails=[OSError("refused")] * 20)

    pictures = Reader(shelf).fetch([Item("/a", "/a", None, 3)]).items(0.01)

    assert [one[1] for one in pictures if one] == [b"abc"]


def test_a_file_that_is_gone_is_not_asked_for_again() -> None:
    shelf = Shelf({})

    assert "not there any more" in str(read(shelf, Item("/a", "/a", None, 3))["/a"])
    assert len(shelf.asked) == 1


def test_waiting_for_bytes_is_no_hanging() -> None:
    shelf = Shelf({"/a": b"abc"})
    shelf.open.clear()
    pictures = Reader(shelf).fetch([Item("/a", "/a", None, 3)]).items(0.01)

    assert next(pictures) is None
    assert next(pictures) is None
    shelf.open.set()
    assert [one[1] for one in pictures if one] == [b"abc"]
