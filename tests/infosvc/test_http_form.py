"""The form of every answer: errors, tokens, and the document of all calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from infosvc.core.service import components_of
from infosvc.wire.errors import TooLarge, Unauthorized
from infosvc.wire.records import Producer
from tests.infosvc.conftest import serving

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving


@pytest.fixture
def small(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service that takes 2 kB bodies."""
    with serve(sqlite_url, max_body=2048) as service:
        service.client.put_producer(Producer("cpu", "x", 1))
        yield service


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose tests change nothing of it."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('refusing') / 'infosvc.db'}") as service:
        yield service


@pytest.mark.parametrize(
    "path", ["/nothing", "/api/v1/nothing", "/api/v1/producers/", "/api/v1/data/a/b/c", "/swaggerui/x"]
)
def test_an_unknown_path_is_answered_in_our_form(refusing: Served, path: str) -> None:
    answer = refusing.ask("GET", path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert "/api/v1/" in answer.error["message"]


def test_a_wrong_method_is_answered_in_our_form(small: Served) -> None:
    answer = small.ask("POST", "/api/v1/producers/cpu")
    assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")
    assert small.ask("PUT", "/healthz").status == 405


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        '"a"',
        "3",
        "null",
        '{"time_max": NaN}',
        '{"time_max": -Infinity}',
        '{"unit": "\\ud800"}',
        "[" * 1500,
    ],
)
def test_a_body_that_is_no_json_object_is_answered_with_400(refusing: Served, body: str) -> None:
    answer = refusing.ask("PUT", "/api/v1/producers/a", body)
    assert answer.status == 400
    assert answer.error["message"].startswith("the body is")


def test_a_body_that_is_too_large_is_answered_with_413(small: Served) -> None:
    with pytest.raises(TooLarge, match="2048 bytes"):
        small.client.put_value("cpu", "n1", "x" * 3000)


@pytest.mark.parametrize("token", [None, "", "wrong", "a-token-for-the-test", "é"])
def test_writing_needs_the_token(small: Served, token: str | None) -> None:
    for method, path in [
        ("PUT", "/api/v1/producers/a"),
        ("DELETE", "/api/v1/producers/cpu"),
        ("PUT", "/api/v1/nodes/n"),
        ("DELETE", "/api/v1/nodes/n"),
        ("POST", "/api/v1/nodes/n/report"),
        ("PUT", "/api/v1/nodes/n/slots/cpu"),
        ("DELETE", "/api/v1/nodes/n/slots/cpu"),
        ("PUT", "/api/v1/data/cpu/n"),
        ("DELETE", "/api/v1/data/cpu/n"),
    ]:
        answer = small.ask(method, path, {}, token)
        assert (answer.status, answer.error["code"]) == (401, "unauthorized")
        assert "--token-file" in answer.error["message"]
    assert [producer.data_name for producer in small.reader.producers()] == ["cpu"]


def test_the_client_says_what_is_missing_without_a_token(small: Served) -> None:
    with pytest.raises(Unauthorized, match="shows no token"):
        small.reader.put_value("cpu", "n1", 1)


def test_a_fault_of_our_own_shows_no_traceback(
    small: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    latest = components_of(small.server.app).latest
    monkeypatch.setattr(latest, "producers", lambda: [][0])
    answer = small.ask("GET", "/api/v1/producers")
    assert (answer.status, answer.error["code"]) == (500, "fault")
    assert "IndexError" not in answer.text
    assert "IndexError" in caplog.text


def test_a_fault_in_a_change_fails_that_change_only(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infosvc.http.api.nodes.put_node", lambda *_: [][0])
    assert small.ask("PUT", "/api/v1/nodes/n1", {"address": "h:1"}).status == 503
    small.client.put_value("cpu", "n1", 1)


def test_the_document_lists_every_call(small: Served) -> None:
    document = small.ask("GET", "/api/v1/swagger.json", token=None).json
    calls = {
        (path, method) for path, methods in document["paths"].items() for method in methods if method != "parameters"
    }
    assert calls == {
        ("/producers", "get"),
        *(("/producers/{data_name}", method) for method in ("get", "put", "delete")),
        *(("/tasks", method) for method in ("get", "post")),
        *(("/tasks/{task_id}", method) for method in ("get", "delete")),
        ("/tasks/{task_id}/stop", "post"),
        ("/tasks/{task_id}/again", "post"),
        ("/tasks/{task_id}/news", "put"),
        ("/tasks/starting", "get"),
        ("/tasks/gone", "get"),
        ("/tasks/gone/{task_id}", "delete"),
        ("/tasks/{task_id}/token", "post"),
        ("/tasks/{task_id}/progress", "put"),
        *(("/tasks/files/{sha256}", method) for method in ("get", "put")),
        ("/nodes", "get"),
        *(("/nodes/{node_name}", method) for method in ("get", "put", "delete")),
        ("/nodes/{node_name}/hour", "get"),
        ("/nodes/{node_name}/report", "post"),
        ("/nodes/{node_name}/slots", "get"),
        *(("/nodes/{node_name}/slots/{data_name}", method) for method in ("get", "put", "delete")),
        ("/nodes/{node_name}/slots/{data_name}/log", "get"),
        ("/data", "get"),
        ("/data/{data_name}", "get"),
        *(("/data/{data_name}/{node_name}", method) for method in ("get", "put", "delete")),
        ("/data/{data_name}/{node_name}/history", "get"),
        ("/data/{data_name}/{node_name}/hour", "get"),
        ("/data/{data_name}/*/hour", "get"),
        ("/explain", "get"),
        ("/events", "get"),
        *(("/tokens", method) for method in ("get", "post")),
        ("/tokens/{token_id}", "delete"),
        *(("/tunnels", method) for method in ("get", "post")),
        *(("/tunnels/{tunnel_id}", method) for method in ("get", "post", "delete")),
        *(("/alerts", method) for method in ("get", "post")),
        *(("/alerts/{alert_id}", method) for method in ("get", "delete")),
        ("/alerts/{alert_id}/test", "post"),
        *(("/audit", method) for method in ("get", "delete")),
        *(("/session", method) for method in ("get", "post", "delete")),
        ("/session/ticket", "post"),
    }
    assert document["basePath"] == "/api/v1"


def test_swagger_ui_comes_with_everything_it_loads(small: Served) -> None:
    page = small.ask("GET", "/api/v1/", token=None)
    assert page.status == 200 and "swagger-ui" in page.text
    assert "//cdn" not in page.text
    assert small.ask("GET", "/swaggerui/swagger-ui-bundle.js", token=None).status == 200
