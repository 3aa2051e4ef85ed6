"""The key of the audit log, and what is left of a log that was pruned: both can be proven, and neither forged."""

from __future__ import annotations

import json
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from infosvc.access import audit
from infosvc.access.audit_chain import Chain
from infosvc.access.audit_key import AuditKey, key_from, read_key
from infosvc.core.service import components_of
from infosvc.state.transaction import Transaction
from infosvc.wire.answers import AuditEntry
from infosvc.wire.errors import InvalidInput
from tests.in_process import nodewise

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the service keeps its key."""
    return tmp_path / "audit.key"


@contextmanager
def _serving(serve: Serving, url: str, file: Path, hands: Hands | None = None) -> Iterator[Served]:
    with serve(url, hands, audit_key=str(file)) as service:
        yield service


def _enrol(service: Served, *names: str) -> None:
    for name in names:
        service.client.put_node(name, "127.0.0.1:9")


def _chain(service: Served, key: AuditKey | None, noted: tuple[int, str] | None = None) -> Chain:
    chain = Chain(noted, key)
    chain.follow(service.client.audit())
    chain.end()
    return chain


def _reseal(url: str, entries: list[AuditEntry], secret: bytes | None = None) -> None:
    """Write a log anew behind the service's back, each entry sealed with the one before it."""
    with sqlite3.connect(str(make_url(url).database), timeout=20) as lite:
        lite.execute("DELETE FROM t_Audit")
        before = audit.BEGINNING
        for number, entry in enumerate(entries, 1):
            numbered = replace(entry, sequence=number)
            sealed = replace(numbered, hash=audit.seal(numbered, before, secret))
            before = sealed.hash
            lite.execute("INSERT INTO t_Audit VALUES (?,?,?,?,?,?,?,?)", tuple(sealed.to_json().values()))
    lite.close()


def test_a_line_that_was_taken_out_shows_although_the_rest_is_sealed_anew(
    sqlite_url: str, serve: Serving, file: Path
) -> None:
    with _serving(serve, sqlite_url, file) as service:
        _enrol(service, "n1", "n2", "n3", "n4")
        key, entries = read_key(file), service.client.audit()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert _chain(service, key).broken is None
        unproven = _chain(service, None)
        assert (unproven.broken, unproven.unproven_from) == (None, 1), "who has no key is told so"
    for secret in (None, b"a guess"):
        _reseal(sqlite_url, entries[:1] + entries[2:], secret)
        with _serving(serve, sqlite_url, file) as service:
            assert _chain(service, key).broken == "entry 1 was changed, or the one before it was"
            _enrol(service, f"m{len(secret or b'')}")
            assert _chain(service, key).broken is not None


def test_a_log_without_a_key_goes_on_with_one(sqlite_url: str, serve: Serving, file: Path) -> None:
    with serve(sqlite_url) as service:
        _enrol(service, "n1", "n2", "n3")
    for name in ("n4", "n5"):
        with _serving(serve, sqlite_url, file) as service:
            _enrol(service, name)
            entries, key = service.client.audit(), read_key(file)
            assert key is not None and (key.since, key.before) == (4, entries[2].hash)
            whole = _chain(service, key)
            assert (whole.broken, whole.sequence) == (None, len(entries))
            assert _chain(service, None).unproven_from == 4
    forged = [replace(entry, who="somebody else") for entry in entries[:3]]
    for log, said in (
        (forged, "entry 3 is not the one after which the key of the log was made"),
        (forged[:2], "entry 2 is not the one after which the key of the log was made"),
        ([*forged, *entries[3:]], "entry 4 was changed, or the one before it was"),
    ):
        _reseal(sqlite_url, log)
        with _serving(serve, sqlite_url, file) as service:
            _enrol(service, f"m{len(log)}")
            assert _chain(service, key).broken == said


def test_a_log_that_ends_before_its_key_was_made_was_cut(sqlite_url: str, serve: Serving, file: Path) -> None:
    with serve(sqlite_url) as service:
        _enrol(service, "n1", "n2", "n3")
        entries = service.client.audit()
    key = key_from(file, entries[-1])
    for kept, broken in ((3, None), (2, "entries from 3 to 3 are missing: the log was cut short")):
        chain = Chain(None, key)
        chain.follow(entries[:kept])
        chain.end()
        assert chain.broken == broken


def test_a_key_that_others_can_read_or_that_is_none_is_refused(file: Path) -> None:
    key_from(file, None)
    file.chmod(0o640)
    with pytest.raises(InvalidInput, match="chmod 600"):
        key_from(file, None)
    file.chmod(0o600)
    file.write_text("1 2 3")
    with pytest.raises(InvalidInput, match="holds no key"):
        key_from(file, None)
    with pytest.raises(InvalidInput, match="token file"):
        key_from(file.parent / "away" / "audit.key", None)


def _sql(url: str, statement: str) -> None:
    with sqlite3.connect(str(make_url(url).database), timeout=20) as lite:
        lite.execute(statement)
    lite.close()


