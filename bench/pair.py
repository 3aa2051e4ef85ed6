"""Two information services on one MariaDB, of which one is active and the other takes over."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.info.errors import BenchError
from bench.info.processes import END_SECONDS, ROOT, await_ready, clean_environment, end
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotReady

LOOK_SECONDS = 2.0
"""Patience with a service that is asked whether it is active: it may stand still."""
SECRETS = ("token", "audit.key")
"""What both have alike."""


@dataclass
class Member:
    """One of the two: its home, its address (host and port), and its process when it was started."""

    home: Path
    host: str
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What it says."""
        return self.home / "service.log"

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://{self.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether its process has not ended."""
        return self.process is not None and self.process.poll() is None


class Pair:
    """The two services of a database, which are started in turn and end with `end`."""

    def __init__(self, database: str, members: Sequence[Member]) -> None:
        self.first, self.second = members
        self._database = database

    @property
    def members(self) -> tuple[Member, Member]:
        """Both."""
        return self.first, self.second

    @property
    def url(self) -> str:
        """Both addresses, as callers name them."""
        return ",".join(one.url for one in self.members)

    @property
    def is_whole(self) -> bool:
        """Whether both run."""
        return all(one.is_running for one in self.members)

    def client(self, seconds: float, retries: int = 2) -> InfoClient:
        """The pair as its admin calls it."""
        return InfoClient(self.url, self._token(), seconds, retries=retries)

    def start(self) -> None:
        """Start what does not run, and wait until one is active and the other follows; BenchError when one ends."""
        for one in self.members:
            if not one.is_running:
                self._share_secrets(one)
                await_ready(self._begin(one), one.log, partial(self._answers, one))
        for one in self.members:
            if one.process is not None:
                await_ready(one.process, one.log, self._is_ready)

    def find_active(self) -> Member | None:
        """The one that answers for itself; None while there is no such one."""
        return next((one for one in self.members if one.is_running and self._ask(one) == "active"), None)

    def other(self, member: Member) -> Member:
        """The one that is not this one."""
        return self.second if member is self.first else self.first

    def end(self) -> None:
        """End both; what is stored stays."""
        for one in reversed(self.members):  # the active one has nobody to hand over to
            if one.process is not None:
                end(one.process)

    def _is_ready(self) -> bool:
        return sorted(self._ask(one) for one in self.members) == ["active", "follows"]

    def _ask(self, member: Member) -> str:
        """`active`, `follows`, or "" when it does not say."""
        with InfoClient(member.url, self._token(), LOOK_SECONDS, retries=0) as client:
            try:
                client.agents_scheme()  # a follower passes no such call on
            except NotReady as error:
                return "follows" if "follows" in error.message else ""
            except InfoError:
                return ""
        return "active"

    def _answers(self, member: Member) -> bool:
        return self._ask(member) != ""

    def _begin(self, member: Member) -> subprocess.Popen[bytes]:
        words = ["--home", str(member.home), "serve", "--host", member.host, "--port", str(member.port)]
        words += ["--database", self._database, "--shared-with", self.other(member).url]
        with member.log.open("ab") as log:
            member.process = subprocess.Popen(
                [sys.executable, "-m", "nodewise", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=clean_environment(),
            )
        return member.process

    def _share_secrets(self, member: Member) -> None:
        """Give a service what the other one has made."""
        folder = member.home / "service"
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        for name in SECRETS:
            made = self.other(member).home / "service" / name
            if made.exists():
                shutil.copy2(made, folder / name)

    def _token(self) -> str | None:
        with suppress(FileNotFoundError):
            return (self.first.home / "service" / "token").read_text().strip()
        return None


def await_end(member: Member) -> None:
    """Wait until a service that has lost the database has ended by itself; BenchError when it does not."""
    if member.process is None:
        return
    try:
        member.process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise BenchError(f"the service {member.url} lost the database and goes on after {END_SECONDS:.0f} s") from None
