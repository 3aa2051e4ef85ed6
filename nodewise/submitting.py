"""Keeps the submitter running beside the service: a process of its own, with a JVM and a token of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import click

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InfoError, Unauthorized
from infosvc.wire.records import Role
from infosvc.wire.service_options import read_token

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds until a submitter that has ended is started again; twice as many each time, unless it ran for long."""
CA_FILE = "NODEWISE_CA_FILE"


class SubmitterProcess:
    """Starts the submitter of the service at `url`, again whenever it ends; it ends with this process.

    `admin_file` holds the first admin's token, with which the submitter gets one of role submitter. Of an `other`
    service that may take over (else it is empty), jobs are told as well.
    """

    def __init__(self, home: Path, url: str, admin_file: Path, tls_cert: Path | None, other: str = "") -> None:
        self._home = home
        self._url = url
        self._jobs_url = ",".join(filter(None, (url, other)))
        self._admin_file = admin_file
        self._authority = os.environ.get(CA_FILE) or tls_cert
        self._token_file = admin_file.with_name("submitter.token")

    def start(self) -> None:
        """Go on in the background."""
        threading.Thread(target=self._keep, name="submitter", daemon=True).start()

    def _keep(self) -> NoReturn:
        pause = SHORTEST_PAUSE
        while True:
            begun = time.monotonic()
            try:
                self._ensure_token()
                _say(f"the submitter ended with exit code {self._run()}")
            except (InfoError, OSError) as error:
                _say(f"the submitter cannot start: {error}")
            lasted = time.monotonic() - begun
            pause = SHORTEST_PAUSE if lasted > LONGEST_PAUSE else min(LONGEST_PAUSE, 2 * pause)
            time.sleep(pause)

    def _run(self) -> int:
        """One life of the submitter; it ends when it hears that the pipe of its standard input was closed."""
        words = [sys.executable, "-m", "jobs.commands.submitter", "--home", str(self._home), "--url", self._url]
        words += ["--jobs-url", self._jobs_url, "--token-file", str(self._token_file)]
        words += ["--ca-file", str(self._authority)] if self._authority else []
        with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
            return process.wait()

    def _ensure_token(self) -> None:
        """Lay down a token of role submitter, unless there is one that the service knows."""
        try:
            if self._token_file.exists():
                self._client(self._token_file).tasks(limit=1)
                return
        except (Forbidden, Unauthorized):
            self._token_file.unlink()
        _, text = self._client(self._admin_file).create_token("submitter", Role.SUBMITTER)
        with open(self._token_file, "x", opener=_private) as file:
            file.write(f"{text}\n")

    def _client(self, token_file: Path) -> InfoClient:
        return InfoClient(self._url, read_token(self._home, token_file), ca_file=self._authority)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _say(line: str) -> None:
    click.echo(f"submitter: {line}", err=True)
