"""Tokens: made once, kept as a hash, taken back at once."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.access.authenticator import Authenticator
from infosvc.access.roles import ANONYMOUS
from infosvc.access.tokens import agent_secrets
from infosvc.core.service import components_of
from infosvc.state.views import Latest
from infosvc.wire.errors import InvalidInput, NotFound, NotReady, Unauthorized
from infosvc.wire.records import Producer, Report, Role
from tests.in_process import nodewise

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Heard, Served, Serving

REPORT = {"boot": "b", "sequence": 1, "runs": []}


@pytest.fixture
def lite(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service on SQLite with one node, whose clock tests turn, and which waits for agents also on a busy machine."""
    with serve(sqlite_url, hands, notice_timeout=60.0) as service:
        service.client.put_node("n1", "127.0.0.1:9")
        yield service


def _latest(service: Served) -> Latest:
    found: Latest = components_of(service.server.app).latest
    return found


def _authenticator(service: Served) -> Authenticator:
    found: Authenticator = components_of(service.server.app).authenticator
    return found


def test_a_token_is_shown_once_and_kept_as_its_hash_alone(lite: Served, sqlite_url: str) -> None:
    token, text = lite.client.create_token("grafana", Role.READER)
    assert re.fullmatch(r"nw_reader_[A-Za-z0-9_-]{32,}", text)
    assert lite.client.tokens() == [token]
    assert text not in lite.ask("GET", "/api/v1/tokens").text
    assert text not in json.dumps(lite.ask("GET", "/api/v1/audit").json)
    files = list(Path(sqlite_url.removeprefix("sqlite:///")).parent.iterdir())
    assert all(text.encode() not in file.read_bytes() for file in files)
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as database:
        rows = database.execute("SELECT sha256 FROM t_Token").fetchall()
    database.close()
    assert rows == [(hashlib.sha256(text.encode()).hexdigest(),)]


def test_tokens_survive_a_restart(database: str, serve: Serving, hands: Hands) -> None:
    with serve(database, hands) as service:
        kept, text = service.client.create_token("a", Role.ADMIN, expires_in=60)
        gone, old = service.client.create_token("b", Role.ADMIN)
        service.client.revoke_token(gone.token_id)
    with serve(database, hands) as service:
        assert service.ask("PUT", "/api/v1/nodes/n1", {"address": "h:1"}, text).status == 201
        assert service.ask("GET", "/api/v1/nodes", None, old).error["code"] == "revoked"
        assert {token.token_id: bool(token.revoked_at) for token in service.client.tokens()} == {
            kept.token_id: False,
            gone.token_id: True,
        }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "reader"}, "name"),
        ({"name": "", "role": "reader"}, "name"),
        ({"name": "x" * 129, "role": "reader"}, "name"),
        ({"name": "a"}, "role"),
        ({"name": "a", "role": "root"}, "role"),
        ({"name": "a", "role": "agent"}, "node_name"),
        ({"name": "a", "role": "admin", "node_name": "n1"}, "node_name"),
        ({"name": "a", "role": "agent", "node_name": "a b"}, "node_name"),
        ({"name": "a", "role": "reader", "expires_in": 0}, "expires_in"),
        ({"name": "a", "role": "reader", "expires_in": "1d"}, "expires_in"),
        ({"name": "a", "role": "reader", "replace": 1}, "replace"),
    ],
)
def test_a_wrong_field_is_named(lite: Served, body: dict[str, Any], field: str) -> None:
    answer = lite.ask("POST", "/api/v1/tokens", body)
    assert (answer.status, answer.error["field"]) == (422, field)
    assert lite.client.tokens() == []


def test_a_revoked_token_is_refused_from_the_next_call_on(lite: Served) -> None:
    token, text = lite.client.create_token("a", Role.ADMIN)
    assert lite.ask("PUT", "/api/v1/nodes/n2", {"address": "h:1"}, text).status == 201
    lite.client.revoke_token(token.token_id)
    for method, path in [("PUT", "/api/v1/nodes/n3"), ("GET", "/api/v1/nodes"), ("GET", "/api/v1/data/x")]:
        answer = lite.ask(method, path, {"address": "h:1"}, text)
        assert (answer.status, answer.error["code"]) == (401, "revoked")
    lite.client.revoke_token(token.token_id)
    with pytest.raises(NotFound, match="token list"):
        lite.client.revoke_token("no-such-token")


