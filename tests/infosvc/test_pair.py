"""Two services on one MariaDB: one is active, the other follows, and never do both write."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click
import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import DBAPIError

from infosvc.access.audit_key import key_from
from infosvc.commands.serve import FLUSH_SECONDS, serve
from infosvc.http import follower as follower_module
from infosvc.http.follower import Follower, open_in_turn
from infosvc.settings import Ack, Clock, Settings
from infosvc.state import claim as claim_module
from infosvc.state import opening, single_instance
from infosvc.state.claim import Claim, Superseded, Turn
from infosvc.state.database import Database, parse_url
from infosvc.state.transaction import Transaction
from infosvc.wire import connection as connection_module
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, InvalidInput, NotReady, Unauthorized
from infosvc.wire.records import Outcome, Producer, Report, Run
from infosvc.wire.task_spec import TaskSpec
from tests.infosvc.conftest import PATIENCE_SECONDS, TOKEN, Served, serving
from tests.infosvc.test_faults import NAMES, Writers
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from pathlib import Path

    from sqlalchemy import Connection

    from tests.infosvc.conftest import MariaDB

SLOW_CLAIM_SECONDS = 5.0
"""How long a claim lasts where services are not to lose it before their time, although one may stand still a while."""
GIVEN_BACK = "UPDATE t_Meta SET value = 1 WHERE name = 'claim_until'"


def open_database(database: str, is_shared: bool = False) -> Database:
    return Database(parse_url(database), Clock(), is_shared)


def set_claim(monkeypatch: pytest.MonkeyPatch, seconds: float = SLOW_CLAIM_SECONDS) -> None:
    """Let claims last so long after they were renewed, also those of services that are forked then."""
    monkeypatch.setattr(claim_module, "CLAIM_SECONDS", seconds)
    monkeypatch.setattr(claim_module, "_LASTING", int(seconds * 1_000_000))


def _counting(store: Database, number: int) -> Transaction:
    """A change that would be seen in the database."""
    configuration, values = store.load()
    transaction = Transaction(configuration, values)
    transaction.put("counters", ("seen",), number)
    return transaction


def _run(mariadb: MariaDB, database: str, *statements: str) -> list[tuple[int]]:
    return mariadb.sql(f"USE {parse_url(database).database}", *statements)


def end_when_awaited(mariadb: MariaDB, database: str) -> None:
    """End the connection that has the lock once another one waits for it, before the service itself takes it again."""
    name, deadline = parse_url(database).database, time.monotonic() + 60
    waiting = f"SELECT ID FROM information_schema.PROCESSLIST WHERE DB = '{name}' AND STATE = 'User lock'"
    while not mariadb.sql(waiting):
        assert time.monotonic() < deadline, "nobody waits for the lock"
        time.sleep(0.01)
    [(holder,)] = _run(mariadb, database, "SELECT value FROM t_Meta WHERE name = 'claim_connection'")
    mariadb.sql(f"KILL {holder}")


def take_lock(connection: Connection, end: Callable[[], None] = lambda: None) -> None:
    """Get the lock of the database, once `end` has ended the connection that has it."""
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(connection.scalar, text(f"SELECT GET_LOCK({single_instance.LOCK_NAME}, 60)"))
        end()
        assert taken.result() == 1


def test_once_another_service_has_begun_nothing_of_the_first_is_stored(mariadb: MariaDB, stack: ExitStack) -> None:
    database = mariadb.new_database()
    first = open_database(database)
    stack.callback(first.close)
    first.save(_counting(first, 1))
    late = _counting(first, 2)
    _run(mariadb, database, "UPDATE t_Meta SET value = value + 1 WHERE name = 'epoch'", "COMMIT")
    with pytest.raises(Superseded, match="another service has taken the database over"):
        first.save(late)
    assert _run(mariadb, database, "SELECT value FROM t_Meta WHERE name = 'seen'") == [(1,)]


def test_a_service_that_lost_the_database_does_not_take_its_lock_again(mariadb: MariaDB, stack: ExitStack) -> None:
    database = mariadb.new_database()
    first = open_database(database)
    stack.callback(first.close)
    late = _counting(first, 2)
    [(holder,)] = _run(mariadb, database, "SELECT value FROM t_Meta WHERE name = 'claim_connection'")
    mariadb.sql(f"KILL {holder}")
    open_database(database).close()  # another service was here meanwhile, and the lock is free again
    with pytest.raises(Superseded):
        first.save(late)
    open_database(database).close()  # refused while anybody has the lock


def test_what_a_frozen_service_had_not_committed_is_undone_and_holds_nobody_up(
    mariadb: MariaDB, stack: ExitStack, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    database = mariadb.new_database()
    first = open_database(database)
    stack.callback(first.close)
    turn = Turn(parse_url(database))
    stack.callback(turn.close)
    late = _counting(first, 7)
    with pytest.raises(DBAPIError), first._writing() as connection:
        first._save_picture(connection, late, 0.0)
        assert not turn.has_come()  # a service that does not share its database has it as long as it is connected
        _run(mariadb, database, GIVEN_BACK, "COMMIT")
        eventually(turn.has_come)
        second = open_database(database)
        stack.callback(second.close)
    assert second.counter("seen") == 0


def test_a_service_that_stands_still_while_it_renews_its_claim_holds_nobody_up(
    mariadb: MariaDB, stack: ExitStack
) -> None:
    database = mariadb.new_database()
    first = open_database(database, is_shared=True)
    assert first.claim is not None
    stands, goes_on = threading.Event(), threading.Event()

    def stand_still(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "t_Meta" in statement:
            stands.set()
            goes_on.wait()

    event.listen(first.claim._engine, "after_cursor_execute", stand_still)
    stack.callback(first.close)
    stack.callback(goes_on.set)
    assert stands.wait(60)
    late = _counting(first, 2)
    [(holder,)] = _run(mariadb, database, "SELECT value FROM t_Meta WHERE name = 'claim_connection'")
    mariadb.sql(f"KILL {holder}")
    stack.callback(open_database(database).close)
    with pytest.raises(Superseded):
        first.save(late)


def test_whoever_writes_while_another_service_opens_the_database_is_told_to_come_again(
    mariadb: MariaDB, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_instance, "_WAIT_SECONDS", 0)
    database = mariadb.new_database()
    first = open_database(database)
    stack.callback(first.close)
    late = _counting(first, 2)
    other = create_engine(parse_url(database))
    stack.callback(other.dispose)
    take_lock(stack.enter_context(other.connect()), lambda: end_when_awaited(mariadb, database))
    with pytest.raises(NotReady, match="another service has the lock of the database"):
        first.save(late)


def test_a_service_that_goes_on_while_another_one_opens_the_database_is_sure_of_nothing(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "SILENT_SECONDS", 60.0)
    database = mariadb.new_database()
    first = open_database(database, is_shared=True)
    stack.callback(first.close)
    claim = first.claim
    assert claim is not None
    other = create_engine(parse_url(database))
    stack.callback(other.dispose)
    with other.connect() as connection:  # another service, just before its epoch
        take_lock(connection, lambda: end_when_awaited(mariadb, database))
        eventually(lambda: not is_sure(claim))  # a renewal may have been under way
        connection.scalar(text(f"SELECT RELEASE_LOCK({single_instance.LOCK_NAME})"))
    eventually(lambda: claim._sure_until > time.monotonic())  # that one gave up
    assert not claim.is_lost


def is_sure(claim: Claim) -> bool:
    """Whether a service answers readers, and does not say that it may have lost the database."""
    try:
        claim.check()
    except NotReady as error:
        assert "does not know whether it still has the database" in error.message
        return False
    return True


def test_a_claim_that_was_renewed_after_a_look_keeps_another_service_away(
    mariadb: MariaDB, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_instance, "_WAIT_SECONDS", 60)
    set_claim(monkeypatch, 60.0)
    database = mariadb.new_database()
    first = open_database(database, is_shared=True)
    stack.callback(first.close)
    opened = stack.enter_context(ThreadPoolExecutor(1)).submit(open_database, database, is_shared=True)
    end_when_awaited(mariadb, database)
    with pytest.raises(single_instance.InUse, match="another service still has its claim"):
        opened.result()
    first.save(_counting(first, 3))
    assert first.counter("seen") == 3


def test_a_counter_that_another_service_may_have_raised_is_not_told(mariadb: MariaDB, stack: ExitStack) -> None:
    database = mariadb.new_database()
    first = open_database(database)
    stack.callback(first.close)
    _run(mariadb, database, "UPDATE t_Meta SET value = value + 1 WHERE name = 'epoch'", "COMMIT")
    with pytest.raises(Superseded):
        first.counter("commit")


def test_a_turn_does_not_end_the_connection_of_a_service_that_is_just_opening(
    mariadb: MariaDB, stack: ExitStack
) -> None:
    database = mariadb.new_database()
    first = open_database(database)
    stack.callback(first.close)
    turn = Turn(parse_url(database))
    stack.callback(turn.close)
    not_yet_told = "UPDATE t_Meta SET value = 0 WHERE name = 'claim_connection'"
    _run(mariadb, database, GIVEN_BACK, not_yet_told, "COMMIT")
    assert not turn.has_come()
    first.save(_counting(first, 1))
    assert first.counter("seen") == 1


def test_a_claim_is_renewed_and_ends_when_it_is_given_back(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_claim(monkeypatch, 60.0)
    monkeypatch.setitem(claim_module._PATIENCE, "read_timeout", 60)  # or it may end by itself on a busy machine
    database = mariadb.new_database()
    claim_until = "SELECT value FROM t_Meta WHERE name = 'claim_until'"
    turn = Turn(parse_url(database))
    stack.callback(turn.close)
    eventually(turn.has_come)  # nobody has opened this database yet
    first = open_database(database, is_shared=True)
    begun = _run(mariadb, database, claim_until)
    eventually(lambda: _run(mariadb, database, claim_until) > begun)
    assert not turn.has_come()
    assert first.claim is not None
    first.claim.check()
    first.close()
    assert _run(mariadb, database, claim_until) == [(claim_module._GIVEN_BACK,)]
    eventually(turn.has_come)  # the server may end the connection that has the lock a moment later


@contextmanager
def _following(database: str, url: str) -> Iterator[Follower]:
    """A service that follows the one at `url`, until its turn comes."""
    turn = Turn(parse_url(database))
    follower = Follower(Settings(database=database, token=TOKEN, shared_with=url), "127.0.0.1", 0, turn)
    thread = threading.Thread(target=follower.run)
    thread.start()
    try:
        yield follower
    finally:
        thread.join(60)
        turn.close()
        assert not thread.is_alive()


def test_a_follower_passes_reads_on_and_refuses_the_rest_with_the_address_of_the_active_one(
    mariadb: MariaDB, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "RELAY_SECONDS", PATIENCE_SECONDS)
    database = mariadb.new_database()
    active: Served = stack.enter_context(serving(database))
    # The other way round than it looks: what is entered last is left first, and a follower goes on until its turn.
    follower = stack.enter_context(_following(database, active.url))
    stack.callback(active.server.stop)
    active.client.put_producer(Producer("cpu", "x", 60.0))
    active.client.put_value("cpu", "n1", 0.5)
    with InfoClient(follower.url, TOKEN, PATIENCE_SECONDS, retries=0) as client:
        [datum] = client.data("cpu")
        assert datum.data_value == "0.5"
        assert datum.age is not None
        with pytest.raises(NotReady, match=f"this service follows {active.url}"):
            client.put_value("cpu", "n1", 0.7)
        with pytest.raises(NotReady), client.events() as events:
            next(iter(events))
    assert active.client.data("cpu")[0].data_value == "0.5"
    through = Served(follower.url, active.server)
    refused = through.ask("GET", "/readyz")
    assert (refused.status, refused.headers["Nodewise-Active"]) == (503, active.url)
    assert through.ask("GET", "/healthz").status == 200
    # Reading is open on loopback, but not to whoever reaches the follower.
    assert active.ask("GET", "/api/v1/producers", token=None).status == 200
    stranger = stack.enter_context(InfoClient(follower.url, None, PATIENCE_SECONDS, retries=0))
    with pytest.raises(Unauthorized, match="through a proxy"):
        stranger.producers()


def test_two_followers_of_each_other_answer_at_once(mariadb: MariaDB, stack: ExitStack) -> None:
    database = mariadb.new_database()
    holder = open_database(database)
    port = free_port()
    first = stack.enter_context(_following(database, f"http://127.0.0.1:{port}"))
    turn = Turn(parse_url(database))
    settings = Settings(database=database, token=TOKEN, shared_with=first.url)
    second = Follower(settings, "127.0.0.1", port, turn)
    thread = threading.Thread(target=second.run)
    thread.start()
    stack.callback(thread.join)
    stack.callback(holder.close)
    with InfoClient(second.url, TOKEN, retries=0) as client, pytest.raises(NotReady, match="follows"):
        client.producers()


@contextmanager
def forked(database: str, port: int, other: int, **settings_too: Any) -> Iterator[int]:
    """A service of a pair in a process of its own; yields its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            shared_with = f"http://127.0.0.1:{other}"
            settings = Settings(database=database, token=TOKEN, shared_with=shared_with, **settings_too)
            server = open_in_turn(settings, "127.0.0.1", port, lambda _said: None)
            server.run()
            os._exit(1 if server.is_superseded else 0)
        finally:
            os._exit(2)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def is_ready(url: str, patience: float = 2.0) -> bool:
    with InfoClient(url, TOKEN, timeout=patience, retries=0) as client, suppress(InfoError):
        client.agents_scheme()
        return True
    return False


