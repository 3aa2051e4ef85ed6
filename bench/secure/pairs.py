"""How long nobody is answered when the active one of two services is killed, or stands still."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import pairwise

from bench.info.database import mariadb
from bench.info.errors import BenchError
from bench.info.processes import free_port
from bench.pair import Member, Pair, await_end
from bench.secure.figures import SERVICE, key_of
from bench.secure.scene import Place
from bench.stage import until
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer

FAULTS = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}
NAME, NODE = "bench_written", "writer"
PATIENCE_SECONDS = 1.0
"""How long a caller waits for an answer before it asks again."""
PAUSE_SECONDS = 0.02
QUIET_SECONDS = 2.0
"""How long there are only answers before a fault, and after it."""
OVER_SECONDS = 120.0


class Caller:
    """Somebody who calls again and again, and notes when he is answered; False is no answer."""

    def __init__(self, pair: Pair, call: Callable[[InfoClient, int], object]) -> None:
        self._pair, self._call = pair, call
        self._answered: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    @contextmanager
    def calling(self) -> Iterator[Caller]:
        """He calls until the end of the block."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join()

    def has_been_answered_since(self, moment: float) -> bool:
        """Whether he has been answered after a moment of the monotonic clock."""
        return bool(self._answered) and self._answered[-1] > moment

    def find_silence(self, since: float) -> float:
        """Seconds of the longest time without an answer that ended after a moment."""
        return longest_gap(self._answered, since)

    def _ask(self) -> None:
        number = 0
        with self._pair.client(PATIENCE_SECONDS, retries=0) as client:
            while not self._ended.wait(PAUSE_SECONDS):
                number += 1
                with suppress(InfoError, HadoopError):
                    if self._call(client, number) is not False:
                        self._answered.append(time.monotonic())


def longest_gap(moments: Sequence[float], since: float) -> float:
    """The longest time between two moments of which the second comes after `since`; BenchError when there is none.

    >>> longest_gap([1.0, 4.0, 4.5, 6.0], since=4.2)
    1.5
    """
    gaps = [after - before for before, after in pairwise(list(moments)) if after > since]
    if not gaps:
        raise BenchError("nothing was answered after the fault")
    return max(gaps)


def measure_service(place: Place, rounds: int) -> None:
    """Each fault in each round."""
    with two_services(place) as pair:
        with pair.client(OVER_SECONDS) as client:
            client.put_producer(Producer(NAME, cmd="", time_max=86400, kind=Kind.PROGRAM))
        take_turns(place, rounds, pair, partial(_hit, pair))


def take_turns(place: Place, rounds: int, pair: Pair, once: Callable[[str], Mapping[str, float]]) -> None:
    """Measure each fault in each round, in an order that is drawn."""
    faults = list(FAULTS)
    for number in range(1, (place.rounds or rounds) + 1):
        place.chance.shuffle(faults)
        for fault in faults:
            place.measure(f"round {number}", partial(once, fault), pair.start)


@contextmanager
def two_services(place: Place) -> Iterator[Pair]:
    """Two services of a database of their own, until the end of the block."""
    folder = place.folder / "pair"
    folder.mkdir(parents=True)
    with mariadb(folder / "mariadb") as database:
        homes = [folder / name for name in ("first", "second")]
        pair = Pair(database, [Member(home, "127.0.0.1", free_port()) for home in homes])
        try:
            pair.start()
            yield pair
        finally:
            pair.end()


def _hit(pair: Pair, fault: str) -> dict[str, float]:
    """The longest silence of who reads and of who writes."""
    reader = Caller(pair, lambda client, _: client.data(NAME))
    writer = Caller(pair, lambda client, number: client.put_value(NAME, NODE, number))
    return hit(pair, SERVICE, fault, {"read": reader, "write": writer})


def hit(pair: Pair, piece: str, fault: str, callers: Mapping[str, Caller]) -> dict[str, float]:
    """The longest silence of each caller, by key; both services are well again afterwards."""
    with ExitStack() as stack:
        for one in callers.values():
            stack.enter_context(one.calling())
        time.sleep(QUIET_SECONDS)
        active = until(pair.find_active, OVER_SECONDS, "a service is active")  # now: the other may have taken over
        moment = time.monotonic()
        active.process.send_signal(FAULTS[fault])
        try:
            _await_other(pair, active, callers.values())
            time.sleep(QUIET_SECONDS)
        finally:
            active.process.send_signal(signal.SIGCONT)
        told = {key_of(piece, fault, what): one.find_silence(moment) for what, one in callers.items()}
    await_end(active)
    pair.start()
    return told


def _await_other(pair: Pair, active: Member, callers: Iterable[Caller]) -> None:
    """Wait until the other service is active and has answered everybody."""
    other = pair.other(active)
    until(lambda: pair.find_active() is other, OVER_SECONDS, "the other service is active")
    since = time.monotonic()
    everybody = list(callers)
    until(lambda: all(one.has_been_answered_since(since) for one in everybody), OVER_SECONDS, "all are answered")


SERVICES = partial(measure_service, rounds=8)
