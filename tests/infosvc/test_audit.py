"""The audit log: what it holds, what it never holds, and what shows when somebody touched it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pymysql
import pytest
from sqlalchemy import make_url

from infosvc.access import audit, noted_calls
from infosvc.access.audit import AuditLog
from infosvc.access.audit_chain import Chain
from infosvc.access.noted_calls import NotedCalls
from infosvc.state.configuration import Configuration
from infosvc.state.current_values import CurrentValues
from infosvc.state.transaction import Transaction
from infosvc.wire.answers import AuditEntry
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotReady
from infosvc.wire.records import Producer, Role
from tests.in_process import nodewise

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

Eventually = Callable[[Callable[[], bool]], None]


def _sql(url: str, *statements: str) -> None:
    """Change a database behind the service's back."""
    place = make_url(url)
    if place.get_backend_name() == "sqlite":
        with sqlite3.connect(str(place.database), timeout=20) as lite:
            for statement in statements:
                lite.execute(statement)
        lite.close()
        return
    with pymysql.connect(
        host=place.host, port=place.port or 0, user=place.username, password=str(place.password),
        database=place.database, autocommit=True,
    ) as my, my.cursor() as cursor:  # fmt: skip
        for statement in statements:
            cursor.execute(statement)


def _chain(client: InfoClient, noted: tuple[int, str] | None = None) -> Chain:
    """The whole log followed in pages of three."""
    chain = Chain(noted)
    while True:
        page = client.audit(chain.sequence, 3)
        if not page or not chain.follow(page):
            chain.end()
            return chain


def _change_eight_times(service: Served) -> Served:
    service.client.put_producer(Producer("cpu", "x", 0.1))
    service.client.put_node("n1", "127.0.0.1:9")
    for number in range(6):
        service.client.put_value("cpu", "n1", f"{number} \N{GREEK SMALL LETTER MU}")
    return service


@pytest.fixture
def changed(service: Served) -> Served:
    """A service on each kind of database after eight changes."""
    return _change_eight_times(service)