def is_following(url: str) -> bool:
    with InfoClient(url, TOKEN, timeout=2.0, retries=0) as client:
        try:
            client.agents_scheme()
        except NotReady as error:
            return "follows" in error.message
        except InfoError:
            pass
    return False


def find_values(client: InfoClient) -> dict[tuple[str, str], str | None]:
    rows = [row for name in range(NAMES) for row in client.data(f"x{name}")]
    return {(row.data_name, row.node_name): row.data_value for row in rows}


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_the_other_service_takes_over_and_nothing_acknowledged_is_lost(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
    fault: signal.Signals,
) -> None:
    set_claim(monkeypatch)
    # A client goes back to a service that stands still where the other one takes as long to answer.
    monkeypatch.setattr(connection_module, "FROZEN_SECONDS", 2 * SLOW_CLAIM_SECONDS)
    database, ports = mariadb.new_database(), (free_port(), free_port())
    first, second = (f"http://127.0.0.1:{port}" for port in ports)
    pid = stack.enter_context(forked(database, ports[0], ports[1]))
    eventually(lambda: is_ready(first))
    stack.enter_context(forked(database, ports[1], ports[0]))
    eventually(lambda: is_following(second))
    client, writers = InfoClient(first, TOKEN, timeout=60), Writers(first, 3)
    for name in range(NAMES):
        client.put_producer(Producer(f"x{name}", "x", 60.0))
    for node in range(3):
        client.put_node(f"n{node}", "127.0.0.1:9")
    task = client.submit_task(TaskSpec(["train"], name="mnist"))
    writers.run(0.5)
    os.kill(pid, fault)
    if fault == signal.SIGSTOP:
        os.waitpid(pid, os.WUNTRACED)  # until all its threads stand still: on a busy machine some go on for a while
    pool = stack.enter_context(ThreadPoolExecutor(1))
    read = pool.submit(InfoClient(first, TOKEN, timeout=60, retries=0).producers)
    if fault == signal.SIGSTOP:
        eventually(lambda: is_ready(second))
    with InfoClient(f"{first},{second}", TOKEN, timeout=60) as both:
        both.put_producer(Producer("both", "x", 60.0))
    with InfoClient(second, TOKEN, timeout=60) as other:
        found = find_values(other)
        if fault == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
            assert isinstance(read.exception(), NotReady)  # what it knew when it fell asleep it tells nobody
            _, status = os.waitpid(pid, 0)
            assert os.waitstatus_to_exitcode(status) == 1  # so that whoever watches it starts it again
        writers.end()
        for node, acknowledged in enumerate(writers.acknowledged):
            assert all(int(found[f"x{name}", f"n{node}"] or 0) >= acknowledged for name in range(NAMES))
        assert find_values(other) == found
        assert other.task(task.task_id) == task
        other.put_value("x0", "n0", "by the second")


