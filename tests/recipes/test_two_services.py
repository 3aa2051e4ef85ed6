"""Two services of one database, as the page starts them, of which one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from sqlalchemy import make_url

from tests.infosvc.conftest import MariaDB
from tests.ports import free_port
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed, stop

SCP = """shift
for last; do :; done
for one; do [ "$one" = "$last" ] || cp -p "{home}/${{one#master1:}}" "$last"; done"""


class Pair(NamedTuple):
    """Two operators' shells, and what differs there from the page."""

    shells: tuple[Shell, Shell]
    changes: tuple[tuple[str, str], ...]

    def start(self, commands: str, number: int, *more: tuple[str, str]) -> subprocess.Popen[str]:
        """Start the service of a recipe in the shell of this number."""
        return self.shells[number].start(changed(commands, *self.changes, *more))


@pytest.fixture
def pair(tmp_path: Path, mariadb: MariaDB) -> Iterator[Pair]:
    """Machines with the database's password, and an empty database."""
    url = make_url(mariadb.new_database())
    patient = {"NODEWISE_SERVICE_TIMEOUT": "60"}  # on a busy machine it may take longer than usual to take over
    shells = (
        Shell(tmp_path / "first", tmp_path / "work", patient),
        Shell(tmp_path / "second", tmp_path / "other", patient),
    )
    for shell in shells:
        (shell.home / "db-password").write_text(unquote(str(url.password)) + "\n")
    shells[1].program("scp", SCP.format(home=shells[0].home))
    where = f"{url.set(password=None).render_as_string()}"
    yield Pair(shells, (("mysql+pymysql://infosvc@db/infosvc", f"'{where}'"),))


@pytest.mark.timeout(900)  # on a busy machine each command takes many seconds
def test_the_second_service_goes_on_where_the_first_was_killed(pair: Pair) -> None:
    ports = free_port(), free_port()
    first, second = (f"http://127.0.0.1:{port}" for port in ports)
    callers = changed(block("pair-callers"), ("http://master1:8400,http://master2:8400", f"{first},{second}"))
    with ExitStack() as held:
        here = "--host master1", f"--host 127.0.0.1 --port {ports[0]}"
        active = pair.start(block("pair-first"), 0, here, ("http://master2:8400", second))
        held.callback(stop, active)
        assert active.stdout is not None
        assert active.stdout.readline().startswith(f"listening on {first}, database mysql+pymysql://infosvc")
        here = "--host master2", f"--host 127.0.0.1 --port {ports[1]}"
        other = pair.start(block("pair-second"), 1, here, ("http://master1:8400", first))
        held.callback(stop, other)
        assert other.stdout is not None
        assert other.stdout.readline() == f"following {first}, listening on {second}\n"

        assert "whichever is active" in pair.shells[1].run(callers)
        os.killpg(active.pid, signal.SIGKILL)
        export, *_, read = callers.splitlines()
        assert "whichever is active" in pair.shells[1].run(f"{export}\n{read}")

        assert other.stdout.readline().startswith(f"listening on {second}, database mysql+pymysql://infosvc")
        assert "whichever is active" in pair.shells[1].run(callers)
        assert "PUT /api/v1/data/note/worker1" in pair.shells[1].run(f"{export}\nnodewise audit list")
        assert "whole" in pair.shells[1].run(f"{export}\nnodewise audit verify")
