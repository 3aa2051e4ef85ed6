"""Sessions: what a browser's cookie opens, what it does not, and when it ends."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.access import sessions
from infosvc.access.authenticator import Authenticator
from infosvc.access.csrf import check_change
from infosvc.access.roles import Caller
from infosvc.access.sessions import SECONDS, Sessions, cookie_name
from infosvc.core.service import components_of
from infosvc.wire.errors import Forbidden
from infosvc.wire.records import Producer, Role

if TYPE_CHECKING:
    from tests.infosvc.conftest import Answer, Hands, Served, Serving

ADMIN = "a-token-for-the-tests"
SESSION = "/api/v1/session"
NODE = "/api/v1/nodes/n1"
BODY = {"address": "127.0.0.1:9"}
NOBODY = {"name": "anonymous", "role": None, "csrf_token": None, "expires_at": None, "takes_tickets": False}
Eventually = Callable[[Callable[[], bool]], None]


class Browser:
    """Keeps a cookie and shows it with every call, as a browser does, and no token."""

    def __init__(self, service: Served) -> None:
        self._service = service
        self.cookie = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One call; header names have _ in place of -."""
        sent = {"Cookie": self.cookie} if self.cookie else {}
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        answer = self._service.ask(method, path, body, None, sent | named)
        for said in SimpleCookie(answer.headers.get("set-cookie", "")).values():
            self.cookie = f"{said.key}={said.value}" if said.value else ""
        return answer

    def log_in(self, token: str = ADMIN, **headers: str) -> Answer:
        """Show a token once."""
        return self.ask("POST", SESSION, {"token": token}, **headers)

    @property
    def who(self) -> Any:
        """What the service says about this session."""
        answer = self.ask("GET", SESSION)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        return answer.json

    def change(self, method: str = "PUT", path: str = NODE, body: Any = BODY, **headers: str) -> Answer:
        """A change as our own pages make it."""
        return self.ask(method, path, body, **{"X_CSRF_Token": str(self.who["csrf_token"])} | headers)


