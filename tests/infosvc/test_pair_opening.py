"""One of two services on one MariaDB that stands still while it opens the database holds the other one up no more."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from infosvc.http.follower import open_in_turn
from infosvc.settings import Settings
from infosvc.state import opening
from infosvc.state.claim import CLAIM_SECONDS, Fence, Turn
from infosvc.state.database import Database, parse_url
from infosvc.state.single_instance import InUse
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotReady
from infosvc.wire.records import Producer
from tests.infosvc.conftest import PASSWORD, PATIENCE_SECONDS, TOKEN
from tests.infosvc.test_pair import (
    SLOW_CLAIM_SECONDS,
    end_when_awaited,
    forked,
    is_following,
    is_ready,
    open_database,
    set_claim,
    take_lock,
)
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import ExitStack

    from sqlalchemy import Connection

    from infosvc.http.server import Server
    from tests.infosvc.conftest import MariaDB

SILENT_SECONDS = 1.0
WORKING = "FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP(%'"


@pytest.fixture(autouse=True)
def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that tests take less long."""
    monkeypatch.setattr(opening, "SILENT_SECONDS", SILENT_SECONDS)


@contextmanager
def _locking(database: str, end: Callable[[], None] = lambda: None) -> Iterator[Connection]:
    """What a service has done that got the lock, which `end` takes from another one, and not yet its epoch."""
    # Whoever waits for it may end this connection at once, which leaves no transaction to end here.
    engine = create_engine(parse_url(database), isolation_level="AUTOCOMMIT")
    connection = engine.connect()
    take_lock(connection, end)
    try:
        yield connection
    finally:
        connection.invalidate()
        engine.dispose()


