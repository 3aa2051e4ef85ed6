"""A real service to look at, and the command as people run it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infosvc.http.server import Server
from infosvc.settings import Settings
from tests.in_process import nodewise

TOKEN = "nw_admin_a-token-for-the-tests"
_OURS = ("NODEWISE_", "HADOOP_")

Serving = Callable[..., AbstractContextManager[str]]
Doctor = Callable[..., "Report"]


@dataclass(frozen=True)
class Report:
    """What one run of the command said with --json."""

    status: int
    body: dict[str, Any]

    def __getitem__(self, name: str) -> tuple[str, str, str]:
        """State, what and remedy of one check."""
        return next((f["state"], f["what"], f["remedy"]) for f in self.body["findings"] if f["name"] == name)


@contextmanager
def serving(database: Path, **settings: Any) -> Iterator[str]:
    """The URL of a running service, which waits for its disk also on a busy machine."""
    known = Settings(database=f"sqlite:///{database}", token=TOKEN, patience=60.0, **settings)
    server = Server(known, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join(120)
        assert not thread.is_alive()


@pytest.fixture
def serve(tmp_path: Path) -> Serving:
    """serve(**SETTINGS): a context manager with the URL of a running service."""
    return lambda **settings: serving(tmp_path / "infosvc.db", **settings)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def token(home: Path) -> Path:
    """The token file of this home."""
    path = home / "service" / "token"
    path.parent.mkdir(parents=True)
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def run(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """run(*WORDS, **ENVIRONMENT): one run of the command, of whose settings the machine's own have no say."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}

    def once(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return nodewise("doctor", *words, env=kept | {"NODEWISE_HOME": str(home)} | environment)

    return once


@pytest.fixture
def doctor(run: Callable[..., subprocess.CompletedProcess[str]]) -> Doctor:
    """doctor(*WORDS, **ENVIRONMENT): what the command found."""

    def once(*words: str, **environment: str) -> Report:
        done = run("--json", *words, **environment)
        assert done.stderr == ""
        return Report(done.returncode, json.loads(done.stdout))

    return once
