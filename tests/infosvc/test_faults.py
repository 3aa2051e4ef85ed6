"""Nothing that was acknowledged is lost, whatever dies: the service, its database, its disk, its clock."""

from __future__ import annotations

import math
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

import pytest

from infosvc.core.service import components_of
from infosvc.http.server import Server
from infosvc.settings import Ack, Settings
from infosvc.state.transaction import Transaction
from infosvc.state.value import Value
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, InvalidInput, NotReady
from infosvc.wire.records import Outcome, Producer, Report, Run, State
from tests.infosvc.conftest import TOKEN
from tests.ports import free_port

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, MariaDB, Served, Serving

KILLS = 100
SEED = 20261121
NAMES = 40
OUTAGE_SECONDS = 60.0


@contextmanager
def _forked(database: str, port: int) -> Iterator[int]:
    """A service in a process of its own, forked from this one so that it starts in milliseconds; yields its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            Server(Settings(database=database, token=TOKEN, patience=60.0), "127.0.0.1", port).run()
        finally:
            os._exit(1)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _await(client: InfoClient) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            client.producers()
        except InfoError:
            assert time.monotonic() < deadline, "the service did not come back"
            time.sleep(0.01)
        else:
            return


class Writers:
    """Agents that report one growing number for every name, and remember which was acknowledged last."""

    def __init__(self, url: str, count: int) -> None:
        self.acknowledged = [0] * count
        self._sent = [0] * count
        self._url = url
        self._stop = threading.Event()

    def run(self, seconds: float) -> None:
        """Report from all nodes at once for a while, through whatever happens, until each got one through at least."""
        self._stop.clear()
        before, deadline = list(self.acknowledged), time.monotonic() + 60
        threads = [threading.Thread(target=self._report, args=(node,)) for node in range(len(self.acknowledged))]
        for thread in threads:
            thread.start()
        self._threads = threads
        self._stop.wait(seconds)
        while any(now == then for now, then in zip(self.acknowledged, before, strict=True)):
            assert time.monotonic() < deadline, "some node's report was never acknowledged"
            self._stop.wait(0.005)

    def end(self) -> None:
        """Wait until nobody writes."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _report(self, node: int) -> None:
        with InfoClient(self._url, TOKEN, timeout=2.0, retries=0) as client:
            while not self._stop.is_set():
                self._sent[node] = number = self._sent[node] + 1
                runs = tuple(Run(f"x{name}", Outcome.OK, 0.1, str(number)) for name in range(NAMES))
                with suppress(InfoError):
                    client.report(f"n{node}", Report("boot", number, "1", runs))
                    self.acknowledged[node] = number


@pytest.mark.timeout(1800)
def test_killed_a_hundred_times_the_service_loses_nothing_acknowledged(sqlite_url: str) -> None:
    port, chance = free_port(), random.Random(SEED)
    url = f"http://127.0.0.1:{port}"
    client, writers = InfoClient(url, TOKEN, timeout=60, retries=0), Writers(url, 3)
    for kill in range(KILLS):
        with _forked(sqlite_url, port) as pid:
            _await(client)
            if kill == 0:
                for name in range(NAMES):
                    client.put_producer(Producer(f"x{name}", "", 5.0, kind="program"))  # type: ignore[arg-type]
                for node in range(3):
                    client.put_node(f"n{node}", "127.0.0.1:9")
            for read in ("x0", f"x{NAMES - 1}"):
                stored = {datum.node_name: int(datum.data_value or 0) for datum in client.data(read)}
                for node, number in enumerate(writers.acknowledged):
                    assert stored.get(f"n{node}", 0) >= number, f"kill {kill} of seed {SEED}"
            writers.run(chance.uniform(0.01, 0.12))
            os.kill(pid, signal.SIGKILL)
            writers.end()
    assert min(writers.acknowledged) >= KILLS
    client.close()


