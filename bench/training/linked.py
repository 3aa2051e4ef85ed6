"""Runs of two members that a thin link joins, each in a network namespace of its own."""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.info.errors import BenchError
from bench.training.lead import TOKEN_FILE
from bench.training.runs import PROGRAMS, Run, open_run
from bench.training.settings import Settings
from bench.training.thin_link import HOSTS, INTERFACE
from jobs.application.package import WORKER_PYTHON
from learning.member.surroundings import write
from locality.training.generation_events import Generation

MEGABITS, ROUND_TRIP_MILLISECONDS = 20, 50
MEMBERS = len(HOSTS)
PORT = "20000"
"""Nothing else listens in a new namespace."""
START_SECONDS = 20.0


class CannotLink(BenchError):
    """No thin link can be made here."""

    def __init__(self, why: str) -> None:
        super().__init__(f"two network namespaces cannot be joined here ({why}): run this as root, with ip and nsenter")


class Linked:
    """A run with a link; `begin` starts a program on one side of it."""

    def __init__(self, run: Run) -> None:
        if not shutil.which("nsenter"):
            raise CannotLink("there is no program nsenter")
        self.run = run
        file = run.out / "link"
        words = ["-m", "bench.training.thin_link", str(MEGABITS), str(ROUND_TRIP_MILLISECONDS), str(file)]
        link = run.begin("link", [sys.executable, *words], {})
        until = time.monotonic() + START_SECONDS
        while not file.exists():
            if link.poll() is not None or time.monotonic() > until:
                said = (run.out / "link.log").read_text(errors="replace").splitlines()
                raise CannotLink(said[-1] if said else "they were not ready in time")
            time.sleep(0.05)
        self._namespaces: list[str] = json.loads(file.read_text())

    def begin(self, side: int, name: str, argv: Sequence[str | Path], environment: Mapping[str, str]) -> None:
        """Inside the namespace of this side."""
        self.run.begin(name, ["nsenter", f"--net={self._namespaces[side]}", *argv], environment)


def _argv(settings: Settings, words: Sequence[str]) -> list[str | Path]:
    return [WORKER_PYTHON, PROGRAMS / "thin.py", Path(settings.out) / "settings.json", *words]


@contextmanager
def linked_ours(settings: Settings, sync: str, words: Sequence[str]) -> Iterator[Run]:
    """Members that average as `sync` says, and what leads them, which is on the first side."""
    with open_run(settings) as run:
        link = Linked(run)
        folder = run.out / "run"
        (folder / "checkpoints").mkdir(parents=True)
        token = secrets.token_urlsafe(32)
        (folder / TOKEN_FILE).write_text(token)
        lead = [sys.executable, "-m", "bench.training.lead", str(folder), str(MEMBERS), HOSTS[0]]
        link.begin(0, "lead", lead, {})
        for side, host in enumerate(HOSTS):
            told = write(
                folder / f"member-{side}.json",
                address_file=folder / "address",
                token=token,
                process=f"member-{side}",
                host=host,
                checkpoints=folder / "checkpoints",
                sync=sync,
            )
            link.begin(side, f"member-{side}", _argv(settings, ["ours", *words]), told)
        yield run


@contextmanager
def linked_ddp(settings: Settings, words: Sequence[str]) -> Iterator[Run]:
    """Plain DDP."""
    with open_run(settings) as run:
        link = Linked(run)
        where = {"MASTER_ADDR": HOSTS[0], "MASTER_PORT": PORT, "WORLD_SIZE": str(MEMBERS)}
        where |= {"GLOO_SOCKET_IFNAME": INTERFACE}
        for rank in range(MEMBERS):
            link.begin(rank, f"rank-{rank}", _argv(settings, ["ddp", *words]), {**where, "RANK": str(rank)})
        yield run


def count_generations(run: Run) -> int:
    """Of a run by `linked_ours`: more than one when a member was thought lost."""
    journal = (run.out / "run" / "journal").read_text().splitlines()
    return sum(json.loads(line)[0] == Generation.kind for line in journal)