def test_the_fast_lane_refuses_a_revoked_token_too(lite: Served) -> None:
    lite.client.put_producer(Producer("cpu", "x", 1))
    token, text = lite.client.create_token("a", Role.AGENT, "n1")
    path = "/api/v1/nodes/n1/report"
    assert lite.ask("POST", path, REPORT, text).status == lite.ask("GET", "/api/v1/data/cpu", None, text).status == 200
    lite.client.revoke_token(token.token_id)
    assert lite.ask("POST", path, REPORT, text).error["code"] == "revoked"
    assert lite.ask("GET", "/api/v1/data/cpu", None, text).error["code"] == "revoked"


def test_a_token_is_refused_when_its_time_is_over(lite: Served, hands: Hands) -> None:
    token, text = lite.client.create_token("a", Role.READER, expires_in=30)
    assert token.expires_at == token.created_at + 30
    hands.turn(29)
    assert lite.ask("GET", "/api/v1/nodes", None, text).status == 200
    hands.turn(1)
    answer = lite.ask("GET", "/api/v1/nodes", None, text)
    assert (answer.status, answer.error["code"]) == (401, "unauthorized")
    assert re.search(r"'a' expired at 2023-\d\d-\d\d \d\d:\d\d:\d\d UTC", answer.error["message"])


def test_forgetting_a_node_revokes_its_agents_token(lite: Served) -> None:
    _, text = lite.client.create_token("a", Role.AGENT, "n1")
    _, other = lite.client.create_token("b", Role.AGENT, "n2")
    assert lite.ask("POST", "/api/v1/nodes/n1/report", REPORT, text).status == 200
    lite.client.delete_node("n1")
    assert lite.ask("POST", "/api/v1/nodes/n1/report", REPORT, text).error["code"] == "revoked"
    lite.client.put_node("n1", "127.0.0.1:9")
    assert lite.ask("POST", "/api/v1/nodes/n1/report", REPORT, text).error["code"] == "revoked"
    assert lite.ask("GET", "/api/v1/nodes", None, other).status == 200


def test_a_new_agent_token_replaces_older_ones_only_when_asked(lite: Served, hands: Hands) -> None:
    _, first = lite.client.create_token("a", Role.AGENT, "n1")
    _, other = lite.client.create_token("a", Role.AGENT, "n2")
    hands.turn(1)
    _, second = lite.client.create_token("a", Role.AGENT, "n1")
    assert all(lite.ask("GET", "/api/v1/nodes", None, text).status == 200 for text in (first, second, other))
    _, reader = lite.client.create_token("a", Role.READER, "n1")
    hands.turn(1)
    _, third = lite.client.create_token("a", Role.AGENT, "n1", replace=True)
    for text in (first, second):
        assert lite.ask("GET", "/api/v1/nodes", None, text).error["code"] == "revoked"
    assert all(lite.ask("GET", "/api/v1/nodes", None, text).status == 200 for text in (third, other))
    assert lite.ask("GET", "/api/v1/nodes/n1", None, reader).status == 200


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_service_proves_itself_to_an_agent_by_the_hashes_of_its_tokens(lite: Served, hands: Hands) -> None:
    lite.client.create_token("a reader's token proves nothing", Role.READER, "n1")
    assert agent_secrets(_latest(lite).configuration, "n1") == []
    texts = []
    for _ in range(2):
        hands.turn(1)
        texts.append(lite.client.create_token("a", Role.AGENT, "n1")[1])
    assert agent_secrets(_latest(lite).configuration, "n1") == [_hash(texts[1]), _hash(texts[0])]
    lite.client.revoke_token(lite.client.tokens()[2].token_id)
    assert agent_secrets(_latest(lite).configuration, "n1") == [_hash(texts[0])]
    assert agent_secrets(_latest(lite).configuration, "n2") == []