@pytest.mark.timeout(900)
def test_a_minute_without_mariadb_reads_go_on_and_nothing_acknowledged_is_lost(
    mariadb: MariaDB, serve: Serving, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    database, acknowledged, refused = mariadb.new_database(), 0, 0
    # A node is ready for 30 s after a report, so that the outage lasts longer, and a moment's standstill does not.
    settings = {"patience": 2.0, "heartbeat": 10.0, "lost_after": 45.0}
    with (
        serve(database, **settings) as service,
        InfoClient(service.url, TOKEN, timeout=60, retries=0) as impatient,
    ):
        service.client.put_producer(Producer("cpu", "x", 5.0))
        service.client.put_node("n1", "127.0.0.1:9")
        killer = threading.Thread(target=mariadb.kill)
        number, end = 0, math.inf
        try:
            while time.monotonic() < end or refused <= 10:
                number += 1
                if acknowledged > 10 and end == math.inf:
                    killer.start()
                    end = time.monotonic() + OUTAGE_SECONDS
                try:
                    impatient.put_value("cpu", "n1", number)
                    acknowledged = number
                except NotReady:
                    refused += 1
                    time.sleep(0.2)
                assert int(service.reader.data("cpu")[0].data_value or 0) >= acknowledged
                with suppress(NotReady):
                    impatient.report("n1", Report("b", number, "1", (Run("cpu", Outcome.NO_DATA, 0.1),)))
                assert service.reader.nodes()[0].state == "ready", "an agent that reports lives, whatever the database"
        finally:
            if killer.ident:
                killer.join()
                mariadb.start()
        assert acknowledged > 10
        assert refused > 10
        eventually(lambda: service.ask("GET", "/readyz").status == 200)
    with serve(database) as again:
        assert int(again.reader.data("cpu")[0].data_value or 0) >= acknowledged
        again.client.put_producer(Producer("load", "x", 5.0))


class Cutter:
    """Stands between a service and MariaDB, and can pass a COMMIT on but cut the connection before its answer."""

    def __init__(self, port: int) -> None:
        self.cut = False
        self._cut_off: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End all connections and take no more."""
        for held in (self._listener, *self._open):
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._open += (client, server)
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, sink, source is client), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, asking: bool) -> None:
        with suppress(OSError):
            while content := source.recv(65536):
                if asking and self.cut and content.endswith(b"COMMIT"):
                    self.cut, self._cut_off = False, sink
                if source is self._cut_off:  # the answer to the COMMIT, which is done by then
                    sink.shutdown(socket.SHUT_RDWR)
                    return  # at the server's end this connection lives on, lock and all
                sink.sendall(content)


@pytest.fixture
def cutter(mariadb: MariaDB) -> Iterator[Cutter]:
    """A way to MariaDB that can be cut after a COMMIT."""
    made = Cutter(mariadb.port)
    yield made
    made.close()


def test_a_commit_whose_answer_is_lost_is_found_out_and_later_writes_go_on(
    mariadb: MariaDB, cutter: Cutter, serve: Serving
) -> None:
    database = mariadb.new_database()
    through = database.replace(f":{mariadb.port}/", f":{cutter.port}/")
    with serve(through) as service, InfoClient(service.url, TOKEN, timeout=60, retries=0) as client:
        client.put_producer(Producer("cpu", "x", 5.0))
        cutter.cut = True
        with pytest.raises(NotReady):
            client.put_producer(Producer("load", "x", 5.0))
        client.put_value("cpu", "n1", 1)
        assert [found.data_name for found in client.producers()] == ["cpu", "load"]
        client.put_producer(Producer("disk", "x", 5.0))
        assert [entry.sequence for entry in client.audit()] == [1, 2, 3, 4]
    with serve(database) as again:
        assert [found.data_name for found in again.reader.producers()] == ["cpu", "disk", "load"]


@pytest.mark.parametrize("ack", list(Ack))
def test_a_report_whose_commit_lost_its_answer_is_stored_once(
    mariadb: MariaDB, cutter: Cutter, serve: Serving, ack: Ack, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    through = mariadb.new_database().replace(f":{mariadb.port}/", f":{cutter.port}/")

    def report(number: int) -> Report:
        return Report("b", number, "1", (Run("cpu", Outcome.OK, 0.1, str(number)),))

    with serve(through, ack=ack) as service, InfoClient(service.url, TOKEN, timeout=60, retries=0) as client:
        writer = components_of(service.server.app).writer
        client.put_producer(Producer("cpu", "x", 5.0, keep=3600))
        client.put_node("n1", "127.0.0.1:9")
        cutter.cut = True
        if ack is Ack.DURABLE:
            with pytest.raises(NotReady):
                client.report("n1", report(1))
        for number in (1, 2):  # as an agent does that heard no receipt
            client.report("n1", report(number))
        eventually(lambda: not cutter.cut and writer.waiting == 0)  # with ack fast, it is stored again
        assert [text for _, text in client.history("cpu", "n1", 0).points] == ["1", "2"]
        assert client.data("cpu")[0].data_value == "2"


def test_one_change_that_the_database_cannot_hold_takes_no_other_with_it(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        writer = components_of(service.server.app).writer
        huge = Value("1", 1.0, Outcome.OK, None, 1.0, sequence=2**63)

        def poison(transaction: Transaction) -> None:
            transaction.values["cpu", "bad"] = huge

        def good(transaction: Transaction) -> None:
            transaction.values["cpu", "good"] = Value("1", 1.0, Outcome.OK, None, 1.0)

        with ThreadPoolExecutor(8) as pool:
            for _ in range(20):
                bad = pool.submit(writer.write_report, poison)
                others = [pool.submit(writer.write_report, good) for _ in range(5)]
                for other in others:
                    other.result()
                with pytest.raises(InvalidInput, match="cannot hold this"):
                    bad.result()
        assert [datum.node_name for datum in service.reader.data("cpu")] == ["good"]


def test_a_clock_set_back_over_a_restart_makes_nothing_younger(sqlite_url: str, hands: Hands, serve: Serving) -> None:
    with serve(sqlite_url, hands) as first:
        first.client.put_producer(Producer("cpu", "x", 1.0))
        first.client.put_node("n1", "127.0.0.1:9")
        first.client.report("n1", Report("b", 1, "1", (Run("cpu", Outcome.OK, 0.1, "1"),)))
    hands.epoch -= 3600
    with serve(sqlite_url, hands) as second:
        hands.turn(16)
        [datum] = second.reader.data("cpu")
        assert datum.state is State.STALE
        assert second.reader.nodes()[0].state == "lost"


def test_with_ack_fast_reports_go_on_without_the_database_and_are_stored_later(
    mariadb: MariaDB, serve: Serving
) -> None:
    database = mariadb.new_database()
    with serve(database, ack=Ack.FAST) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        service.client.put_node("n1", "127.0.0.1:9")
        mariadb.stop()
        try:
            for number in range(1, 6):
                service.client.report("n1", Report("b", number, "1", (Run("cpu", Outcome.OK, 0.1, str(number)),)))
            assert service.reader.data("cpu")[0].data_value == "5"
        finally:
            mariadb.start()
    with serve(database) as again:
        assert again.reader.data("cpu")[0].data_value == "5"


def test_with_ack_fast_what_readers_see_is_stored_some_seconds_later(
    sqlite_url: str, eventually: Callable[[Callable[[], bool]], None], serve: Serving
) -> None:
    with serve(sqlite_url, ack=Ack.FAST) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0, keep=60))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.report("n1", Report("b", 1, "1", (Run("cpu", Outcome.OK, 0.1, "1"),)))
        eventually(lambda: service.ask("GET", "/api/v1/data/cpu/n1/history?since=0").json["count"] == 1)


def test_with_ack_fast_a_pair_acknowledges_nothing_that_its_database_does_not_take(
    mariadb: MariaDB,
    eventually: Callable[[Callable[[], bool]], None],
    serve: Serving,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(mariadb.new_database(), ack=Ack.FAST, shared_with="http://127.0.0.1:9", flush=0.05) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        service.client.put_node("n1", "127.0.0.1:9")
        numbers = count(1)

        def is_acknowledged() -> bool:
            number = next(numbers)
            report = Report("b", number, "1", (Run("cpu", Outcome.OK, 0.1, str(number)),))
            with InfoClient(service.url, TOKEN, retries=0) as client, suppress(NotReady):
                client.report("n1", report)
                return True
            return False

        def refuse(_transaction: Transaction) -> None:
            raise NotReady("the database is away")

        eventually(is_acknowledged)
        with monkeypatch.context() as away:
            away.setattr(components_of(service.server.app).store, "save", refuse)
            eventually(lambda: not is_acknowledged())
        eventually(is_acknowledged)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_that_jumps_an_hour_changes_no_age_and_no_state(service: Served, hands: Hands, jump: float) -> None:
    service.client.put_producer(Producer("cpu", "x", 5.0))
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.report("n1", Report("b", 1, "1", (Run("cpu", Outcome.OK, 0.1, "1", age=1.0),)))
    hands.epoch += jump
    hands.turn(2.0)
    [datum] = service.reader.data("cpu")
    assert datum.age == pytest.approx(3.0, abs=0.01)
    assert datum.state is State.FRESH
    assert service.reader.nodes()[0].state == "ready"


def test_a_service_under_load_ends_in_order_and_keeps_what_it_acknowledged(sqlite_url: str, serve: Serving) -> None:
    with ExitStack() as held:
        service = held.enter_context(serve(sqlite_url))
        for name in range(NAMES):
            service.client.put_producer(Producer(f"x{name}", "", 5.0, kind="program"))  # type: ignore[arg-type]
        for node in range(4):
            service.client.put_node(f"n{node}", "127.0.0.1:9")
        writers = Writers(service.url, 4)
        writers.run(0.5)
        held.close()
        writers.end()
    with serve(sqlite_url) as again:
        stored = {datum.node_name: int(datum.data_value or 0) for datum in again.reader.data("x0")}
        assert all(stored[f"n{node}"] >= number > 0 for node, number in enumerate(writers.acknowledged))
