"""The real service, for tests of what reads and writes there, and the board on a Hadoop that is played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from os import environ
from pathlib import Path
from typing import Any, TypeVar

import pytest
from flask import Flask, Response, request
from flask.testing import FlaskClient

from infosvc.access.roles import Caller
from infosvc.http.api.body import Fields, read
from infosvc.http.api.restx import error_response
from infosvc.http.openapi.document import add_described
from infosvc.http.openapi.examples import add_examples
from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Outcome, Role, State
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID, Task, TaskState
from jobs.dashboard import make_board
from jobs.dashboard.document import BOARD
from jobs.dashboard.sources import yarn
from jobs.dashboard.sources.site import Place, Site
from nodewise.board import board_calls
from tests.in_process import nodewise
from tests.jobs.decisions import WEIGHTS
from tests.jobs.played import Hadoop

R = TypeVar("R")
TOKEN = "a-token-for-the-tests"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InfoClient]:
    server = Server(Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=TOKEN), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    with InfoClient(server.url, TOKEN) as made:
        yield made
    server.stop()
    thread.join()


class Values:
    """A service that knows one capability, on every node, and one task, which was started twice."""

    def data(self, data_name: str) -> list[Datum]:
        if data_name != "weight":
            raise NotFound(f"no producer is registered under {data_name!r}", "data_name")
        return [
            Datum("weight", node, str(value), 1.0, 60.0, State.FRESH, Outcome.OK) for node, value in WEIGHTS.items()
        ]

    def viewer(self) -> Caller:
        return Caller("maria", Role.USER, user_name="maria")

    def read_body(self, record: type[R]) -> R:
        return read(record, Fields(request.get_json()))

    def tasks(self) -> dict[str, Task]:
        return {EXAMPLE_ID: self.task(EXAMPLE_ID)}

    def task(self, task_id: str) -> Task:
        if task_id == EXAMPLE_ID:
            return Task(EXAMPLE_ID, "maria", "mnist", TaskSpec(["train"]), TaskState.RUNNING, 1.0, 1.0, attempt=2)
        raise NotFound(f"no task has the id {task_id!r}", "task_id")


@pytest.fixture
def hadoop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hadoop]:
    patient = replace(yarn.STATUS_LIMITS, silence=60.0, seconds=60.0)
    monkeypatch.setattr(yarn, "STATUS_LIMITS", patient)  # 2 s may be too little for a busy machine
    monkeypatch.setattr("jobs.dashboard.calls.LISTING_WAIT_SECONDS", 60.0)  # and so may 3 s
    made = Hadoop()
    yield made
    made.close()


@pytest.fixture
def declared() -> dict[str, Role]:
    """Which role each view was declared with, by its name."""
    return {}


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: dict[str, Role]) -> FlaskClient:
    """The calls alone, on a home without a cluster."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "me")
    app = Flask("board")

    app.register_error_handler(Exception, _answer)
    for route, view in make_board(tmp_path, Values()).routes:
        declared[route.name] = route.role
        app.add_url_rule(f"/api/v1{route.rule}", route.name, view, methods=[route.method])
    return app.test_client()


def _answer(error: Exception) -> Response:
    return error_response(error)


@pytest.fixture
def known(board: FlaskClient, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """The calls on the cluster that is played."""
    http = f"http://{hadoop.address}"
    monkeypatch.setattr(Site, "place", lambda self: Place(self.home, http, http, "me"))
    return board


@pytest.fixture
def users_client(hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InfoClient]:
    """A user's client of a service that finds the Hadoop that is played."""
    http = f"http://{hadoop.address}"
    monkeypatch.setattr(Site, "place", lambda self: Place(self.home, http, http, "me"))
    settings = Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=TOKEN)
    server = Server(settings, "127.0.0.1", 0, others=[board_calls(tmp_path)])
    thread = threading.Thread(target=server.run)
    thread.start()
    with InfoClient(server.url, TOKEN) as admin:
        (tmp_path / "maria.token").write_text(admin.create_token("maria", Role.USER)[1])
        yield InfoClient.from_token_file(server.url, tmp_path / "maria.token")
    server.stop()
    thread.join()


@pytest.fixture
def users_command(users_client: InfoClient, tmp_path: Path) -> Callable[..., str]:
    """users_command(*WORDS): what `nodewise` prints to that user."""
    told = {"NODEWISE_URL": users_client.url, "NODEWISE_TOKEN_FILE": str(tmp_path / "maria.token")}

    def run(*words: str) -> str:
        done = nodewise("--home", str(tmp_path / "home"), *words, env=environ | told)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    return run


@pytest.fixture
def task_command(users_command: Callable[..., str]) -> Callable[..., str]:
    """task_command(*WORDS): what `nodewise task` prints."""
    return partial(users_command, "task")


@pytest.fixture
def queue_command(users_command: Callable[..., str]) -> Callable[..., str]:
    """queue_command(*WORDS): what `nodewise queue` prints."""
    return partial(users_command, "queue")


@pytest.fixture
def document() -> dict[str, Any]:
    """The board's part of the OpenAPI document."""
    made: dict[str, Any] = {"tags": [], "paths": {}, "definitions": {}}
    add_described(made, [deepcopy(BOARD)])
    add_examples(made)
    return made