@pytest.fixture
def lite(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service on SQLite after eight changes."""
    with serve(sqlite_url) as service:
        yield _change_eight_times(service)


def test_every_change_and_every_refused_one_leaves_a_line(changed: Served, eventually: Eventually) -> None:
    _, text = changed.client.create_token("yarn", Role.SCHEDULER)
    assert changed.ask("PUT", "/api/v1/nodes/n1/slots/cpu", {"running": False}, text).status == 201
    changed.client.delete_node("n1")
    assert changed.ask("PUT", "/api/v1/nodes/n1", {}).status == 422
    eventually(lambda: len(changed.client.audit()) == 12)
    entries = changed.client.audit()
    assert [entry.sequence for entry in entries] == list(range(1, 13))
    assert [(entry.call, entry.status) for entry in entries[-5:]] == [
        ("PUT /api/v1/data/cpu/n1", 200),
        ("POST /api/v1/tokens", 201),
        ("PUT /api/v1/nodes/n1/slots/cpu", 201),
        ("DELETE /api/v1/nodes/n1", 204),
        ("PUT /api/v1/nodes/n1", 422),
    ]
    token = changed.client.tokens()[0]
    admin = "first admin"
    assert [entry.who for entry in entries[-4:]] == [admin, f"yarn ({token.token_id})", admin, admin]
    assert {entry.address for entry in entries} == {"127.0.0.1"}
    assert json.loads(entries[-3].detail) == {"running": False}
    assert _chain(changed.client).broken is None


def test_no_secret_gets_into_it(lite: Served, eventually: Eventually) -> None:
    _, text = lite.client.create_token("yarn", Role.READER)
    lite.ask("PUT", "/api/v1/nodes/n1", {"address": "h:1"}, text)
    lite.ask("GET", "/api/v1/nodes", None, "a-wrong-guess-of-a-token")
    eventually(lambda: [entry.status for entry in lite.client.audit()][-2:] == [403, 401])
    said = json.dumps([entry.to_json() for entry in lite.client.audit()])
    for secret in (text, "a-token-for-the-tests", "a-wrong-guess-of-a-token", "Bearer nw_"):
        assert secret not in said


def test_the_chain_goes_on_after_a_restart(database: str, serve: Serving) -> None:
    for number in range(3):
        with serve(database) as service:
            service.client.put_node(f"n{number}", "127.0.0.1:9")
            chain = _chain(service.client)
            assert (chain.broken, chain.sequence) == (None, number + 1)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE t_Audit SET detail = 'nothing' WHERE sequence = 5", "entry 5 was changed"),
        ("UPDATE t_Audit SET who = 'somebody else' WHERE sequence = 1", "entry 1 was changed"),
        ("UPDATE t_Audit SET at = at + 0.001 WHERE sequence = 8", "entry 8 was changed"),
        ("UPDATE t_Audit SET status = 403 WHERE sequence = 4", "entry 4 was changed"),
        ("DELETE FROM t_Audit WHERE sequence = 4", "entry 4 is missing"),
        ("DELETE FROM t_Audit WHERE sequence = 1", "entry 1 is missing"),
        ("DELETE FROM t_Audit WHERE sequence > 6", "entries from 7 to 8 are missing"),
        ("DELETE FROM t_Audit WHERE sequence = 8", "entries from 8 to 8 are missing"),
        ("DELETE FROM t_Audit", "entries from 1 to 8 are missing"),
    ],
)
def test_whoever_touches_it_is_found_out(lite: Served, sqlite_url: str, statement: str, said: str) -> None:
    assert _chain(lite.client).broken is None
    _sql(sqlite_url, statement)
    assert (_chain(lite.client).broken or "").startswith(said)
    lite.client.put_node("n2", "127.0.0.1:9")
    assert _chain(lite.client).broken is not None, "nor does the next change cover it up"


def test_an_end_that_was_written_anew_is_found_out(changed: Served, database: str) -> None:
    entries = changed.client.audit()
    forged = AuditEntry(**(entries[7].to_json() | {"who": "somebody else"}))
    _sql(database, f"UPDATE t_Audit SET who = 'somebody else', hash = '{audit.seal(forged, entries[6].hash)}' "
                   "WHERE sequence = 8")  # fmt: skip
    assert (_chain(changed.client).broken or "") == "entry 8 is not the one that the service wrote"


def test_what_was_noted_down_shows_a_log_that_was_cut_before_a_restart(database: str, serve: Serving) -> None:
    with serve(database) as service:
        for number in range(4):
            service.client.put_node(f"n{number}", "127.0.0.1:9")
        whole = _chain(service.client)
        noted = whole.sequence, whole.hash
    _sql(database, "DELETE FROM t_Audit WHERE sequence > 2")
    with serve(database) as service:
        assert _chain(service.client).broken is None
        assert _chain(service.client, noted).broken == "entries from 3 to 4 are missing: the log was cut short"
        for number in range(4):
            service.client.put_node(f"m{number}", "127.0.0.1:9")
        assert _chain(service.client).broken is None
        assert (_chain(service.client, noted).broken or "").startswith("entry 4 is not the one that was noted")


def test_pages_are_read_from_where_they_were_left(lite: Served) -> None:
    assert [entry.sequence for entry in lite.client.audit(2, 3)] == [3, 4, 5]
    assert [entry.sequence for entry in lite.client.audit(6, 3)] == [7, 8]
    assert lite.client.audit(8) == lite.client.audit(1000) == []


def test_refused_calls_are_noted_and_a_flood_of_them_is_counted(
    sqlite_url: str, serve: Serving, hands: Hands, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(noted_calls, "PAUSE_IN_FLOOD_SECONDS", 0.1)
    monkeypatch.setattr(noted_calls, "PAUSE_SECONDS", 0.1)
    with serve(sqlite_url, hands, refusals_per_second=5) as service:
        service.ask("GET", f"/api/v1/nodes?{'x' * 500}", None, "nonsense")
        eventually(lambda: len(service.client.audit()) == 1)
        first = service.client.audit()[0]
        assert (first.who, first.address, first.status) == ("anonymous", "127.0.0.1", 401)
        assert first.call == "GET /api/v1/nodes" and "does not know" in first.detail
        for _ in range(200):
            service.ask("DELETE", "/api/v1/nodes/n1", None, "nonsense")

        def counted() -> int:
            entries = service.client.audit()
            return sum(int(entry.detail.split()[1]) if entry.detail.startswith("and ") else 1 for entry in entries)

        eventually(lambda: counted() == 201)
        entries = service.client.audit()
        assert {entry.status for entry in entries} == {401, 429}
        assert len([entry for entry in entries if entry.who]) <= noted_calls.NOTED_AT_ONCE + 20
        assert _chain(service.client).broken is None


class _Away:
    """A database that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.back = threading.Event()
        self.entered = threading.Event()
        self.transaction = Transaction(Configuration(), CurrentValues())

    def write(self, change: Callable[[Transaction], None]) -> None:
        self.entered.set()
        if not self.back.wait(0.01):
            raise NotReady("away")
        change(self.transaction)


@pytest.fixture
def away(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[_Away, NotedCalls]]:
    """Noted calls before a database that is away, and one whose clock stands still."""
    monkeypatch.setattr(noted_calls, "PAUSE_IN_FLOOD_SECONDS", 0.01)
    monkeypatch.setattr(noted_calls, "PAUSE_SECONDS", 0.01)
    database = _Away()
    refusals = NotedCalls(database, hands.clock(), AuditLog())
    yield database, refusals
    database.back.set()
    refusals.close()


def test_who_is_refused_never_waits_for_the_database(away: tuple[_Away, NotedCalls], eventually: Eventually) -> None:
    database, refusals = away

    def flood() -> None:
        for _ in range(5_000):
            refusals.note("a", "1.2.3.4", "GET /", 401, "no")

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert database.entered.wait(60) and database.transaction.audit == []
    database.back.set()
    eventually(lambda: len(database.transaction.audit) > 0)
    refusals.close()
    entries = database.transaction.audit
    assert [entry.detail for entry in entries[:20]] == ["no"] * 20
    assert sum(int(entry.detail.split()[1]) for entry in entries[20:]) == 19_980


def test_what_waits_is_stored_when_the_service_ends(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        for number in range(5):
            service.ask("GET", "/api/v1/nodes", None, f"wrong {number}")
    with serve(sqlite_url) as service:
        assert [entry.status for entry in service.client.audit()] == [401] * 5


def test_a_change_that_was_not_stored_leaves_no_line(lite: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("infosvc.state.database.Database.save", lambda *_: [][0])
        assert lite.ask("PUT", "/api/v1/nodes/n9", {"address": "h:1"}).status == 503
    lite.client.put_node("n2", "127.0.0.1:9")
    assert [entry.call for entry in lite.client.audit(8)] == ["PUT /api/v1/nodes/n2"]
    assert _chain(lite.client).broken is None


def _command(service: Served, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "admin"
    file.write_text("a-token-for-the-tests\n")
    where = ["--url", service.url, "--token-file", str(file)]
    return nodewise("--home", str(tmp_path / "home"), "audit", *words, *where)


@pytest.mark.timeout(900)  # on a busy machine each command takes many seconds
def test_the_commands_list_and_verify(sqlite_url: str, serve: Serving, tmp_path: Path) -> None:
    with serve(sqlite_url) as service:
        for number in range(4):
            service.client.put_node(f"n{number}", "127.0.0.1:9")
        listed = json.loads(_command(service, tmp_path, "list", "--json", "--since", "1", "--limit", "2").stdout)
        assert [entry["sequence"] for entry in listed] == [2, 3]
        assert "PUT /api/v1/nodes/n3" in _command(service, tmp_path, "list").stdout
        whole = _command(service, tmp_path, "verify")
        assert (whole.returncode, whole.stdout[:17]) == (0, "whole, 4 entries;")
        noted = whole.stdout.split()[-1]
        assert _command(service, tmp_path, "verify", "--noted", noted).returncode == 0
        _sql(sqlite_url, "DELETE FROM t_Audit WHERE sequence = 3")
        broken = _command(service, tmp_path, "verify", "--json")
        assert (broken.returncode, json.loads(broken.stdout)["entries"]) == (1, 2)
        assert broken.stderr.startswith("Error: the audit log is not whole: entry 3 is missing")
        assert _command(service, tmp_path, "verify", "--noted", "x").returncode == 2