def test_a_database_that_stood_still_leaves_one_service_active(
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
    stack.enter_context(forked(database, ports[1], ports[0]))
    eventually(lambda: is_following(urls[1]))
    both = stack.enter_context(InfoClient(",".join(urls), TOKEN, timeout=60))
    both.put_producer(Producer("before", "x", 60.0))
    assert mariadb.process is not None
    mariadb.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: not _reads(urls[0]))  # it may have been replaced, for all that it knows
    finally:
        mariadb.process.send_signal(signal.SIGCONT)
    both.put_producer(Producer("after", "x", 60.0))
    assert [one.data_name for one in both.producers()] == ["after", "before"]
    eventually(lambda: any(is_ready(url, 60) for url in urls))  # an active one that stood still is not sure for a while
    assert not all(is_ready(url, 60) for url in urls)


def _reads(url: str) -> bool:
    with InfoClient(url, TOKEN, timeout=2.0, retries=0) as client, suppress(InfoError):
        client.producers()
        return True
    return False


def _has_stood_still(acknowledged: list[float]) -> bool:
    """Whether there was a long gap within the last second: what came before it may not be stored yet either."""
    gaps = [now - before for before, now in pairwise(acknowledged) if now > acknowledged[-1] - 1.0]
    return max(gaps, default=1.0) > 0.4


