"""What is acknowledged has been forced onto the disk: of a real service, the kernel is asked."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Outcome, Producer, Report, Run
from tests.infosvc.conftest import TOKEN
from tests.ports import free_port

SERVICE = """
import sys
from infosvc.http.server import Server
from infosvc.settings import Settings
server = Server(Settings(database=sys.argv[1], token=sys.argv[2]), "127.0.0.1", int(sys.argv[3]))
server.run()
"""


class Watched:
    """A service whose calls of fsync and fdatasync are written down as they end, before it goes on."""

    def __init__(self, folder: Path) -> None:
        strace = shutil.which("strace")
        if strace is None:
            pytest.fail("strace is not installed: scripts/setup --dev")
        self._calls, port = folder / "calls", free_port()
        watch = [strace, "-f", "--seccomp-bpf", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o", str(self._calls)]
        serve = [sys.executable, "-c", SERVICE, f"sqlite:///{folder}/infosvc.db", TOKEN, str(port)]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen([*watch, *serve], stderr=log, start_new_session=True)
        self.client = InfoClient(f"http://127.0.0.1:{port}", TOKEN, timeout=60)

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            self.client.producers()
        except InfoError:
            return False
        return True

    def forced(self) -> int:
        """How often the database was forced onto the disk so far."""
        lines = self._calls.read_text().splitlines()
        return sum("infosvc.db" in line and line.endswith("= 0") for line in lines)

    def close(self) -> None:
        """End it."""
        os.killpg(self._process.pid, signal.SIGKILL)  # strace itself ends with what it watches, and not before
        self._process.wait(30)
        self.client.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    """A service on SQLite, as `nodewise serve` starts it."""
    made = Watched(tmp_path)
    try:
        deadline = time.monotonic() + 120
        while not made.is_ready():
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.05)
        yield made
    finally:
        made.close()


def test_every_acknowledged_change_and_report_was_forced_onto_the_disk_first(watched: Watched) -> None:
    client = watched.client
    client.put_producer(Producer("cpu", "x", 5.0))
    client.put_node("n1", "127.0.0.1:9")
    for number in range(1, 6):
        before = watched.forced()
        client.put_value("cpu", "n1", number)
        between = watched.forced()
        client.report("n1", Report("b", number, "1", (Run("cpu", Outcome.OK, 0.1, str(number)),)))
        assert before < between < watched.forced()
