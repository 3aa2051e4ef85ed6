"""What the audit log keeps of calls that change nothing: refused ones of each caller, and log-ins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from infosvc.access import noted_calls
from infosvc.access.audit import AuditLog
from infosvc.access.noted_calls import NotedCalls
from infosvc.state.configuration import Configuration
from infosvc.state.current_values import CurrentValues
from infosvc.state.transaction import Transaction
from infosvc.wire.records import Kind, Producer, Role

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Serving

Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is noted is stored soon."""
    monkeypatch.setattr(noted_calls, "PAUSE_IN_FLOOD_SECONDS", 0.05)
    monkeypatch.setattr(noted_calls, "PAUSE_SECONDS", 0.05)


def _from(address: str) -> dict[str, str]:
    return {"X-Forwarded-For": address}


@pytest.mark.usefixtures("hurry")
def test_a_flood_of_one_caller_hides_nothing_of_another(
    sqlite_url: str, serve: Serving, eventually: Eventually
) -> None:
    with serve(sqlite_url, refusals_per_second=0, trusted_proxies=("127.0.0.1",)) as service:
        _, reader = service.client.create_token("curious", Role.READER)
        for number in range(60):
            service.ask("GET", "/api/v1/nodes", None, f"guess {number}", _from("10.0.0.66"))
        service.ask("DELETE", "/api/v1/nodes/n1", None, "guess", _from("10.0.0.7"))
        service.ask("DELETE", "/api/v1/nodes/n2", None, reader, _from("10.0.0.66"))

        def lines() -> set[tuple[str, str, int, str]]:
            found = service.client.audit()
            return {(one.address, one.call, one.status, one.detail.partition(" ")[0]) for one in found}

        eventually(lambda: ("10.0.0.7", "DELETE /api/v1/nodes/n1", 401, "the") in lines())
        eventually(lambda: ("10.0.0.66", "DELETE /api/v1/nodes/n2", 403, "a") in lines())
        eventually(lambda: ("10.0.0.66", "", 429, "and") in lines())


class _Database:
    """Keeps what is written, in memory."""

    def __init__(self) -> None:
        self.transaction = Transaction(Configuration(), CurrentValues())

    def write(self, change: Callable[[Transaction], None]) -> None:
        change(self.transaction)


def test_a_flood_from_many_addresses_leaves_few_lines_and_loses_no_number(hands: Hands) -> None:
    database = _Database()
    noted = NotedCalls(database, hands.clock(), AuditLog())
    for number in range(3_000):
        noted.note("anonymous", f"2001:db8:0:{number:x}::{number:x}", "GET /", 401, "no")
        noted.note("anonymous", f"2001:db8:1:1::{number:x}", "GET /", 401, "no")
    for _ in range(50):
        noted.note("ada (1)", "10.0.0.1", "GET /", 403, "no", "1")
    noted.note("bob (2)", "10.0.0.2", "DELETE /", 403, "no", "2")
    noted.close()
    entries = database.transaction.audit
    named = [one for one in entries if one.call]
    assert len(entries) < 600 and sum(one.address.startswith("2001:db8:1:1:") for one in named) == 20
    assert sum(1 if one.call else int(one.detail.split()[1]) for one in entries) == 6_051
    assert [one.call for one in entries if one.who == "bob (2)"] == ["DELETE /"]
    ada = [one for one in entries if one.who == "ada (1)"]
    assert len([one for one in ada if one.call]) == 20, "a token's own flood is counted under its name"
    assert sum(int(one.detail.split()[1]) for one in ada if not one.call) == 30


@pytest.mark.usefixtures("hurry")
def test_log_in_and_log_out_leave_a_line(sqlite_url: str, serve: Serving, eventually: Eventually) -> None:
    with serve(sqlite_url) as service:
        token, text = service.client.create_token("ada", Role.READER)
        answer = service.ask("POST", "/api/v1/session", {"token": text}, None)
        cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
        csrf = {"X-CSRF-Token": service.ask("GET", "/api/v1/session", None, None, cookie).json["csrf_token"]}
        assert service.ask("DELETE", "/api/v1/session", None, None, cookie | csrf).status == 204
        assert service.ask("DELETE", "/api/v1/session", None, None, cookie | csrf).status == 204, "no session any more"
        eventually(lambda: len(service.client.audit()) == 3)
        lines = [(one.who, one.address, one.call, one.status) for one in service.client.audit()[1:]]
        ada = f"ada ({token.token_id})"
        assert lines == [(ada, "127.0.0.1", f"{method} /api/v1/session", 204) for method in ("POST", "DELETE")]
        assert text not in json.dumps([one.to_json() for one in service.client.audit()])


def test_the_line_of_a_value_holds_its_hash_and_length(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("text", "", 1, Kind.PROGRAM))
        body = json.dumps({"data_value": "x" * 3_000})
        assert service.ask("PUT", "/api/v1/data/text/n1", body).status == 201
        [line] = service.client.audit(1)
        said = {"bytes": len(body), "sha256": hashlib.sha256(body.encode()).hexdigest()}
        assert (line.call, line.status, json.loads(line.detail)) == ("PUT /api/v1/data/text/n1", 201, said)