def test_a_pruned_log_can_be_proven_and_pruned_again(
    database: str, serve: Serving, file: Path, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infosvc.http.api.audit.MOST_PRUNED", 2)
    with _serving(serve, database, file, hands) as service:
        begun = hands.epoch + hands.now
        for name in ("n1", "n2", "n3", "n4", "n5"):
            _enrol(service, name)
            hands.turn(10)
        before = service.client.audit()
        key = read_key(file)
        assert service.client.prune_audit(begun + 25) == f"2:{before[1].hash}", "a part at a time"
        first = _chain(service, key)
        assert (first.broken, first.pruned_to) == (None, 2), "whoever prunes may be ended between two parts"
        assert service.client.prune_audit(begun + 25) == f"3:{before[2].hash}"
        assert service.client.prune_audit(begun + 25) is None
        left = service.client.audit()
        assert [entry.sequence for entry in left] == [4, 5, 6, 7]
        assert left[:2] == before[3:] and left[-1].detail == f"removed up to 3:{before[2].hash}"
        whole = _chain(service, key)
        assert (whole.broken, whole.sequence, whole.pruned_to) == (None, 7, 3)
        assert _chain(service, key, (3, before[2].hash)).broken is None, "noted before it was pruned"
        assert "not the one that was noted" in (_chain(service, key, (3, before[1].hash)).broken or "")
        hands.turn(10)
        while service.client.prune_audit(begun + 55):
            pass
        again = _chain(service, key)
        assert again.broken is None and again.pruned_to == 7
    with _serving(serve, database, file, hands) as service:
        _enrol(service, "n6")
        assert _chain(service, key).broken is None


def test_much_is_pruned_in_parts_for_which_reports_need_not_wait(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        parts = components_of(service.server.app)

        def fill(transaction: Transaction) -> None:
            for _ in range(4100):
                parts.audit_log.record(transaction, 1000.0, "somebody", "192.0.2.1", "PUT /api/v1/nodes/n1", 201)

        parts.writer.write(fill)
        removed = iter(lambda: service.client.prune_audit(2000.0), None)
        assert [int(last.partition(":")[0]) for last in removed] == [2000, 4000, 4100]


def test_nobody_prunes_behind_the_services_back(sqlite_url: str, serve: Serving, file: Path, hands: Hands) -> None:
    with _serving(serve, sqlite_url, file, hands) as service:
        _enrol(service, "n1", "n2", "n3", "n4")
        hands.turn(10)
        _enrol(service, "n5", "n6")
        service.client.prune_audit(hands.epoch + hands.now - 5)
        key = read_key(file)
        assert _chain(service, key).broken is None
        _sql(sqlite_url, "UPDATE t_Audit SET who = 'somebody else' WHERE sequence = 5")
        assert _chain(service, key).broken == "entry 5 was changed"
        _sql(sqlite_url, "DELETE FROM t_Audit WHERE sequence = 5")
        assert _chain(service, key).broken == "entry 1 is missing: entry 6 stands in its place"


@pytest.mark.parametrize("query", ["", "?before=x", "?before=9999999999"])
def test_what_may_go_must_be_said_and_be_past(sqlite_url: str, serve: Serving, query: str) -> None:
    with serve(sqlite_url) as service:
        answer = service.ask("DELETE", f"/api/v1/audit{query}")
        assert (answer.status, answer.error["field"]) == (422, "before")


def _command(service: Served, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    token = tmp_path / "token"
    token.write_text("a-token-for-the-tests\n")
    where = ["--url", service.url, "--token-file", str(token)]
    return nodewise("--home", str(tmp_path / "home"), "audit", *words, *where)


@pytest.mark.timeout(900)  # on a busy machine each command takes many seconds
def test_the_commands_prune_and_verify_with_the_key(
    sqlite_url: str, serve: Serving, file: Path, hands: Hands, tmp_path: Path
) -> None:
    with _serving(serve, sqlite_url, file, hands) as service:
        _enrol(service, "n1", "n2")
        hands.turn(10)
        _enrol(service, "n3")
        pruned = _command(service, tmp_path, "prune", "--before", str(int(hands.epoch + hands.now) - 5))
        assert (pruned.returncode, pruned.stdout[:27]) == (0, "removed the entries up to 2"), pruned.stderr
        whole = _command(service, tmp_path, "verify")
        assert whole.stdout.startswith("whole, 4 entries, those up to 2 pruned; the last is 4:k")
        noted = whole.stdout.split()[-1]
        file.rename(tmp_path / "safe")
        unproven = _command(service, tmp_path, "verify", "--noted", noted)
        assert unproven.returncode == 1 and "from 3 on are sealed with a key that is not here" in unproven.stderr
        said = _command(service, tmp_path, "verify", "--json", "--key-file", str(tmp_path / "safe"))
        found = json.loads(said.stdout)
        assert (found["pruned_to"], found["unproven_from"], found["broken"]) == (2, None, None)