def test_an_agent_that_still_holds_an_older_token_is_told_of_changes(
    lite: Served, hands: Hands, agent: Heard, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    texts = []
    for _ in range(3):
        hands.turn(1)
        texts.append(lite.client.create_token("a", Role.AGENT, "n1")[1])
    agent.believes = _hash(texts[0])
    lite.client.put_node("n1", agent.address)
    eventually(lambda: any(call.is_signed_with(_hash(texts[0])) for call in agent.calls))  # or one word does for both
    lite.client.put_producer(Producer("cpu", "x", 1))
    agent.answers["/api/v1/slots/cpu/log"] = {"runs": []}
    lite.client.put_slot("n1", "cpu", running=True)
    eventually(lambda: sum(call.is_signed_with(_hash(texts[0])) for call in agent.calls) >= 2)
    agent.calls.clear()
    assert lite.client.slot_log("n1", "cpu") == []
    logs = [call for call in agent.calls if call.path.endswith("/log")]
    assert [call.is_signed_with(_hash(text)) for call, text in zip(logs, reversed(texts), strict=True)] == [True] * 3
    agent.believes = _hash("nobody's")
    lite.client = type(lite.client)(lite.url, "a-token-for-the-tests", retries=0)
    with pytest.raises(NotReady, match="holds a token that the service does not know"):
        lite.client.slot_log("n1", "cpu")


def test_who_was_let_in_can_be_asked_about_again(lite: Served, hands: Hands) -> None:
    authenticator = _authenticator(lite)

    def let_in(text: str | None) -> Any:
        return authenticator.caller({"HTTP_AUTHORIZATION": f"Bearer {text}"} if text else {})

    token, text = lite.client.create_token("a", Role.READER)
    _, short = lite.client.create_token("b", Role.READER, expires_in=5)
    callers = [let_in(text), let_in(short), let_in("a-token-for-the-tests"), let_in(None)]
    assert callers[3] is ANONYMOUS
    assert [authenticator.still_valid(caller) for caller in callers] == [True, True, True, True]
    hands.turn(5)
    assert [authenticator.still_valid(caller) for caller in callers] == [True, False, True, True]
    lite.client.revoke_token(token.token_id)
    assert [authenticator.still_valid(caller) for caller in callers] == [False, False, True, True]


def test_a_token_that_begins_like_another_is_unknown(lite: Served) -> None:
    _, text = lite.client.create_token("a", Role.ADMIN)
    for wrong in (text[:-1], text + "x", hashlib.sha256(text.encode()).hexdigest(), text.swapcase()):
        assert lite.ask("GET", "/api/v1/nodes", None, wrong).error["code"] == "unauthorized"
    for kind in ("Basic", "Token", ""):
        answer = lite.ask("GET", "/api/v1/nodes", None, None, {"Authorization": f"{kind} {text}"})
        assert answer.status == 401, kind


def test_the_roles_of_the_client_are_those_of_its_token(lite: Served) -> None:
    from infosvc.wire.client import InfoClient

    _, text = lite.client.create_token("a", Role.AGENT, "n1")
    with InfoClient(lite.url, text) as agent:
        assert agent.report("n1", Report("b", 1)).wanted_version > 0
    with InfoClient(lite.url, "nw_admin_none") as nobody, pytest.raises(Unauthorized, match="does not know"):
        nobody.nodes()
    with pytest.raises(InvalidInput, match="node_name"):
        lite.client.create_token("a", Role.AGENT)


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(lite: Served, tmp_path: Path) -> Command:
    """command(*WORDS): one run of nodewise against `lite` as its first admin."""
    file = tmp_path / "admin"
    file.write_text("a-token-for-the-tests\n")
    file.chmod(0o600)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        service = ["--url", lite.url, "--token-file", str(file)]
        return nodewise("--home", str(tmp_path / "home"), *words, *service)

    return run


def test_the_commands_make_list_and_revoke(lite: Served, command: Command) -> None:
    made = command("token", "create", "yarn", "--role", "scheduler", "--expires-in", "30d")
    assert made.returncode == 0
    assert lite.ask("DELETE", "/api/v1/nodes/n1/slots/x", None, made.stdout.strip()).status == 404
    [listed] = json.loads(command("token", "list", "--json").stdout)
    assert (listed["name"], listed["role"]) == ("yarn", "scheduler")
    assert listed["expires_at"] - listed["created_at"] == 30 * 86_400
    revoked = command("token", "revoke", listed["token_id"], "none")
    assert (revoked.returncode, revoked.stdout) == (1, f"{listed['token_id']}: revoked\n")
    assert "no token has the id 'none'" in revoked.stderr
    assert re.search(rf"{listed['token_id']} +yarn +scheduler", command("token", "list").stdout)


def test_a_token_is_written_into_a_new_file_that_only_its_owner_reads(
    lite: Served, command: Command, tmp_path: Path
) -> None:
    out = tmp_path / "agent.token"
    words = ("token", "create", "n1", "--role", "agent", "--node", "n1", "--out", str(out), "--json")
    made = command(*words)
    text = out.read_text().strip()
    assert json.loads(made.stdout)["file"] == str(out) and text not in made.stdout
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert lite.ask("POST", "/api/v1/nodes/n1/report", REPORT, text).status == 200
    again = command(*words)
    assert (again.returncode, out.read_text().strip(), len(lite.client.tokens())) == (1, text, 1)
    assert "name a new file with --out" in again.stderr


def test_no_file_stays_behind_when_no_token_was_made(command: Command, tmp_path: Path) -> None:
    failed = command("token", "create", "x", "--role", "agent", "--out", str(tmp_path / "none"))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("Error: ") and "Traceback" not in failed.stderr
    assert not (tmp_path / "none").exists()
    assert command("token", "create", "x", "--role", "reader", "--expires-in", "soon").returncode == 2