def test_with_ack_fast_only_the_last_second_may_be_lost(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_claim(monkeypatch, 60.0)
    database, ports = mariadb.new_database(), (free_port(), free_port())
    first, second = (f"http://127.0.0.1:{port}" for port in ports)
    fast = {"ack": Ack.FAST, "flush": FLUSH_SECONDS}
    pid = stack.enter_context(forked(database, ports[0], ports[1], **fast))
    eventually(lambda: is_ready(first))
    stack.enter_context(forked(database, ports[1], ports[0], **fast))
    eventually(lambda: is_following(second))
    client = InfoClient(first, TOKEN, timeout=60)
    client.put_producer(Producer("cpu", "x", 60.0))
    client.put_node("n1", "127.0.0.1:9")
    acknowledged: list[float] = []  # when each number was
    began = time.monotonic()
    while time.monotonic() < began + 2.5 or _has_stood_still(acknowledged):
        assert time.monotonic() < began + 120, "it stands still again and again"
        run = Run("cpu", Outcome.OK, 0.1, str(len(acknowledged)))
        with suppress(NotReady):
            client.report("n1", Report("boot", len(acknowledged) + 1, "1", (run,)))
            acknowledged.append(time.monotonic())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    _run(mariadb, database, GIVEN_BACK, "COMMIT")  # else the other one waits for the end of the claim
    eventually(lambda: is_ready(second))
    [row] = InfoClient(second, TOKEN, timeout=60).data("cpu")
    # By the last one, not by the kill: it comes late when this thread stands still before it.
    assert acknowledged[int(row.data_value or 0)] > acknowledged[-1] - 1.0


def test_a_service_that_ends_in_order_hands_over_at_once(
    mariadb: MariaDB,
    stack: ExitStack,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_claim(monkeypatch, 600.0)  # which nobody waits for
    database, port = mariadb.new_database(), free_port()
    second = f"http://127.0.0.1:{port}"
    with serving(database, shared_with=second) as first:
        stack.enter_context(forked(database, port, int(first.url.rpartition(":")[2])))
        eventually(lambda: is_following(second))
        first.client.put_producer(Producer("cpu", "x", 60.0))
    eventually(lambda: is_ready(second))
    assert [one.data_name for one in InfoClient(second, TOKEN).producers()] == ["cpu"]


def test_a_follower_without_the_key_of_the_active_one_is_refused(
    mariadb: MariaDB, stack: ExitStack, tmp_path: Path
) -> None:
    database = mariadb.new_database()
    active: Served = stack.enter_context(serving(database))
    key = tmp_path / "audit.key"
    settings = Settings(database=database, token=TOKEN, shared_with=active.url, audit_key=str(key))
    with pytest.raises(InvalidInput, match=f"copy audit.key and token .* to {tmp_path}"):
        open_in_turn(settings, "127.0.0.1", 0, lambda _said: None)
    assert not key.exists()


def test_one_of_a_pair_takes_over_with_the_key_of_the_other_one_only(mariadb: MariaDB, tmp_path: Path) -> None:
    database = mariadb.new_database()
    keys = [tmp_path / name / "audit.key" for name in ("first", "second")]
    for key in keys:
        key.parent.mkdir()
    with serving(database, shared_with="http://127.0.0.1:9", audit_key=str(keys[0])) as first:
        first.client.put_producer(Producer("cpu", "x", 60.0))
    with (
        pytest.raises(InvalidInput, match=f"copy audit.key and token .* to {keys[1].parent}"),
        serving(database, shared_with="http://127.0.0.1:9", audit_key=str(keys[1])),
    ):
        pass
    assert not keys[1].exists()


def test_a_follower_with_another_key_than_the_active_one_is_refused_at_its_start(
    mariadb: MariaDB, stack: ExitStack, tmp_path: Path
) -> None:
    database = mariadb.new_database()
    keys = [tmp_path / name / "audit.key" for name in ("first", "second")]
    for key in keys:
        key.parent.mkdir()
    key_from(keys[1], None)
    active: Served = stack.enter_context(serving(database, shared_with="http://127.0.0.1:9", audit_key=str(keys[0])))
    settings = Settings(database=database, token=TOKEN, shared_with=active.url, audit_key=str(keys[1]))
    said = f"with another key than the one in {keys[1]}: copy audit.key and token .* to {keys[1].parent}"
    with pytest.raises(InvalidInput, match=said):
        open_in_turn(settings, "127.0.0.1", 0, lambda _said: None)
    stack.close()  # and whoever comes second is, too
    with pytest.raises(InvalidInput, match=said):
        open_in_turn(settings, "127.0.0.1", 0, lambda _said: None)
    with serving(database, audit_key=str(keys[1])):  # one of its own may begin with a key of its own
        pass
    with serving(database, shared_with="http://127.0.0.1:9", audit_key=str(keys[1])):
        pass


@pytest.mark.parametrize(
    ("shared_with", "said"),
    [
        ("http://master2:8400/service", "is more than where one service listens: give http://HOST:PORT"),
        ("http://name:secret@master2:8400", "is more than where one service listens"),
        ("http://master1,master2", "is more than where one service listens"),
        ("http://127.0.0.1:9", "two services cannot share an SQLite file (--shared-with): give both the same MariaDB"),
        ("127.0.0.1:9", "'127.0.0.1:9' is not an address of an information service"),
    ],
)
def test_what_cannot_be_shared_is_refused_in_one_sentence(
    tmp_path: Path, sqlite_url: str, shared_with: str, said: str
) -> None:
    words = ["--port", "0", "--database", sqlite_url, "--shared-with", shared_with]
    with pytest.raises((InvalidInput, click.BadParameter)) as refused:
        serve.main(words, standalone_mode=False, obj=tmp_path)
    assert said in str(refused.value)
