"""The real service, for tests of what reads and writes there.

Properties are checked without a time limit for each example: on a busy machine it would fail for no reason.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.client import InfoClient

TOKEN = "a-token-for-the-tests"

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InfoClient]:
    server = Server(Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=TOKEN), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    with InfoClient(server.url, TOKEN) as made:
        yield made
    server.stop()
    thread.join()
