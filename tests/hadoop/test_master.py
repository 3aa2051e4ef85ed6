"""An application master's signs of life, without a ResourceManager: when, what is kept, and by one thread at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from hadoop.client import master
from hadoop.client.filesystem import FileSystem
from hadoop.client.master import Ended, Granted, Heartbeat, MasterSession, Pulse, Unprepared
from hadoop.client.yarn import Launch
from hadoop.errors import HadoopError

EVERY = 0.01


class Exchange:
    """Numbers what it is asked, and notes if it is asked twice at once."""

    def __init__(self) -> None:
        self.told: list[float] = []
        self.faults = 0
        self.at_once = False
        self._busy = threading.Lock()

    def __call__(self, progress: float) -> Heartbeat:
        self.at_once |= not self._busy.acquire(blocking=False)
        self.told.append(progress)
        self._busy.release()
        if self.faults:
            self.faults -= 1
            raise HadoopError("the ResourceManager is away")
        return Heartbeat((), (Ended(f"c{len(self.told)}", 0, ""),), ())


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(EVERY)


@pytest.fixture
def exchange() -> Exchange:
    return Exchange()


def test_while_nobody_asks_it_beats_and_loses_no_news(exchange: Exchange) -> None:
    pulse = Pulse(exchange, EVERY)
    pulse.ask(0.25)
    pulse.start()
    until(lambda: len(exchange.told) > 3)

    news = pulse.ask(0.5)
    pulse.stop()

    found = [int(ended.container_id[1:]) for ended in (*news.ended, *pulse.ask(1.0).ended)]
    assert found == list(range(2, len(exchange.told) + 1))
    assert set(exchange.told[:3]) == {0.25}
    assert not exchange.at_once


def test_who_asks_often_is_the_only_one(exchange: Exchange) -> None:
    pulse = Pulse(exchange, every=1000.0)
    pulse.start()
    for _ in range(100):
        pulse.ask(0.5)
    pulse.stop()

    assert len(exchange.told) == 100


def test_after_the_end_there_is_no_beat(exchange: Exchange) -> None:
    pulse = Pulse(exchange, EVERY)
    pulse.start()
    until(lambda: bool(exchange.told))
    pulse.stop()
    told = len(exchange.told)

    until(lambda: "pulse" not in {thread.name for thread in threading.enumerate()})
    assert len(exchange.told) == told


def test_a_fault_is_told_to_who_asks_and_the_news_before_it_stays(exchange: Exchange) -> None:
    pulse = Pulse(exchange, EVERY)
    pulse.start()
    until(lambda: bool(exchange.told))
    exchange.faults = 3
    until(lambda: not exchange.faults)
    pulse.stop()
    exchange.faults = 1

    with pytest.raises(HadoopError, match="is away"):
        pulse.ask(0.5)
    assert pulse.ask(0.5).ended[0].container_id == "c1"


def test_a_program_that_hangs_is_not_kept_alive(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master, "ALONE_SECONDS", 20 * EVERY)
    pulse = Pulse(exchange, EVERY)
    pulse.start()
    begun = time.monotonic()
    until(lambda: time.monotonic() - begun > 20 * EVERY)
    with pulse.lock:  # no beat that began in time is under way any more
        told = len(exchange.told)
    until(lambda: time.monotonic() - begun > 60 * EVERY)
    pulse.stop()

    assert len(exchange.told) == told


def test_of_news_that_came_one_after_the_other_the_last_counts() -> None:
    granted, ended = Granted("c1", "a", "", None, 1), Ended("c1", 0, "")
    first = Heartbeat((granted,), (), ("a", "b"), ("c",), ("b",))
    later = Heartbeat((), (ended,), ("c",), ("b",), ())

    assert first.merge(later) == Heartbeat((granted,), (ended,), ("a", "c"), ("b",), ())
    assert later.merge(first) == Heartbeat((granted,), (ended,), ("a", "b"), ("c",), ("b",))


def test_what_hdfs_does_not_tell_is_not_the_nodes_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(launch: Launch, filesystem: FileSystem) -> object:
        raise HadoopError("looking for code.zip failed")

    monkeypatch.setattr(master, "launch_context", away)
    session = MasterSession.__new__(MasterSession)  # without a JVM
    session._filesystem = None  # type: ignore[assignment]

    with pytest.raises(Unprepared, match=r"looking for code\.zip failed"):
        session.launch(Granted("c1", "a", "", None), Launch([], {}, {}, 1, 1))
