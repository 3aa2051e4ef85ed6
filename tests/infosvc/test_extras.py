"""What a service answers for others: mounted by whoever starts it, under the rules of all its calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from flask import Blueprint, Flask, g

from infosvc.access.roles import needs
from infosvc.commands.serve import serve
from infosvc.core.extras import EXTRAS
from infosvc.http.app import close_app, create_app
from infosvc.settings import Settings
from infosvc.wire.errors import InvalidInput, NotReady
from infosvc.wire.records import Role

ADMIN = "a-token-for-the-tests"
BEARER = {"Authorization": f"Bearer {ADMIN}"}


@needs(Role.READER)
def _who() -> str:
    return str(g.caller.name)


@needs(Role.READER)
def _away() -> str:
    raise NotReady("the cluster does not answer")


def _mount(app: Flask) -> None:
    """Three calls below /api/v1, beside those of the service."""
    extra = Blueprint("extra", __name__, url_prefix="/api/v1/extra")
    extra.add_url_rule("/who", "who", _who)
    extra.add_url_rule("/away", "away", _away)
    extra.add_url_rule("/undeclared", "undeclared", lambda: "for admins", methods=["GET", "POST"])
    app.register_blueprint(extra)


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Flask]:
    """An application with an extra, which nobody reads without a token."""
    made = create_app(Settings(database=sqlite_url, token=ADMIN, open_reading=False), extras=[_mount])
    yield made
    close_app(made)


def test_an_extra_is_answered_under_the_rules_of_all_calls(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/api/v1/extra/who").status_code == 401
    assert client.get("/api/v1/extra/who", headers=BEARER).text == "first admin"
    away = client.get("/api/v1/extra/away", headers=BEARER)
    assert (away.status_code, away.get_json()["error"]["code"]) == (503, "not_ready")
    assert client.get("/api/v1/extra/undeclared", headers=BEARER).status_code == 200
    assert client.get("/api/v1/extra/none", headers=BEARER).get_json()["error"]["code"] == "not_found"


def test_an_extra_knows_who_is_logged_in_and_takes_no_change_from_elsewhere(app: Flask) -> None:
    client = app.test_client()
    assert client.post("/api/v1/session", json={"token": ADMIN}).status_code == 204
    assert client.get("/api/v1/extra/who").text == "first admin"
    assert client.post("/api/v1/extra/undeclared").status_code == 403
    csrf = client.get("/api/v1/session").get_json()["csrf_token"]
    assert client.post("/api/v1/extra/undeclared", headers={"X-CSRF-Token": csrf}).status_code == 200


def test_an_extra_that_fails_leaves_the_database_to_the_next_start(sqlite_url: str) -> None:
    def broken(_app: Flask) -> None:
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        create_app(Settings(database=sqlite_url, token=ADMIN), extras=[broken])
    close_app(create_app(Settings(database=sqlite_url, token=ADMIN)))


class _Mounted(Exception):
    """Says that an extra was called, and ends the start of the service there."""


def test_the_command_mounts_what_its_context_holds(tmp_path: Path) -> None:
    def mount(app: Flask) -> None:
        raise _Mounted(app.name)

    context = click.Context(click.Group("front"), obj=tmp_path)
    context.meta[EXTRAS] = [mount]
    with pytest.raises(_Mounted, match="infosvc"):
        serve.main(["--port", "0"], standalone_mode=False, parent=context)
