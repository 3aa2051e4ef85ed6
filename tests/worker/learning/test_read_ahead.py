"""Batches read in a thread: what was expected is there, one at a time, and errors come to whoever takes the batch."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import pytest
import torch

from learning.errors import LearningError
from learning.lead.lead import Alone, Told
from learning.member import read_ahead
from learning.member.group import Broken
from learning.member.read_ahead import ReadAhead
from learning.member.run import Run
from learning.member.surroundings import Surroundings

SECONDS = 60.0


class Source:
    """Notes what is read by which thread; a gate lets go on."""

    def __init__(self) -> None:
        self.read: list[list[int]] = []
        self.threads: set[str] = set()
        self.began, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.began.set()
        assert self.gate.wait(SECONDS)
        self.read.append(list(numbers))
        self.threads.add(threading.current_thread().name)
        if 13 in numbers:
            raise LearningError("sample 13 is broken")
        return [10 * number for number in numbers]


def test_what_was_expected_is_read_before_it_is_taken_and_once() -> None:
    source = Source()
    ahead = ReadAhead(source)
    ahead.expect([1, 2])
    assert source.began.wait(SECONDS)

    assert ahead.take([1, 2]) == [10, 20]
    assert source.read == [[1, 2]]
    ahead.close()


def test_a_wrong_expectation_costs_only_its_own_read_even_if_that_fails() -> None:
    source = Source()
    ahead = ReadAhead(source)
    ahead.expect([13])

    assert ahead.take([3]) == [30]
    assert [3] in source.read
    ahead.close()


def test_only_one_batch_waits_and_one_read_goes_on_at_a_time() -> None:
    source = Source()
    source.gate.clear()
    ahead = ReadAhead(source)
    for number in range(5):
        ahead.expect([number])
        assert source.began.wait(SECONDS)
    source.gate.set()

    assert ahead.take([4]) == [40]
    assert source.read == [[0], [4]]
    assert len(source.threads) == 1
    ahead.close()


def test_an_error_comes_as_it_is_and_the_next_batch_is_read() -> None:
    ahead = ReadAhead(Source())
    ahead.expect([13])

    with pytest.raises(LearningError, match=r"^sample 13 is broken$"):
        ahead.take([13])
    assert ahead.take([1]) == [10]
    ahead.close()


class Held:
    """What a read has in memory."""


@pytest.fixture
def _no_collection() -> Iterator[None]:
    """Python collects cycles only when many objects were made, and large ones are few."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collection")
def test_what_a_read_held_that_failed_is_let_go_before_less_is_read() -> None:
    held: list[weakref.ref[Held]] = []

    def read(_: Sequence[int]) -> None:
        part = Held()
        held.append(weakref.ref(part))
        raise MemoryError("no room")

    ahead = ReadAhead(read)
    with suppress(MemoryError):
        ahead.take([1, 2])

    until = time.monotonic() + SECONDS
    while held[0]() is not None:  # the thread may not have let it go yet
        assert time.monotonic() < until, "it is still in memory"
        time.sleep(0.01)
    ahead.close()


def test_a_batch_that_nobody_waits_for_any_more_is_read_once_and_taken_later() -> None:
    source = Source()
    source.gate.clear()
    ahead = ReadAhead(source)

    with pytest.raises(Broken, match="the generation is over"):
        ahead.take([1, 2], source.began.is_set)
    source.gate.set()

    assert ahead.take([1, 2]) == [10, 20]
    assert source.read == [[1, 2]]
    ahead.close()


def test_a_read_that_never_ends_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "LONGEST_SECONDS", 0.3)
    source = Source()
    source.gate.clear()
    ahead = ReadAhead(source)

    with pytest.raises(LearningError, match="the data has not given 2 samples within 0 s: look whether the place"):
        ahead.take([1, 2])
    ahead.close()
    assert source.read == [], "it was not waited for"
    source.gate.set()
    ahead._thread.shutdown()


class Images:
    """A data set that is read ahead."""

    reads_ahead = True

    def __init__(self, broken: int | None = None) -> None:
        self.broken = broken
        self.read: list[int] = []
        self.taken = 0
        self.ahead: list[int] = []

    def __len__(self) -> int:
        return 50

    def batch_of(self, numbers: Sequence[int]) -> torch.Tensor:
        if self.broken in numbers:
            raise LearningError(f"/data/{self.broken}.jpg cannot be decoded")
        self.read += numbers
        self.ahead.append(len(self.read) - self.taken)
        return torch.ones(len(numbers), 1)


def train(data: Images, around: Surroundings | None = None) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Run(model, optimizer, data, batch=10, epochs=2, micro_batch=5, surroundings=around) as run:
        for x in run:
            data.taken += len(x)
            run.step(lambda: model(x).pow(2).mean())  # noqa: B023 called at once


def test_a_run_reads_each_sample_once_an_epoch_and_at_most_one_micro_batch_ahead() -> None:
    data = Images()

    train(data)

    assert sorted(data.read) == sorted([*range(50)] * 2)
    assert max(data.ahead) <= 10
    assert data.taken == 100


def test_a_run_ends_with_the_error_of_its_data_and_no_thread_is_left() -> None:
    with pytest.raises(LearningError, match=r"^/data/20\.jpg cannot be decoded$"):
        train(Images(broken=20))

    assert not [one for one in threading.enumerate() if one.name.startswith("read ahead")]


class Hanging(Images):
    """Its first batch is read only once a second generation has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.gate = threading.Event(), threading.Event()

    def batch_of(self, numbers: Sequence[int]) -> torch.Tensor:
        self.began.set()
        assert self.gate.wait(SECONDS), "nobody has given up this read"
        return super().batch_of(numbers)


class Ending(Alone):
    """The first generation ends amid a read."""

    def __init__(self, data: Hanging) -> None:
        super().__init__()
        self._data = data

    def is_over(self, number: int) -> bool:
        return number == 1 and self._data.began.is_set()

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told:
        if after:
            self._data.gate.set()
        return super().next_generation(after, steps, store)


def test_a_read_that_hangs_is_given_up_with_its_generation_and_its_step_is_done_in_the_next() -> None:
    data = Hanging()

    train(data, Surroundings(Ending(data), None))

    assert sorted(data.read) == sorted([*range(50)] * 2)
    assert data.taken == 100
