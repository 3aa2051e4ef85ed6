"""`python -m jobs.kinds.train.launcher train.json`: starts a member in its container, and does for it what needs HDFS.

It tells the program where the application master is now, brings checkpoints to HDFS and back, and tells the application
master at once when the program has ended.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from jobs.kinds.train.carried import Carried
from jobs.kinds.train.launcher_settings import LauncherSettings
from jobs.kinds.train.where import Where
from jobs.worker.sessions import die_with_parent, signal_session, status_of
from learning.lead.calls import MEMBER, Doing, Say
from learning.member.surroundings import write

FOLDER = Path("training")
LOOPBACK = "127.0.0.1"
TICK_SECONDS = 0.1
LOOK_SECONDS = 1.0
HDFS_SECONDS = 60.0
"""How long HDFS may be away when the newest checkpoint is fetched, and when the last one is stored."""
END_SECONDS = 5.0
"""How long the program may take to end after SIGTERM."""
GOODBYE_SECONDS = 2.0
PYTHON = ("python", "python3")
ENDED_BY_SIGTERM = 143
"""What a process ends with that SIGTERM ended."""


class Failed(Exception):
    """The program could not be started; one sentence."""


def main(settings_file: str, environment: Mapping[str, str]) -> int:
    """The exit status of the program; 0 when the run has ended meanwhile, and 1 when it could not be started."""
    settings = LauncherSettings.from_json(json.loads(Path(settings_file).read_text()))
    process = environment["CONTAINER_ID"]
    (FOLDER / "checkpoints").mkdir(parents=True)
    where = Where(settings.master, FOLDER / "address")
    where.look()
    try:
        _check_host(environment.get("NM_HOST", LOOPBACK), where.address)
        carried = Carried(FOLDER / "checkpoints", f"{settings.output}/checkpoints")
        _fetch_newest(carried)
        return _run(settings, environment, process, _Carrier(where, carried))
    except Failed as error:
        print(error, flush=True)
        _say_failed(where, settings.token, process, str(error))
        return 1


def _check_host(host: str, master: str) -> None:
    """Failed when other nodes cannot reach this one by its name, although the application master has an own address."""
    if _is_loopback(host) and not _is_loopback(urlsplit(master).hostname or LOOPBACK):
        raise Failed(f"{host} is an address of this machine alone here: correct its line in /etc/hosts")


def _is_loopback(host: str) -> bool:
    try:
        return socket.gethostbyname(host).startswith("127.")
    except OSError:
        return False


def _fetch_newest(carried: Carried) -> None:
    """Before the program starts, as it looks for it; Failed when HDFS stays away."""
    until = time.monotonic() + HDFS_SECONDS
    while True:
        try:
            carried.fetch_newest()
            return
        except Exception as error:  # whatever the client raises
            if time.monotonic() > until:
                raise Failed(f"the newest checkpoint cannot be fetched from HDFS: {error}") from error
            print(f"the newest checkpoint cannot be fetched yet: {error}", flush=True)
            time.sleep(LOOK_SECONDS)


class _Carrier:
    """Speaks to HDFS in threads: one finds the application master, while the other may store a large checkpoint.

    `is_over` is whether the run has ended.
    """

    def __init__(self, where: Where, carried: Carried) -> None:
        self.where = where
        self.is_over = False
        self._carried = carried
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=work, name="HDFS", daemon=True) for work in (self._look_on, self._carry_on)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """The program has ended: store what it has left, for as long as HDFS may take."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        until = time.monotonic() + HDFS_SECONDS
        while not self._carry() and not self.is_over and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            self._look()

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            self.is_over = self.where.look()
        except OSError as error:
            print(f"the address of the application master cannot be kept: {error}", flush=True)

    def _carry_on(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(TICK_SECONDS):
            self._carried.serve()
            if time.monotonic() >= due:
                self._carry()
                due = time.monotonic() + LOOK_SECONDS

    def _carry(self) -> bool:
        """Whether HDFS has all checkpoints now."""
        try:
            return self._carried.carry()
        except OSError as error:
            print(f"the folder of checkpoints cannot be read: {error}", flush=True)
            return False


def _run(settings: LauncherSettings, environment: Mapping[str, str], process: str, carrier: _Carrier) -> int:
    """The exit status of the program; Failed when it cannot be started."""
    told = write(
        FOLDER.absolute() / "member.json",
        address_file=FOLDER.absolute() / "address",
        token=settings.token,
        process=process,
        host=environment.get("NM_HOST", LOOPBACK),
        checkpoints=FOLDER.absolute() / "checkpoints",
        sync=settings.sync,
    )
    early: list[int] = []  # SIGTERM while the program starts
    signal.signal(signal.SIGTERM, lambda number, _: early.append(number))
    argv = [sys.executable if settings.argv[0] in PYTHON else settings.argv[0], *settings.argv[1:]]
    try:
        program = subprocess.Popen(
            argv,
            env={**environment, **told},
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),  # YARN does not know its session
        )
    except OSError as error:
        raise Failed(f"{settings.argv[0]} cannot be started: {error.strerror}") from error
    try:
        signal.signal(signal.SIGTERM, _leave)
        if early:
            raise SystemExit(ENDED_BY_SIGTERM)
        carrier.start()
        status = _attend(program, carrier)
    finally:
        _end(program)
    if status:
        _say_failed(carrier.where, settings.token, process, f"the program ended with exit status {status}")
    carrier.finish()
    return status


def _attend(program: subprocess.Popen[bytes], carrier: _Carrier) -> int:
    """Until the program has ended, or its run; a signal's number counts from 128 on."""
    while (status := status_of(program)) is None:
        if carrier.is_over:
            print("the run has ended: its folder is not there any more", flush=True)
            return 0
        time.sleep(TICK_SECONDS)
    return status if status >= 0 else 128 - status


def _end(program: subprocess.Popen[bytes]) -> None:
    """End the program with all that it has started: SIGTERM, then SIGKILL."""
    try:
        if status_of(program) is None:
            signal_session(program, signal.SIGTERM)
            until = time.monotonic() + END_SECONDS
            while signal_session(program, 0) and time.monotonic() < until:
                time.sleep(TICK_SECONDS)
    finally:
        signal_session(program, signal.SIGKILL)
        program.wait()


def _leave(number: int, _: FrameType | None) -> None:
    """YARN ends the container."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(ENDED_BY_SIGTERM)


def _say_failed(where: Where, token: str, process: str, why: str) -> None:
    """At once: YARN would tell only seconds later."""
    parts = urlsplit(where.address)
    said = Say(process, Doing.FAILED, 0, -1, why=why).to_json()
    body = json.dumps(said, ensure_ascii=False).encode(errors="replace")  # names of programs may be any bytes
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=GOODBYE_SECONDS)
        connection.request("POST", MEMBER, body, headers)
        connection.getresponse().read()
        connection.close()
    except (OSError, http.client.HTTPException) as error:
        print(f"the application master could not be told: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ))
