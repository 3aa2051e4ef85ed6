"""What a service answers for others: calls that whoever starts it brings, under the rules of all its calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from flask import Flask, g

from infosvc.commands.serve import serve
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup, Route
from infosvc.http.api.exchange import record_call
from infosvc.http.app import close_app, create_app
from infosvc.http.calls import CALLS
from infosvc.settings import Settings
from infosvc.wire.errors import NotReady
from infosvc.wire.records import Role
from nodewise.serve import serve as whole
from nodewise.submitting import SubmitterProcess

ADMIN = "a-token-for-the-tests"
BEARER = {"Authorization": f"Bearer {ADMIN}"}


def _who() -> str:
    return str(g.caller.name)


def _away() -> str:
    raise NotReady("the cluster does not answer")


def _change() -> str:
    record_call()
    return "changed elsewhere"


EXTRA = CallGroup(
    "extra",
    routes=(
        Route("/api/v1/extra/who", "who", _who, Role.READER),
        Route("/api/v1/extra/away", "away", _away, Role.READER),
        Route("/api/v1/extra/change", "change", _change, Role.ADMIN, "POST"),
    ),
    document=lambda: {
        "tags": [{"name": "extra"}],
        "paths": {"/extra/who": {"get": {"tags": ["extra"], "responses": {"200": {"description": "who calls"}}}}},
    },
)


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Flask]:
    """An application with calls of others, which nobody reads without a token."""
    made = create_app(Settings(database=sqlite_url, token=ADMIN, open_reading=False), others=[EXTRA])
    yield made
    close_app(made)


def test_calls_of_others_are_answered_under_the_rules_of_all_calls(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/api/v1/extra/who").status_code == 401
    assert client.get("/api/v1/extra/who", headers=BEARER).text == "first admin"
    away = client.get("/api/v1/extra/away", headers=BEARER)
    assert (away.status_code, away.get_json()["error"]["code"]) == (503, "not_ready")
    assert client.post("/api/v1/extra/change", headers=BEARER).status_code == 200
    assert client.get("/api/v1/extra/none", headers=BEARER).get_json()["error"]["code"] == "not_found"


def test_calls_of_others_know_who_is_logged_in_and_take_no_change_from_elsewhere(app: Flask) -> None:
    client = app.test_client()
    assert client.post("/api/v1/session", json={"token": ADMIN}).status_code == 204
    assert client.get("/api/v1/extra/who").text == "first admin"
    assert client.post("/api/v1/extra/change").status_code == 403
    csrf = client.get("/api/v1/session").get_json()["csrf_token"]
    assert client.post("/api/v1/extra/change", headers={"X-CSRF-Token": csrf}).status_code == 200


def test_a_call_of_others_leaves_a_line_in_the_audit_log_by_asking_for_it(app: Flask) -> None:
    client = app.test_client()
    client.post("/api/v1/extra/change", headers=BEARER)
    client.get("/api/v1/extra/who", headers=BEARER)
    entries = client.get("/api/v1/audit", headers=BEARER).get_json()["entries"]
    assert [(one["who"], one["call"]) for one in entries] == [("first admin", "POST /api/v1/extra/change")]
    assert not components_of(app).latest.configuration.producers


def test_calls_of_others_stand_in_the_document_with_their_refusals(app: Flask) -> None:
    said = app.test_client().get("/api/v1/swagger.json", headers=BEARER).get_json()
    assert {"200", "401", "403", "429"} <= set(said["paths"]["/extra/who"]["get"]["responses"])
    assert "extra" in [tag["name"] for tag in said["tags"]]


def test_the_list_holds_everything_that_the_service_answers(sqlite_url: str) -> None:
    app = create_app(Settings(database=sqlite_url, token=ADMIN))
    try:
        listed = {route.rule for group in CALLS for route in group.routes}
        listed |= {f"/api/v1{group.namespace.path}" for group in CALLS if group.namespace}
        own = ("/api/v1/", "/api/v1/swagger.json")  # of Flask-RESTX, as is what begins with /swaggerui
        rules = {rule.rule for rule in app.url_map.iter_rules()} - set(own)
        outside = [rule for rule in rules if not any(rule == one or rule.startswith(f"{one}/") for one in listed)]
        assert [rule for rule in outside if not rule.startswith("/swaggerui/")] == []
        assert {"/api/v1/session", "/api/v1/explain", "/explain", "/metrics", "/healthz", "/readyz", "/"} <= listed
    finally:
        close_app(app)


def test_two_calls_of_one_name_are_refused_before_the_database_is_opened(sqlite_url: str) -> None:
    with pytest.raises(ValueError, match=r"two calls have the name extra\.who"):
        create_app(Settings(database=sqlite_url, token=ADMIN), others=[EXTRA, EXTRA])
    close_app(create_app(Settings(database=sqlite_url, token=ADMIN)))


class _Started(Exception):
    """Ends the start of the service there."""


def test_the_command_brings_the_calls_of_jobs_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[CallGroup] = []

    def start(*_given: object, others: list[CallGroup]) -> None:
        brought.extend(others)
        raise _Started

    monkeypatch.setattr("infosvc.http.server.Server", start)
    with pytest.raises(_Started):
        whole.main(["--port", "0"], standalone_mode=False, obj=tmp_path)
    assert [route.name for group in brought for route in group.routes if route.rule == "/api/v1/jobs"] == ["jobs"]
    own = [param.name for param in serve.params]
    assert [param.name for param in whole.params] == [*own, "submit", "submit_url", "open_paths"]


def test_the_submitter_asks_its_own_service_and_jobs_are_told_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    submitter = SubmitterProcess(tmp_path, "http://a:8400", tmp_path / "token", None, "http://b:8400")
    monkeypatch.setattr("sys.executable", "/bin/echo")
    assert submitter._run() == 0
    said = capfd.readouterr().out
    assert "--url http://a:8400 " in said
    assert "--jobs-url http://a:8400,http://b:8400 " in said
    words = ["--submit", "--submit-url", "http://a:8400,http://b:8400"]
    with pytest.raises(click.BadParameter, match="give the address of this one"):
        whole.main(words, standalone_mode=False, obj=tmp_path)


def test_the_service_alone_brings_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_given: object, others: tuple[CallGroup, ...]) -> None:
        assert others == ()
        raise _Started

    monkeypatch.setattr("infosvc.http.server.Server", start)
    with pytest.raises(_Started):
        serve.main(["--port", "0"], standalone_mode=False, obj=tmp_path)
    assert isinstance(serve, click.Command)
