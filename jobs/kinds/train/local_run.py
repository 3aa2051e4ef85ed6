"""A run whose members are processes on this machine, led by this one."""

from __future__ import annotations

import fcntl
import os
import queue
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

from hadoop.installation import ROOT
from jobs.application.listener import Listener
from jobs.application.status import JobStatus
from jobs.errors import JobError
from jobs.kinds.train.hearing import RunHearing
from jobs.kinds.train.news import LEFT_EARLY, left_early, sentence
from jobs.worker.memory import KEPT_MEMORY
from jobs.worker.sessions import die_with_parent, signal_session, status_of
from jobs.worker.threads import ONE_THREAD
from learning.lead.leader import Leader
from learning.member.surroundings import write
from learning.state.checkpoints import Checkpoints
from locality.training.generation_events import Checkpointed, Event, Lost
from locality.training.generations import MemberRules

HOST = "127.0.0.1"
TICK_SECONDS = 0.05
GATHER_SECONDS = 60.0
"""How long the first generation waits for all processes."""
END_SECONDS = 10.0
"""How long processes may take to end after SIGTERM."""
READ_SECONDS = 2.0
"""How long what an ended process has printed may take to arrive; a program that it has left behind keeps its pipe."""


class LocalRun:
    """`members` processes of one program, the fewest that may go on being `least`; `say` hears each line.

    `folder` is made, and keeps the checkpoints: a later run in it goes on from the newest one. Only the thread that
    calls `run` calls `say`. `sync` says how often members average, None for as the program says.
    """

    def __init__(
        self,
        argv: Sequence[str],
        members: int,
        least: int,
        folder: Path,
        say: Callable[[str], None],
        sync: str | None = None,
    ) -> None:
        self._argv = argv
        self._members = members
        self._least = least
        self._folder = folder
        self._say = say
        self._sync = sync
        self._token = secrets.token_urlsafe(32)
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lost: set[str] = set()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []

    def run(self) -> None:
        """Until all steps are done; JobError when too few processes are left, or another run uses the folder.

        To be called by the main thread: SIGTERM ends the processes, and then this one.
        """
        with ExitStack() as stack:
            stack.enter_context(_alone_in(self._folder))
            stack.enter_context(_ended_by_signals())
            stack.push(self._tell_rest)
            stack.callback(self._end)
            self._start()
            self._lead()

    def _start(self) -> None:
        """All processes, before there is any thread: they are forked."""
        (self._folder / "address").unlink(missing_ok=True)
        for number in range(self._members):
            self._processes[f"member-{number}"] = self._start_one(f"member-{number}")
        for name, process in self._processes.items():
            if process.stdout:
                self._readers.append(threading.Thread(target=self._read, args=(name, process.stdout), daemon=True))
                self._readers[-1].start()

    def _start_one(self, name: str) -> subprocess.Popen[str]:
        file = self._folder / f"{name}.json"
        file.unlink(missing_ok=True)
        told = write(
            file,
            address_file=self._folder / "address",
            token=self._token,
            process=name,
            host=HOST,
            checkpoints=self._folder / "checkpoints",
            sync=self._sync,
        )
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        try:
            return subprocess.Popen(
                self._argv,
                env={**ONE_THREAD, **KEPT_MEMORY, **os.environ, **told, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        except OSError as error:
            raise JobError(
                f"{self._argv[0]} cannot be started ({error.strerror})", remedy="name a program, such as python"
            ) from error

    def _lead(self) -> None:
        rules = MemberRules(least=self._least, most=self._members, gather_seconds=GATHER_SECONDS)
        stored = Checkpointed(0, Checkpoints(self._folder / "checkpoints").last)
        leader = Leader(1, rules, self._note, time.monotonic, [stored])
        listener = Listener(HOST, self._token)
        try:
            listener.serve(RunHearing(leader), partial(_status, leader), str)
            (self._folder / "address").write_text(listener.address)
            self._attend(leader, listener)
        finally:
            listener.close()

    def _attend(self, leader: Leader, listener: Listener) -> None:
        """Until all processes have ended, without those that are lost: one that hangs may never end."""
        while running := self._running():
            leader.tick()
            listener.check()
            self._look_for_ended(leader)
            self._tell()
            if not leader.is_done:
                self._check(leader, len(running))
            time.sleep(TICK_SECONDS)
        if not leader.is_done:
            self._check(leader, 0)

    def _check(self, leader: Leader, left: int) -> None:
        """JobError when the run cannot come to its end."""
        if not leader.hopeless and left >= self._least:
            return
        self._let_end(leader)
        for name, member in leader.members().items():
            if status_of(self._processes[name]) == 0 and (early := left_early(name, member)):
                raise JobError(early, remedy=LEFT_EARLY)
        few = (
            f"{left} of {self._members} processes are left before the run is done, and it needs at least {self._least}"
        )
        raise JobError(
            leader.hopeless or few,
            remedy=f"look at what they printed; the same line goes on from the newest checkpoint in {self._folder}",
        )

    def _let_end(self, leader: Leader) -> None:
        """Let those end that have said their last word: what they print then tells more."""
        ending = [self._processes[name] for name, member in leader.members().items() if member.has_ended]
        until = time.monotonic() + END_SECONDS
        while any(status_of(one) is None for one in ending) and time.monotonic() < until:
            time.sleep(TICK_SECONDS)

    def _running(self) -> list[str]:
        lost = set(self._lost)
        return [name for name, one in self._processes.items() if name not in lost and status_of(one) is None]

    def _look_for_ended(self, leader: Leader) -> None:
        members = leader.members()
        for name, process in self._processes.items():
            has_said = name in members and members[name].has_ended
            if (status := status_of(process)) is not None and not has_said:
                leader.lose(name, f"exit status {status}")

    def _read(self, name: str, lines: IO[str]) -> None:
        for line in lines:
            self._lines.put(f"{name}: {line.rstrip()}")

    def _note(self, event: Event) -> None:
        """In the leader's lock, so that it waits for nobody."""
        if isinstance(event, Lost):
            self._lost.add(event.member)
        if said := sentence(event):
            self._lines.put(said)

    def _tell(self) -> None:
        while not self._lines.empty():
            self._say(self._lines.get())

    def _tell_rest(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Not when the user ends all: whoever reads the lines may have stopped to."""
        if kind is None or issubclass(kind, JobError):
            self._tell()

    def _end(self) -> None:
        """End the processes with all that they have started: SIGTERM, then SIGKILL."""
        try:
            self._signal(signal.SIGTERM)
            until = time.monotonic() + END_SECONDS
            while any(signal_session(one, 0) for one in self._processes.values()) and time.monotonic() < until:
                time.sleep(TICK_SECONDS)
        finally:
            self._signal(signal.SIGKILL)
            for process in self._processes.values():
                process.wait()
            until = time.monotonic() + READ_SECONDS
            for reader in self._readers:
                reader.join(max(0.0, until - time.monotonic()))

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            signal_session(process, number)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other runs out of it; JobError when there is one."""
    try:
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise JobError(f"{folder} cannot be used ({error.strerror})", remedy="name another --folder") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise JobError(
                f"another run uses the folder {folder}", remedy="wait until it has ended, or name another --folder"
            ) from error
        yield


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within the block SIGTERM and SIGHUP raise SystemExit, so that all that was begun is ended."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _status(leader: Leader) -> JobStatus:
    """What the listener's page tells."""
    return JobStatus(
        job_id="local",
        state="running",
        attempt=1,
        of=leader.steps_in_all,
        done=leader.steps,
        errors=0,
        seconds=0.0,
        seconds_left=None,
        nodes=(),
        kind="train",
        unit="steps",
    )
