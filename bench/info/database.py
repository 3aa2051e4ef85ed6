"""A MariaDB of the bench's own, as Debian ships it, its files in one directory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pymysql

from bench.info.errors import BenchError
from bench.info.processes import await_ready, free_port, running

_WHERE = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def program() -> str | None:
    """The server's path; without it its figure stays empty."""
    return shutil.which("mariadbd", path=_WHERE)


@contextmanager
def mariadb(directory: Path) -> Iterator[str]:
    """The URL of an empty database without a password, until the block ends."""
    directory.mkdir()
    log, port = directory / "log", free_port()
    as_root = ["--user=root"] if os.getuid() == 0 else []
    # Each server clears its folder of temporary tables when it starts, also of those of another one in /tmp.
    where = [f"--datadir={directory / 'data'}", f"--tmpdir={directory}"]
    _install([*where, *as_root])
    argv = [
        str(program()),
        "--no-defaults",
        *where,
        *as_root,
        "--socket=socket",  # in the folder of its data, where it works: a whole path could be too long for a socket
        f"--pid-file={directory / 'pid'}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
    ]
    with running(argv, log) as process:
        await_ready(process, log, lambda: _answers(port))
        _make(port)
        yield f"mysql+pymysql://infosvc@127.0.0.1:{port}/infosvc"


def _install(options: list[str]) -> None:
    command = str(shutil.which("mariadb-install-db", path=_WHERE))
    more = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
    done = subprocess.run([command, *more, *options], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise BenchError(f"mariadb-install-db failed: {done.stderr[-600:]}")


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _make(port: int) -> None:
    connection = pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=60)
    with connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE infosvc")
        cursor.execute("CREATE USER infosvc@localhost")
        cursor.execute("GRANT ALL ON infosvc.* TO infosvc@localhost")