@pytest.fixture
def closed(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service on SQLite whose clock tests turn, and which nobody reads without a token."""
    with serve(sqlite_url, hands, open_reading=False) as service:
        yield service


@pytest.fixture
def browser(closed: Served) -> Browser:
    """A browser before that service."""
    return Browser(closed)


def _authenticator(service: Served) -> Authenticator:
    found: Authenticator = components_of(service.server.app).authenticator
    return found


def _session(service: Served, browser: Browser) -> sessions.Session | None:
    host = service.url.removeprefix("http://")
    return _authenticator(service).session({"HTTP_HOST": host, "HTTP_COOKIE": browser.cookie})


def _cookie_of(service: Served) -> str:
    return cookie_name({"HTTP_HOST": service.url.removeprefix("http://")})


def test_a_token_shown_once_becomes_a_session(closed: Served, browser: Browser, hands: Hands) -> None:
    token, text = closed.client.create_token("ada", Role.SCHEDULER)
    assert browser.who == NOBODY
    answer = browser.log_in(text)
    assert (answer.status, answer.text, answer.headers["cache-control"]) == (204, "", "no-store")
    said = browser.who
    assert said.pop("csrf_token")
    now = hands.epoch + hands.now
    who = {"name": f"ada ({token.token_id})", "role": "scheduler", "expires_at": now + SECONDS}
    assert said == who | {"takes_tickets": False}
    assert browser.ask("GET", "/api/v1/nodes").status == 200
    assert browser.ask("GET", "/api/v1/events", Last_Event_ID="x").status == 422, "also let in, and asked wrongly"


def test_the_cookie_is_kept_from_scripts_and_other_sites(browser: Browser, closed: Served) -> None:
    answer = browser.log_in()
    said = SimpleCookie(answer.headers["set-cookie"])[_cookie_of(closed)]
    assert (said["httponly"], said["samesite"], said["path"], said["domain"]) == (True, "Strict", "/", "")
    assert not said["secure"] and not said["max-age"] and not said["expires"]
    assert ADMIN not in answer.headers["set-cookie"]


def test_the_cookie_travels_encrypted_where_the_page_does(browser: Browser, closed: Served) -> None:
    host = closed.url.removeprefix("http://")
    answer = browser.log_in(Origin=f"https://{host}")
    name = f"__Host-{_cookie_of(closed)}"
    said = SimpleCookie(answer.headers["set-cookie"])[name]
    assert (said["secure"], said["path"], said["domain"]) == (True, "/", "")
    assert browser.who["role"] == "admin", "a proxy brings it over plain http"
    ended = browser.ask("DELETE", SESSION, Origin=f"https://{host}", X_CSRF_Token=browser.who["csrf_token"])
    assert ended.status == 204 and browser.who == NOBODY


def test_two_services_of_one_host_take_no_notice_of_each_other(closed: Served, browser: Browser) -> None:
    browser.log_in()
    other = f"nodewise_session_1={browser.cookie.partition('=')[2]}"
    for cookies, role in ((f"{other}; {browser.cookie}", "admin"), (other, None)):
        assert closed.ask("GET", SESSION, None, None, {"Cookie": cookies}).json["role"] == role


@pytest.mark.parametrize("wrong", ["\xff", "\xe9" * 40, '"', "=" * 3_000])
def test_headers_that_make_no_sense_are_refused_as_any(browser: Browser, closed: Served, wrong: str) -> None:
    assert browser.ask("GET", "/api/v1/nodes", Cookie=f"{_cookie_of(closed)}={wrong}").status == 401
    browser.log_in()
    assert browser.ask("PUT", NODE, BODY, X_CSRF_Token=wrong).status == 403
    assert browser.ask("PUT", NODE, BODY, Origin=wrong).status == 403


@pytest.mark.parametrize("open_reading", [True, False])
def test_nobody_is_a_reader_where_reading_is_open(sqlite_url: str, serve: Serving, open_reading: bool) -> None:
    with serve(sqlite_url, open_reading=open_reading) as service:
        browser = Browser(service)
        assert browser.who == NOBODY | {"role": "reader" if open_reading else None}
        assert browser.ask("GET", "/api/v1/nodes").status == (200 if open_reading else 401)
        browser.cookie = f"{_cookie_of(service)}=made-up"
        assert browser.who == NOBODY | {"role": "reader" if open_reading else None}
        assert browser.ask("GET", "/api/v1/nodes").status == (200 if open_reading else 401)
        assert browser.ask("PUT", NODE, BODY).status == 401


OWN = {f"{socket.gethostname()}:1": 200, socket.getfqdn().upper(): 200, "front.example.:1": 200}
HOSTS = (
    {"127.0.0.1:1": 200, "[::1]:1": 200, "localhost": 200, "LOCALHOST.:1": 200, "a.localhost:1": 200}
    | OWN
    | {
        "thishost:1": 401,
        "evil": 401,
        "wpad:8400": 401,
        "ai.": 401,
        "[evil]:1": 401,
        "evil.example:1": 401,
        "127.0.0.1.evil.example": 401,
        "localhost.evil.example.": 401,
    }
)


def test_a_strangers_name_for_this_machine_opens_nothing(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, names=("Front.example",)) as service:
        service.client.put_producer(Producer("cpu", "x", 1))
        for host, status in HOSTS.items():
            for path in ("/api/v1/nodes", "/api/v1/data/cpu", "/metrics"):
                assert service.ask("GET", path, None, None, {"Host": host}).status == status, host
                assert service.ask("GET", path, None, ADMIN, {"Host": host}).status == 200, host
            said = service.ask("GET", SESSION, None, None, {"Host": host}).json
            assert said == NOBODY | {"role": "reader" if status == 200 else None}


@pytest.mark.parametrize("shown", ["wrong", f"{ADMIN}x", ADMIN[:-1], f"Bearer {ADMIN}", "nw_admin_" + "x" * 43])
def test_a_wrong_token_begins_nothing(browser: Browser, closed: Served, eventually: Eventually, shown: str) -> None:
    answer = browser.log_in(shown)
    assert (answer.status, answer.error["code"], answer.error["field"]) == (401, "unauthorized", "token")
    assert "set-cookie" not in answer.headers and shown not in answer.text
    eventually(lambda: len(closed.client.audit()) == 1)
    entry = closed.client.audit()[0]
    assert (entry.who, entry.call, entry.status) == ("anonymous", f"POST {SESSION}", 401)
    assert shown not in json.dumps(entry.to_json())


def test_guesses_are_slowed_down_as_those_of_any_call(sqlite_url: str, serve: Serving, hands: Hands) -> None:
    with serve(sqlite_url, hands, refusals_per_second=2) as service:
        browser = Browser(service)
        answers = [browser.log_in(f"guess {number}") for number in range(12)]
        assert {answer.status for answer in answers[:4]} == {401} and answers[-1].status == 429
        assert browser.log_in().status == 429, "also the right token has to wait"
        assert service.ask("GET", "/api/v1/nodes", None, "another").status == 429
        hands.turn(1)
        assert browser.log_in().status == 204


@pytest.mark.parametrize("body", [{}, {"token": ""}, {"token": " "}, {"token": 7}, {"token": "x" * 1025}])
def test_a_body_without_a_token_is_refused_and_not_repeated(browser: Browser, body: dict[str, Any]) -> None:
    answer = browser.ask("POST", SESSION, body)
    assert (answer.status, answer.error["field"]) == (422, "token")
    assert "xxx" not in answer.text
    assert browser.ask("POST", SESSION, "no JSON").status == 400


def test_a_stranger_sends_no_large_bodies(browser: Browser) -> None:
    answer = browser.log_in("x" * 5_000)
    assert (answer.status, answer.error["code"]) == (413, "too_large")
    assert "4096 bytes" in answer.error["message"]


def test_changes_by_cookie_carry_the_sessions_csrf_token(closed: Served, browser: Browser) -> None:
    browser.log_in()
    other = Browser(closed)
    other.log_in()
    for wrong in ({}, {"X_CSRF_Token": ""}, {"X_CSRF_Token": "wrong"}, {"X_CSRF_Token": other.who["csrf_token"]}):
        for method, path in (("PUT", NODE), ("DELETE", NODE), ("POST", "/api/v1/tokens"), ("DELETE", SESSION)):
            answer = browser.ask(method, path, BODY, **wrong)
            assert (answer.status, answer.error["field"]) == (403, "X-CSRF-Token"), (method, path, wrong)
    assert closed.client.nodes() == [] and closed.client.tokens() == []
    assert browser.change().status == 201
    assert browser.ask("GET", "/api/v1/nodes").status == 200


def test_no_report_comes_in_by_cookie_alone(closed: Served, browser: Browser) -> None:
    closed.client.put_node("n1", "127.0.0.1:9")
    report = {"boot": "b", "sequence": 1, "runs": []}
    for token in (ADMIN, closed.client.create_token("a", Role.AGENT, "n1")[1]):
        browser.log_in(token)
        answer = browser.ask("POST", f"{NODE}/report", report)
        assert (answer.status, answer.error["field"]) == (403, "X-CSRF-Token")
        assert browser.change("POST", f"{NODE}/report", report).status == 200


def test_the_fast_lane_lets_a_session_read(closed: Served, browser: Browser) -> None:
    closed.client.put_producer(Producer("cpu", "x", 1))
    assert browser.ask("GET", "/api/v1/data/cpu").status == 401
    browser.log_in()
    assert browser.ask("GET", "/api/v1/data/cpu").status == 200


FOREIGN = [
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Sec_Fetch_Site": "none"},
    {"Origin": "https://example.com"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Origin": "https://example.com", "Sec_Fetch_Site": "same-origin"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_other_sites_make_no_changes_and_log_nobody_in(
    closed: Served, browser: Browser, headers: dict[str, str]
) -> None:
    assert browser.log_in(**headers).status == 403 and browser.cookie == ""
    browser.log_in()
    for method, path in (("PUT", NODE), ("DELETE", SESSION)):
        answer = browser.change(method, path, **headers)
        assert (answer.status, answer.error["code"]) == (403, "forbidden")
    assert closed.client.nodes() == [] and browser.who["name"] == "first admin"
    assert browser.ask("GET", "/api/v1/nodes", **headers).status == 200, "browsers show no answer to other sites"


def test_our_own_origin_may_change_things(closed: Served, browser: Browser) -> None:
    own = {"Origin": closed.url, "Sec_Fetch_Site": "same-origin"}
    assert browser.log_in(**own).status == 204
    assert browser.change(**own).status == 201
    assert browser.change(Origin=closed.url.replace("http:", "https:")).status == 200, "a proxy speaks https for us"


def test_where_we_speak_https_no_unencrypted_page_is_ours() -> None:
    call = {"REQUEST_METHOD": "PUT", "HTTP_HOST": "a:1", "wsgi.url_scheme": "https", "HTTP_X_CSRF_TOKEN": "t"}
    check_change(call | {"HTTP_ORIGIN": "https://A:1"}, "t")
    with pytest.raises(Forbidden, match="Origin is 'http://a:1'"):
        check_change(call | {"HTTP_ORIGIN": "http://a:1"}, "t")


def test_a_token_in_the_header_wins_over_the_cookie(closed: Served, browser: Browser) -> None:
    _, reader = closed.client.create_token("r", Role.READER)
    browser.log_in()
    csrf = browser.who["csrf_token"]
    as_reader = browser.ask("PUT", NODE, BODY, X_CSRF_Token=csrf, Authorization=f"Bearer {reader}")
    assert (as_reader.status, as_reader.error["code"]) == (403, "forbidden")
    assert browser.ask("GET", "/api/v1/nodes", Authorization="Bearer wrong").status == 401
    browser.log_in(reader)
    elsewhere = {"Origin": "https://example.com"}
    assert browser.ask("PUT", NODE, BODY, Authorization=f"Bearer {ADMIN}", **elsewhere).status == 201


@pytest.mark.parametrize("role", [Role.READER, Role.PROCESSOR, Role.SCHEDULER])
def test_a_session_may_do_what_its_token_may(closed: Served, browser: Browser, role: Role) -> None:
    closed.client.put_node("n1", "127.0.0.1:9")
    closed.client.put_producer(Producer("cpu", "x", 1))
    browser.log_in(closed.client.create_token("viewer", role)[1])
    calls = {
        Role.PROCESSOR: browser.change("PUT", "/api/v1/data/cpu/n1", {"data_value": "1"}).status,
        Role.SCHEDULER: browser.change("PUT", f"{NODE}/slots/cpu", {"running": False}).status,
        Role.ADMIN: browser.change("DELETE", "/api/v1/producers/cpu").status,
    }
    if role is Role.READER:
        assert set(calls.values()) == {403}
    assert (calls[Role.PROCESSOR] < 300) == (role is not Role.READER)
    assert (calls[Role.SCHEDULER] < 300) == (role is Role.SCHEDULER)
    assert calls[Role.ADMIN] == 403
    assert browser.ask("GET", "/api/v1/tokens").status == 403


def test_the_audit_log_names_the_persons_token(closed: Served, browser: Browser, eventually: Eventually) -> None:
    token, text = closed.client.create_token("ada", Role.ADMIN)
    browser.log_in(text)
    assert browser.change().status == 201
    [entry] = [each for each in closed.client.audit() if each.call == f"PUT {NODE}"]  # others are noted later
    assert (entry.who, entry.status) == (f"ada ({token.token_id})", 201)
    browser.ask("DELETE", NODE)
    browser.change("PUT", NODE, {})
    eventually(lambda: [each.status for each in closed.client.audit()][-2:] == [403, 422])
    assert {each.who for each in closed.client.audit()[-2:]} == {f"ada ({token.token_id})"}
    said = json.dumps([each.to_json() for each in closed.client.audit()])
    assert text not in said and browser.cookie.partition("=")[2] not in said


def test_a_session_ends_with_its_token(closed: Served, browser: Browser, hands: Hands) -> None:
    gone, text = closed.client.create_token("a", Role.ADMIN)
    browser.log_in(text)
    caller = _session(closed, browser)
    assert caller is not None and _authenticator(closed).still_valid(caller.caller)
    closed.client.revoke_token(gone.token_id)
    assert not _authenticator(closed).still_valid(caller.caller), "streams of events end too"
    assert browser.ask("GET", "/api/v1/nodes").status == browser.ask("PUT", NODE, BODY).status == 401
    assert browser.who == NOBODY
    revoked = browser.log_in(text)
    assert (revoked.status, revoked.error["code"], revoked.error["field"]) == (401, "revoked", "token")
    browser.log_in(closed.client.create_token("b", Role.READER, expires_in=60)[1])
    assert browser.who["expires_at"] == hands.epoch + hands.now + 60
    hands.turn(59)
    assert browser.ask("GET", "/api/v1/nodes").status == 200
    hands.turn(1)
    assert browser.ask("GET", "/api/v1/nodes").status == 401 and browser.who == NOBODY


def test_a_session_ends_after_twelve_hours(
    closed: Served, browser: Browser, hands: Hands, eventually: Eventually
) -> None:
    browser.log_in()
    found = _session(closed, browser)
    hands.turn(SECONDS - 1)
    assert browser.who["role"] == "admin"
    eventually(lambda: browser.change().status == 201)  # a commit that was under way seems to have taken hours
    hands.turn(1)
    assert browser.who == NOBODY
    assert browser.ask("GET", "/api/v1/nodes").status == 401
    assert found is not None and not _authenticator(closed).still_valid(found.caller)


def test_logging_out_ends_the_session_itself(closed: Served, browser: Browser) -> None:
    browser.log_in()
    kept, csrf = browser.cookie, browser.who["csrf_token"]
    answer = browser.change("DELETE", SESSION, None)
    assert (answer.status, browser.cookie) == (204, "")
    browser.cookie = kept
    assert browser.who == NOBODY
    assert browser.ask("PUT", NODE, BODY, X_CSRF_Token=csrf).status == 401
    assert browser.ask("DELETE", SESSION).status == Browser(closed).ask("DELETE", SESSION).status == 204


def test_logging_in_again_ends_the_session_before(browser: Browser) -> None:
    browser.log_in()
    before = browser.cookie
    browser.log_in()
    assert browser.cookie != before
    browser.cookie = before
    assert browser.who == NOBODY


def test_sessions_do_not_outlive_the_service(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, open_reading=False) as service:
        browser = Browser(service)
        browser.log_in()
    with serve(sqlite_url, open_reading=False) as service:
        after = Browser(service)
        after.cookie = browser.cookie
        assert after.who == NOBODY


def _caller(token_id: str) -> Caller:
    return Caller(token_id, Role.READER, None, token_id)


def test_one_token_has_so_many_sessions_and_the_oldest_gives_way(hands: Hands) -> None:
    held = Sessions(hands.clock())
    other, _ = held.begin(_caller("other"), None)
    texts = [held.begin(_caller("a"), None)[0] for _ in range(sessions.MOST_OF_ONE + 2)]
    assert [held.find(text) is None for text in texts] == [True] * 2 + [False] * sessions.MOST_OF_ONE
    assert held.find(other) is not None


def test_there_are_only_so_many_sessions(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST", 5)
    held = Sessions(hands.clock())
    short, _ = held.begin(_caller("short"), hands.epoch + hands.now + 1)
    texts = [held.begin(_caller(str(number)), None)[0] for number in range(4)]
    hands.turn(1)
    held.begin(_caller("e"), None)
    assert held.find(short) is None and all(held.find(text) for text in texts), "what is over gives way first"
    held.begin(_caller("f"), None)
    assert len(held) == 5 and held.find(texts[0]) is None


def test_what_is_kept_is_no_cookie(hands: Hands) -> None:
    held = Sessions(hands.clock())
    text, session = held.begin(_caller("a"), None)
    assert text not in repr(vars(held)) and session.caller.session == hashlib.sha256(text.encode()).hexdigest()
    assert held.find(session.caller.session) is None
