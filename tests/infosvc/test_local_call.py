"""Open reading is for programs on this machine: not for who calls through a proxy, nor for pages of other sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infosvc.core.service import components_of
from infosvc.wire.records import Producer
from tests.in_process import nodewise

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

ADMIN = "a-token-for-the-tests"
PATHS = ("/api/v1/nodes", "/api/v1/data/cpu", "/api/v1/data/cpu?node=n1", "/metrics", "/api/v1/events?type=x")
Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def service(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service that anybody on this machine may read."""
    with serve(sqlite_url) as served:
        served.client.put_producer(Producer("cpu", "x", 1))
        yield served


PROXIED = {
    "Forwarded": "for=10.0.0.9",
    "Via": "1.1 front",
    "X-Forwarded-For": "10.0.0.9",
    "X-Forwarded-Host": "127.0.0.1",
    "X-Forwarded-Proto": "",
    "X-Real-IP": "127.0.0.1",
}


@pytest.mark.parametrize("header", PROXIED)
def test_who_calls_through_a_proxy_shows_a_token(service: Served, header: str) -> None:
    sent = {header: PROXIED[header]}
    for path in PATHS:
        answer = service.ask("GET", path, None, None, sent)
        assert answer.status == 401 and "comes through a proxy" in answer.error["message"], path
        assert service.ask("GET", path, None, ADMIN, sent).status in (200, 422), path
    assert service.ask("GET", "/api/v1/session", None, None, sent).json["role"] is None
    assert service.ask("GET", "/", None, None, sent).status == 200, "the dashboard's files hold no data"


@pytest.mark.parametrize(
    "sent", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}], ids=str
)
def test_a_page_of_another_site_reads_and_watches_nothing(service: Served, sent: dict[str, str]) -> None:
    for path in PATHS:
        answer = service.ask("GET", path, None, None, sent)
        assert answer.status == 401 and "page of another site" in answer.error["message"], path
        assert service.ask("GET", path, None, ADMIN, sent).status in (200, 422), path
    own = {"Sec-Fetch-Site": "same-origin", "Origin": service.url}
    assert service.ask("GET", PATHS[0], None, None, own).status == 200


def test_a_name_that_is_too_long_is_nobodys(service: Served) -> None:
    sent = {"Host": "localhost" + "." * 400 + "evil"}
    assert service.ask("GET", "/api/v1/data/cpu", None, None, sent).status in (400, 401)


def test_a_trusted_proxy_tells_whose_call_it_is(
    sqlite_url: str, serve: Serving, hands: Hands, eventually: Eventually
) -> None:
    with serve(sqlite_url, hands, refusals_per_second=1, trusted_proxies=("127.0.0.1", "10.0.0.2")) as service:
        said = {"X-Forwarded-For": "127.0.0.1, 10.0.0.9, 10.0.0.2"}
        answers = [service.ask("DELETE", "/api/v1/nodes/n1", None, "guess", said).status for _ in range(9)]
        assert answers[0] == 401 and answers[-1] == 429
        other = {"X-Forwarded-For": "10.0.0.8"}
        assert service.ask("DELETE", "/api/v1/nodes/n1", None, "guess", other).status == 401, "waits for nobody else"
        assert service.ask("GET", "/api/v1/nodes", None, None, other).status == 401, "still not of this machine"
        assert service.ask("PUT", "/api/v1/nodes/n1", {"address": "h:1"}, ADMIN, other).status == 201
        strange = {"X-Forwarded-For": "nobody"}
        assert service.ask("DELETE", "/api/v1/nodes/n1", None, ADMIN, strange).status == 204
        eventually(lambda: {one.address for one in service.client.audit()} >= {"10.0.0.9", "10.0.0.8", "127.0.0.1"})
        addresses = {one.call: one.address for one in service.client.audit() if one.status in (201, 204)}
        assert addresses == {"PUT /api/v1/nodes/n1": "10.0.0.8", "DELETE /api/v1/nodes/n1": "127.0.0.1"}


def test_a_proxy_that_is_not_trusted_tells_nothing(service: Served, eventually: Eventually) -> None:
    said = {"X-Forwarded-For": "10.0.0.9"}
    assert service.ask("DELETE", "/api/v1/nodes/n1", None, "guess", said).status == 401
    eventually(lambda: len(service.client.audit()) == 2)
    assert {one.address for one in service.client.audit()} == {"127.0.0.1"}


def test_spellings_of_one_token_take_no_memory(service: Served) -> None:
    authenticator = components_of(service.server.app).authenticator
    service.ask("GET", "/api/v1/nodes")
    known = len(authenticator._known)
    for blanks in range(2, 60):
        for kind in ("Bearer", "bearer", "BEARER"):
            sent = {"Authorization": f"{kind}{' ' * blanks}{ADMIN}"}
            assert service.ask("GET", "/api/v1/nodes", None, None, sent).status == 200
    assert len(authenticator._known) == known


def test_a_large_authorization_is_refused(service: Served) -> None:
    sent = {"Authorization": f"Bearer {' ' * 100_000}{ADMIN}"}
    for path in PATHS[:2]:
        answer = service.ask("GET", path, None, None, sent)
        assert (answer.status, answer.error["field"]) == (401, "Authorization")
        assert "has 100028 characters" in answer.error["message"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trusted-proxy", "front"), "give the address from which the proxy calls"),
        (("--name", "http://front"), "give it without scheme and port"),
        (("--name", "front:8400"), "give it without scheme and port"),
    ],
)
def test_serve_names_what_is_no_address_and_no_name(tmp_path: Path, words: tuple[str, str], said: str) -> None:
    found = nodewise("--home", str(tmp_path), "serve", *words)
    assert found.returncode == 2 and words[1] in found.stderr and said in " ".join(found.stderr.split())