def test_whoever_waits_gets_the_database_that_a_service_stands_still_with(
    mariadb: MariaDB, stack: ExitStack, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    database = mariadb.new_database()
    open_database(database, is_shared=True).close()
    turn = Turn(parse_url(database))
    stack.callback(turn.close)
    stack.enter_context(_locking(database))
    began = time.monotonic()
    eventually(turn.has_come)
    assert time.monotonic() - began > SILENT_SECONDS, "it may have been about to tell its claim"
    open_database(database, is_shared=True).close()


def _of_account(mariadb: MariaDB, database: str, address: str) -> str:
    """The database for a service on this address, which has an account of its own there."""
    name = parse_url(database).database
    mariadb.sql(f"GRANT ALL ON {name}.* TO infosvc@{address} IDENTIFIED BY '{PASSWORD}'")
    return f"{database}&bind_address={address}"


@pytest.mark.parametrize("is_opening", [False, True])
def test_a_server_that_does_not_let_one_service_end_the_connection_of_the_other_is_told_once(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    caplog: pytest.LogCaptureFixture,
    is_opening: bool,
) -> None:
    database = mariadb.new_database()
    own, others = (_of_account(mariadb, database, f"127.0.0.{number}") for number in (2, 3))
    store = open_database(others, is_shared=True)
    if is_opening:
        store.close()
        stack.enter_context(_locking(others))
    else:
        stack.callback(store.close)
        assert store.claim is not None
        store.claim._closing.set()  # as one that stands still
    turn = Turn(parse_url(own))
    stack.callback(turn.close)

    eventually(lambda: turn.has_come() or bool(caplog.messages))
    assert not any(turn.has_come() for _ in range(5))
    [said] = caplog.messages
    assert "does not let this service end the connection of the other one, which stands still ((1095," in said
    assert said.endswith(": make one account for both services, as docs/operate.md#two-services says")


def _work(migrating: Connection) -> None:
    """Be at work until that is ended."""
    with suppress(DBAPIError):
        migrating.execute(text("SELECT SLEEP(600)"))


def test_an_opener_that_still_works_keeps_the_database(
    mariadb: MariaDB, stack: ExitStack, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    database = mariadb.new_database()
    open_database(database, is_shared=True).close()
    turn = Turn(parse_url(database))
    stack.callback(turn.close)
    opener = stack.enter_context(_locking(database))
    other = create_engine(parse_url(database))
    stack.callback(other.dispose)
    with other.connect() as migrating:
        work = threading.Thread(target=_work, args=(migrating,))
        work.start()
        eventually(lambda: bool(mariadb.sql(f"SELECT ID {WORKING}")))
        end = time.monotonic() + 3 * SILENT_SECONDS
        while time.monotonic() < end:
            assert not turn.has_come()
            time.sleep(0.1)
        [(number,)] = mariadb.sql(f"SELECT ID {WORKING}")
        mariadb.sql(f"KILL QUERY {number}")  # it works for as long as somebody looks
        work.join()
    assert opener.scalar(text("SELECT 1")) == 1


def test_a_service_that_wakes_up_goes_on_when_the_one_that_took_its_lock_stands_still(
    mariadb: MariaDB, stack: ExitStack, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    database = mariadb.new_database()
    first = open_database(database, is_shared=True)
    stack.callback(first.close)
    claim = first.claim
    assert claim is not None
    stack.enter_context(_locking(database, lambda: end_when_awaited(mariadb, database)))
    counted: list[int] = []
    tries = threading.Thread(target=_count_in_the_end, args=(first, counted))  # who waits for the lock does no work
    tries.start()
    time.sleep(CLAIM_SECONDS)
    eventually(lambda: claim._sure_until > time.monotonic())
    assert not claim.is_lost
    tries.join()
    assert counted == [0]


def _count_in_the_end(store: Database, counted: list[int]) -> None:
    """Ask for a counter until that is told, or two minutes are over."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(InfoError):
            counted.append(store.counter("seen"))
            return


def test_an_opener_that_wakes_up_begins_no_epoch_while_another_service_has_a_claim(
    mariadb: MariaDB, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_claim(monkeypatch, 60.0)
    database = mariadb.new_database()
    first = open_database(database, is_shared=True)
    stack.callback(first.close)
    other = create_engine(parse_url(database))
    stack.callback(other.dispose)
    with pytest.raises(InUse, match="another service still has its claim"), other.begin() as late:
        Fence().open(late, 1, is_shared=True)
    assert first.counter("seen") == 0


def test_an_opener_whose_lock_was_taken_meanwhile_is_told_to_come_again(
    mariadb: MariaDB, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = mariadb.new_database()
    open_database(database, is_shared=True).close()
    begin = Fence.open

    def stand_still(*given: Any) -> None:
        monkeypatch.setattr(Fence, "open", begin)
        turn = Turn(parse_url(database))
        stack.callback(turn.close)
        while not turn.has_come():
            time.sleep(0.1)
        stack.callback(open_database(database, is_shared=True).close)
        begin(*given)

    monkeypatch.setattr(Fence, "open", stand_still)
    with pytest.raises(NotReady):
        open_database(database, is_shared=True)
    with pytest.raises(InUse):  # by the one that took over
        open_database(database, is_shared=True)


def test_a_follower_that_cannot_open_the_database_says_so_and_goes_on(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_claim(monkeypatch, 600.0)  # which nobody waits for
    database, port = mariadb.new_database(), free_port()
    use, opened = f"USE {parse_url(database).database}", list["Server"]()
    first = open_database(database, is_shared=True)
    settings = Settings(database=database, token=TOKEN, shared_with=f"http://127.0.0.1:{free_port()}")
    follows = threading.Thread(
        target=lambda: opened.append(open_in_turn(settings, "127.0.0.1", port, lambda _said: None))
    )
    follows.start()
    client = stack.enter_context(InfoClient(f"http://127.0.0.1:{port}", TOKEN, retries=0))
    eventually(lambda: _is_away(client))
    mariadb.sql(use, "RENAME TABLE t_History TO t_Lost")
    first.close()
    eventually(lambda: sum("it is tried again in " in line for line in caplog.messages) > 1)
    eventually(lambda: _is_away(client))
    assert any("lacks t_History" in line for line in caplog.messages)
    mariadb.sql(use, "RENAME TABLE t_Lost TO t_History")
    follows.join(60)
    [server] = opened
    serves = threading.Thread(target=server.run)
    serves.start()
    stack.callback(serves.join)
    stack.callback(server.stop)
    with InfoClient(client.url, TOKEN, PATIENCE_SECONDS) as patient:
        assert patient.producers() == []


def _is_away(client: InfoClient) -> bool:
    """Whether a follower says that it only follows, and the other one does not answer."""
    try:
        client.producers()
    except InfoError as error:
        return isinstance(error, NotReady) and "this service only follows it" in error.message
    return False


def test_a_follower_outlives_its_database(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_claim(monkeypatch)
    database, ports = mariadb.new_database(), (free_port(), free_port())
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    stack.enter_context(forked(database, ports[0], ports[1]))
    eventually(lambda: is_ready(urls[0]))
    follower = stack.enter_context(forked(database, ports[1], ports[0]))
    eventually(lambda: is_following(urls[1]))
    mariadb.kill()
    try:
        time.sleep(2 * SLOW_CLAIM_SECONDS)
        assert not any(map(is_ready, urls))
    finally:
        mariadb.start()
    with InfoClient(",".join(urls), TOKEN, timeout=60) as both:
        both.put_producer(Producer("after", "x", 60.0))
    assert os.waitpid(follower, os.WNOHANG) == (0, 0), "it has ended"
