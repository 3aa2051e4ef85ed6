"""A run that is led here, over HTTP as an application master does, with members in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hadoop.installation import ROOT
from jobs.application.listener import Listener
from jobs.application.package import WORKER_PYTHON
from jobs.application.status import JobStatus
from jobs.kinds.train.hearing import RunHearing
from jobs.worker.threads import ONE_THREAD
from learning.lead.leader import Leader
from learning.member.surroundings import write
from learning.state.checkpoints import Checkpoints
from locality.training.generation_events import Checkpointed, Event, Generation, from_body, to_body
from locality.training.generations import MemberRules
from tests.learning.results import train_alone

TOKEN = "a token of the tests"
HOST = "127.0.0.1"
STATUS = JobStatus("local", "running", 1, 0, 0, 0, 0.0, None, ())


class Led:
    """A run whose leader can be killed and started again, as attempts of an application master follow one another."""

    def __init__(self, folder: Path, rules: MemberRules) -> None:
        self._folder = folder
        self._address_file = folder / "address"
        self._rules = rules
        self._records: list[str] = []
        self._attempts = 0
        self._ended = threading.Event()

    def begin(self) -> None:
        """A new attempt, which knows what stands in the journal."""
        self._attempts += 1
        self._ended = threading.Event()
        self.leader = Leader(self._attempts, self._rules, self._record, time.monotonic, self.events)
        self._listener = Listener(HOST, TOKEN)
        self._listener.serve(RunHearing(self.leader), lambda: STATUS, str)
        self._address_file.write_text(self._listener.address)
        threading.Thread(target=self._tick, args=(self.leader, self._ended), daemon=True).start()

    def kill(self) -> None:
        """Nobody leads the run."""
        self._ended.set()
        self._listener.close()

    def resume(self) -> None:
        """Another run, which goes on from the newest checkpoint of the one before."""
        self.kill()
        self._records, self._attempts = [], 0
        self._record(Checkpointed(0, Checkpoints(self._folder / "checkpoints").last))
        self.begin()

    @property
    def events(self) -> list[Event]:
        return [from_body(*json.loads(record)) for record in self._records]

    @property
    def generations(self) -> list[Generation]:
        return [event for event in self.events if isinstance(event, Generation)]

    def steps(self) -> int:
        """Of the member that is the furthest."""
        return max((one.done.steps for one in self.leader.members().values()), default=0)

    def _record(self, event: Event) -> None:
        self._records.append(json.dumps([event.kind, to_body(event)]))

    def _tick(self, leader: Leader, ended: threading.Event) -> None:
        while not ended.wait(0.05):
            leader.tick()


class Member:
    """A program that trains, in a process of its own."""

    def __init__(self, folder: Path, name: str, words: list[str]) -> None:
        self.name = name
        self._out = folder / f"{name}.out"
        (folder / "checkpoints").mkdir(exist_ok=True)
        told = write(
            folder / f"{name}.json",
            address_file=folder / "address",
            token=TOKEN,
            process=name,
            host=HOST,
            checkpoints=folder / "checkpoints",
        )
        with self._out.open("w") as out:
            self.process = subprocess.Popen(
                [WORKER_PYTHON, ROOT / "tests" / "learning" / "member.py", *words],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ONE_THREAD, **told, "NODE_NAME": f"node-{name}", "PYTHONPATH": str(ROOT)},
            )

    def read_output(self) -> str:
        """All that it has printed."""
        return self._out.read_text()

    def wait_for_result(self, seconds: float = 200.0) -> list[float]:
        """The parameters that it has found at its end."""
        status = self.process.wait(seconds)
        said = self.read_output()
        assert status == 0, said
        found: list[float] = json.loads(said.splitlines()[-1])
        return found

    def store(self) -> int:
        """The process of its store."""
        (child,) = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(child)


class Amid:
    """Words for members whose run lasts until it may end: what is done before that comes amid it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "may end"
        self.words = ("--pace", "0.001", "--until", str(self._file))

    def let_end(self) -> None:
        """It goes on at its pace, to the end."""
        self._file.touch()


Start = Callable[..., Member]


@pytest.fixture(scope="session")
def alone() -> list[float]:
    """What one process finds without anybody who leads it."""
    return train_alone()


def until(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What is true of it once it is."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.01)
    return found


@pytest.fixture
def led(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Led]:
    """Patient with who is silent, as a busy machine may let anybody wait; a test may ask for other rules."""
    patient: dict[str, Any] = {"most": 3, "gather_seconds": 60.0, "silence_seconds": 30.0, "suspect_seconds": 20.0}
    made = Led(tmp_path, MemberRules(**patient | getattr(request, "param", {})))
    made.begin()
    yield made
    made.kill()


@pytest.fixture
def amid(tmp_path: Path) -> Amid:
    return Amid(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(name, "--pace", "0.002"): a new member."""
    members: list[Member] = []

    def begin(name: str, *words: str) -> Member:
        members.append(Member(tmp_path, name, list(words)))
        return members[-1]

    yield begin
    for one in members:
        one.process.kill()
        one.process.wait()
