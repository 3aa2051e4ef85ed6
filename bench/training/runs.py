"""Starts the programs that are measured, finds and hits their processes, and ends them with all that they started."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.info.errors import BenchError
from bench.info.processes import ROOT, clean_environment, free_port
from bench.training.lead import HOST, TOKEN_FILE
from bench.training.progress import Advance, Row, advances, read_rows
from bench.training.settings import NODE, Settings
from jobs.application.package import WORKER_PYTHON
from jobs.worker.threads import ONE_THREAD
from learning.member.surroundings import write

PROGRAMS = ROOT / "bench" / "training" / "programs"
LOOK_SECONDS = 0.25
"""Rarely, as reading what was written takes CPU time, too."""
TOLD = 2000
"""Characters from the end of what a program that failed has said."""
STEP_SECONDS = 400.0
"""How long a program may take to be ready, or to do the steps that are waited for."""


@dataclass
class Run:
    """A run that goes on; what its programs print is in files of its folder."""

    settings: Settings
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def out(self) -> Path:
        """Where its programs write."""
        return Path(self.settings.out)

    def begin(self, name: str, argv: Sequence[str | Path], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a program of the run in a session of its own."""
        surroundings = {**clean_environment(), **ONE_THREAD, **environment, "PYTHONPATH": str(ROOT)}
        with (self.out / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                argv,
                env=surroundings,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def rows(self) -> list[Row]:
        """What was done so far."""
        return read_rows(self.out)

    def pids(self) -> dict[int, int]:
        """The newest process of each node that is ready or was."""
        return {row.node: row.pid for row in self.rows()}

    def wait(self, holds: Callable[[list[Row]], bool], what: str, seconds: float = STEP_SECONDS) -> list[Row]:
        """The rows, once they are as wanted; BenchError with last words when a program fails or it takes too long."""
        until = time.monotonic() + seconds
        while not holds(rows := self.rows()):
            failed = [one for one in self.processes if one.poll() not in (None, 0, -signal.SIGKILL)]
            if failed or time.monotonic() > until:
                raise BenchError(f"{what}: it did not come to that in time. {self._last_words()}")
            time.sleep(LOOK_SECONDS)
        return rows

    def wait_for_step(self, steps: int, seconds: float = STEP_SECONDS) -> list[Advance]:
        """When each step was done, once so many are."""
        rows = self.wait(lambda rows: bool(rows) and max(row.steps for row in rows) >= steps, f"step {steps}", seconds)
        return advances(rows)

    def wait_for_end(self, seconds: float) -> None:
        """Until all programs have ended well; BenchError else."""
        until = time.monotonic() + seconds
        for process in self.processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise BenchError(f"a program did not end within {seconds:.0f} s. {self._last_words()}") from None
            if process.returncode:
                raise BenchError(f"a program failed. {self._last_words()}")

    def end(self) -> None:
        """Kill whatever is left of it."""
        left = []
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                top = psutil.Process(process.pid)
                left += [*top.children(recursive=True), top]
        for pid in {row.pid for row in self.rows()}:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.append(psutil.Process(pid))
        for one in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(left, timeout=10.0)
        for process in self.processes:
            process.wait()

    def _last_words(self) -> str:
        logs = sorted(self.out.glob("*.log"), key=lambda log: log.stat().st_mtime)
        return "Its last words: " + " | ".join(f"{log.name}: {log.read_text(errors='replace')[-TOLD:]}" for log in logs)


def hit(pid: int, number: signal.Signals = signal.SIGKILL) -> float:
    """Send a signal; the second of the monotonic clock right before."""
    at = time.monotonic()
    os.kill(pid, number)
    return at


@contextmanager
def open_run(settings: Settings) -> Iterator[Run]:
    """One in which nothing is started yet; all that is will be ended."""
    settings.write()
    run = Run(settings)
    try:
        yield run
    finally:
        run.end()


def _argv(program: str, settings: Settings) -> list[str | Path]:
    return [WORKER_PYTHON, PROGRAMS / program, Path(settings.out) / "settings.json"]


@contextmanager
def ours(settings: Settings, members: int, program: str = "ours.py", sync: str = "every") -> Iterator[Run]:
    """By `nodewise train local`; the program `lead` prints its sentences."""
    with open_run(settings) as run:
        begin_ours(run, members, program, sync)
        yield run


def begin_ours(run: Run, members: int, program: str = "ours.py", sync: str = "every") -> None:
    """Start it, or once more in the same folder."""
    folder = run.out / "run"
    words = ["local", "--members", str(members), "--least", "1", "--sync", sync, "--folder", str(folder), "--"]
    run.begin("lead", [sys.executable, "-m", "nodewise", "train", *words, *_argv(program, run.settings)], {})


@contextmanager
def alone(settings: Settings) -> Iterator[Run]:
    """The same program in one process, which nobody leads."""
    with open_run(settings) as run:
        run.begin("alone", _argv("ours.py", settings), {NODE: "0"})
        yield run


@contextmanager
def ddp(settings: Settings, members: int, program: str = "ddp.py") -> Iterator[Run]:
    """Plain DDP, one process a node; or another program with a process group."""
    with open_run(settings) as run:
        port = str(free_port())
        for rank in range(members):
            where = {"MASTER_ADDR": HOST, "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(members)}
            run.begin(f"rank-{rank}", _argv(program, settings), {**where, NODE: str(rank)})
        yield run


@contextmanager
def torchrun(settings: Settings, members: int) -> Iterator[Run]:
    """One elastic agent a node, which may go on with two. `-r 1 -t 2`: without them this version ends with an error."""
    with open_run(settings) as run:
        port = free_port()
        for number in range(members):
            argv: list[str | Path] = [
                WORKER_PYTHON,
                "-m",
                "torch.distributed.run",
                f"--nnodes=2:{members}",
                "--nproc_per_node=1",
            ]
            argv += ["--rdzv_backend=c10d", f"--rdzv_endpoint={HOST}:{port}", "--rdzv_id=bench", "--max_restarts=10"]
            argv += ["--rdzv_conf=join_timeout=60,last_call_timeout=3,timeout=120", "-r", "1", "-t", "2"]
            argv += ["--log_dir", str(run.out / f"agent-{number}")]
            run.begin(f"agent-{number}", [*argv, *_argv("ddp.py", settings)[1:]], {NODE: str(number)})
        yield run


@contextmanager
def mxnet(settings: Settings, members: int, program: str = "mxnet_sync.py") -> Iterator[Run]:
    """`dist_sync` with one server, whose CPU nobody limits."""
    with open_run(settings) as run:
        where = {"DMLC_PS_ROOT_URI": HOST, "DMLC_PS_ROOT_PORT": str(free_port()), "DMLC_NODE_HOST": HOST}
        where |= {"DMLC_NUM_SERVER": "1", "DMLC_NUM_WORKER": str(members)}
        for number, role in enumerate(["scheduler", "server", *["worker"] * members]):
            argv = _argv(program, settings)
            run.begin(f"{role}-{number}", argv, {**where, "DMLC_ROLE": role})
        yield run


@contextmanager
def led(settings: Settings, members: int) -> Iterator[Run]:
    """The same as by `nodewise train local`, but led by a program that may be killed: the first of its processes."""
    with open_run(settings) as run:
        folder = run.out / "run"
        (folder / "checkpoints").mkdir(parents=True)
        token = secrets.token_urlsafe(32)
        (folder / TOKEN_FILE).write_text(token)
        begin_lead(run, members)
        for number in range(members):
            name = f"member-{number}"
            told = write(
                folder / f"{name}.json",
                address_file=folder / "address",
                token=token,
                process=name,
                host=HOST,
                checkpoints=folder / "checkpoints",
            )
            run.begin(name, _argv("ours.py", settings), told)
        yield run


def begin_lead(run: Run, members: int) -> subprocess.Popen[bytes]:
    """Start what leads the run, or the next attempt at that."""
    argv = [sys.executable, "-m", "bench.training.lead", str(run.out / "run"), str(members), HOST]
    return run.begin(f"lead-{len(run.processes)}", argv, {})
