"""Runs the program of a task in the application master's own container, once or until it has ended once.

A task that its owner stops, or that moves to another node, hears so by a call, and its program has STOP_SECONDS from
SIGTERM to SIGKILL. When another queue takes its room back, YARN says so beforehand, the program hears SIGTERM then, and
the runner waits for the end that YARN brings: such a start does not count. If YARN does without the room after all, the
program starts again here. SIGTERM to the runner - somebody kills the application - reaches the program at once, too,
but YARN sends SIGKILL 250 ms after SIGTERM unless the NodeManagers' site file has another
`yarn.nodemanager.sleep-delay-before-sigkill.ms`; nodewise's clusters leave it at that. YARN's signal goes to all
processes of the container, so a program may hear SIGTERM twice.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

import boxes
from boxes.box import Box, BoxError, Image, Limits, Program, Served
from boxes.gpus.cards import Wanted
from boxes.gpus.taking import Taken, take_cards
from hadoop.errors import HadoopError
from infosvc.wire.tasks import TaskProgress
from jobs.application.calls import Request
from jobs.application.coordinator import Attempt, NodeProgress, Outcome, Progress, Runner
from jobs.application.environments.laid import beside
from jobs.application.journal import Record
from jobs.errors import JobError
from jobs.kinds.task import checkpoint, image_store, input_data, service_access, taking_back, work_folder
from jobs.kinds.task.checkpoint import Checkpoint
from jobs.kinds.task.committing import Commit
from jobs.kinds.task.printed import Printed
from jobs.kinds.task.settings import (
    FOLDER,
    MOVE,
    MOVED,
    PROGRAM_SECONDS,
    STEPS_PER_SECOND,
    STOP,
    STOP_SECONDS,
    STOPPED,
    TUNNEL,
    TaskSettings,
)
from jobs.kinds.task.stop_signal import on_stop
from jobs.kinds.task.telling import Telling
from jobs.kinds.task.tunnels import Tunnels
from jobs.kinds.task.using import Using

ENDED = "ended"
"""Record of the journal: nothing is left but to say how the program ended, and to put its output in place."""
LOG_SECONDS = 150.0
"""How long HDFS may take for the last that was printed; NameNodes that are started anew take less."""
LAST_SECONDS = 5.0
"""The same when the container is to end."""
STARTING = "getting its files"
FETCHING = "fetching its image"
UNIT = "tasks"
ENDED_BY_SIGTERM = 143
"""What a process ends with that SIGTERM ended. YARN decides what follows: another attempt if it was a preemption."""


@dataclass(frozen=True)
class _Result:
    """What became of the program: its exit code, and a sentence if the task has failed."""

    code: int
    failure: str = ""


class Task(Runner):
    """One attempt at one task, made by the main thread; JobError tells how its program failed."""

    calls: ClassVar[Mapping[str, int]] = {STOP: 0, MOVE: 0, TUNNEL: 0}

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._settings = TaskSettings.from_json(attempt.spec.settings)
        self._start = attempt.number + self._settings.starts_before
        self._node_name = os.environ["NM_HOST"]
        self._result: _Result | None = None
        self._said = STARTING
        self._data: list[str] = []
        self._gpus = Taken()
        self._box: Box | None = None
        self._printed: Printed | None = None
        self._kept: Checkpoint | None = None
        self._seconds: float | None = None
        self._goes_on = False
        self._is_stopped = self._is_over = False
        self._asked_to_end = ""
        self._wanted_back_at: float | None = None
        self._longest_seconds = taking_back.longest_seconds(Path(attempt.spec.conf_dir))
        self._woken = threading.Event()
        self._telling = self._tell()
        self._tunnels = Tunnels(attempt.client, self._settings.task_id, Path.cwd() / work_folder.NAME)
        on_stop(self._stop)

    def run(self) -> Outcome:
        """Run the program, unless an earlier attempt came to its end."""
        try:
            return self._run()
        except JobError as error:
            self._said = error.message
            raise
        finally:
            self._is_over = True
            self._telling.close()

    def _run(self) -> Outcome:
        output = self._settings.output
        commit = Commit(self._attempt.filesystem, output, self._start) if output else None
        if result := self._earlier(commit):
            return self._conclude(result)
        if commit:
            commit.begin()
        folder = work_folder.make(self._settings, Path.cwd())
        if self._settings.data:
            self._said = "fetching data"
            self._telling.change(reason=self._said)
        self._data = input_data.fetch(self._attempt.filesystem, self._settings.data, folder)
        with self._checkpoint(folder):
            result = self._run_program(folder)
        if commit and not result.failure:
            self._store(commit, folder / work_folder.OUTPUT, result)
        else:
            self._attempt.journal.append(Record(ENDED, asdict(result)))
        return self._conclude(result)

    def hear(self, call: str, request: Request) -> None:  # noqa: ARG002 the calls say nothing more
        """The program is to end, as its owner stops it or it moves; or somebody opens a tunnel to it."""
        if call == TUNNEL:
            self._tunnels.join()
            return
        if call == STOP or not self._asked_to_end:
            self._asked_to_end = STOPPED if call == STOP else MOVED
        self._woken.set()
        self._end_soon(STOP_SECONDS)

    def give_back(self) -> None:
        """Let the program end by itself before YARN ends it; what it leaves in $CHECKPOINT is kept for the next start.

        One that has ended already has ended.
        """
        print("YARN takes this place back for another queue, so the program is to end", flush=True)
        self._wanted_back_at = time.monotonic()
        if self._printed:
            self._printed.hurry()
        self._end_soon(self._longest_seconds)

    def progress(self) -> Progress:
        """The program, and how it ended once it has."""
        section: dict[str, object] = {"Program": self._settings.argv[0]}
        if self._data:
            section["Data"] = "; ".join(self._data)
        if self._gpus.cards:
            section["GPUs"] = self._gpus.text
        if result := self._result:
            section["Exit code"] = result.code
        if self._seconds is not None and not self._goes_on:  # else this was a part of its work
            section[PROGRAM_SECONDS] = round(self._seconds, 3)
        if self._printed and (speed := self._printed.steps_per_second):
            section[STEPS_PER_SECOND] = float(f"{speed:.6g}")
        done = int(result is not None and not result.failure)
        node = NodeProgress(planned=1, done=done, running=int(not self._is_over), said=self._said)
        return Progress(done, 1, UNIT, {self._node_name: node}, section=section)

    def _tell(self) -> Telling:
        """Let the service hear how far this start is, and where what it leaves is until it has ended."""
        attempt, settings = self._attempt, self._settings
        output = str(Path.cwd() / work_folder.NAME / work_folder.OUTPUT) if settings.output else None
        begun = TaskProgress(self._start, running=False, reason=STARTING, output_folder=output)
        return Telling(lambda now: attempt.client.put_task_progress(settings.task_id, now), begun)

    def _earlier(self, commit: Commit | None) -> _Result | None:
        """What an earlier attempt noted, once its output is in place; None when the program has to run (again)."""
        for record in self._attempt.earlier:
            if record.kind == ENDED:
                identity = record.body.get("output")
                if identity is None or (commit and commit.finish_earlier(identity)):
                    return _Result(record.body["code"], record.body["failure"])
        return None

    @contextmanager
    def _checkpoint(self, folder: Path) -> Iterator[None]:
        """Keep what the program leaves there while the block runs; nothing for a task that names no checkpoint."""
        if self._settings.checkpoint is None:
            yield
            return
        kept = Checkpoint(self._attempt.filesystem, self._settings.checkpoint, folder / checkpoint.FOLDER)
        if kept.begin():
            self._goes_on = True
            print(f"it goes on from {self._settings.checkpoint}", flush=True)
        self._kept = kept
        try:
            yield
        finally:
            kept.close()

    def _run_program(self, folder: Path) -> _Result:
        settings, attempt = self._settings, self._attempt
        log_folder = f"{attempt.spec.owners_folder}/{FOLDER}/{settings.task_id}"
        printed = self._printed = Printed(attempt.filesystem, log_folder, self._start, Path.cwd())
        try:
            with take_cards(Wanted(**settings.gpus), self._pause, self._say_before) as self._gpus:
                program = self._program(folder)
                while (result := self._follow(boxes.create(settings.box), program, printed)) is None:
                    self._goes_on = True
                    work_folder.renew(settings, Path.cwd())
            return result
        except BoxError as error:
            raise JobError(f"on {self._node_name}, {error.message}", error.remedy) from error
        finally:
            printed.close(LOG_SECONDS)

    def _program(self, folder: Path) -> Program:
        settings = self._settings
        shows_machine = boxes.create(settings.box).shows_machine
        of_service = service_access.variables(self._attempt.spec.info_url, settings.task_id, Path.cwd(), folder)
        variables = work_folder.environment(settings, folder, self._node_name, self._start, shows_machine, of_service)
        variables |= self._gpus.variables
        limits = Limits(settings.memory_mb, settings.vcores)
        parts, cards = beside(settings.parts, Path.cwd()), self._gpus.devices
        return Program(settings.argv, variables, folder, limits, self._image(), parts, settings.devices, cards)

    def _say_before(self, what: str) -> None:
        """Let everybody hear what is done before the program starts."""
        print(what, flush=True)
        self._said = what
        self._telling.change(reason=what)

    def _pause(self, seconds: float) -> None:
        """Wait, before the program has started; JobError when the task is to end."""
        if self._woken.wait(seconds) and self._asked_to_end:
            raise JobError(self._asked_to_end)

    def _image(self) -> Image | None:
        image, attempt = self._settings.image, self._attempt
        if image is None:
            return None
        filesystem, folder = attempt.filesystem, attempt.spec.owners_folder

        def fetch(archive: Path) -> None:
            self._say_before(FETCHING)
            image_store.fetch(filesystem, folder, image, archive)

        def serve() -> AbstractContextManager[Served] | None:
            self._say_before(FETCHING)
            return image_store.serve(filesystem, folder, image, lambda said: print(said, flush=True))

        return Image(image, fetch, serve)

    def _follow(self, box: Box, program: Program, printed: Printed) -> _Result | None:
        """From the start of the program to its end; None if it ended for YARN, which did without its room."""
        box.start(program, printed.write)
        begun = time.monotonic()
        self._box, self._said = box, "running"
        self._tunnels.enter(box)
        self._telling.change(running=True, reason="", idle_since=None)
        if self._is_stopped or self._asked_to_end or self._wanted_back_at:  # just now, when there was no box yet
            box.end(STOP_SECONDS)
        limit = self._settings.seconds_at_most
        using = Using(box, printed.note_use, lambda since: self._telling.change(idle_since=since))
        try:
            ended = box.wait(None if limit is None else min(limit, threading.TIMEOUT_MAX))
            asked_to_end = self._asked_to_end  # who asks after the end comes too late
        finally:
            using.close()
            self._telling.change(idle_since=None)
        self._seconds = time.monotonic() - begun
        if ended is None:
            return _Result(box.end(STOP_SECONDS).code, asked_to_end or f"it ran longer than {limit:g} s")
        if self._is_stopped:
            self._leave()
        if self._wanted_back_at and not asked_to_end:
            self._wait_for_yarn(printed)
            asked_to_end = self._asked_to_end
            if not asked_to_end:
                return None
        if asked_to_end:
            return _Result(ended.code, asked_to_end)
        return _Result(ended.code, f"the program {ended.text}" if ended.code else "")

    def _store(self, commit: Commit, folder: Path, result: _Result) -> None:
        """Put in place what the program left; HadoopError when a later attempt has taken over."""
        self._said = "storing"
        try:
            identity = commit.upload(folder)
            self._attempt.journal.append(Record(ENDED, asdict(result) | {"output": identity}))
        except (HadoopError, JobError):
            with suppress(HadoopError):
                commit.discard()
            raise
        commit.commit(identity)

    def _conclude(self, result: _Result) -> Outcome:
        self._result, self._said = result, f"exit code {result.code}"
        if result.failure:
            raise JobError(result.failure)
        return Outcome(f"the program ended with exit code {result.code}")

    def _stop(self) -> None:
        """Pass SIGTERM on to the program; whoever waits for its end then leaves."""
        self._is_stopped = True
        self._woken.set()
        if self._printed:
            self._printed.hurry()
        if self._box:
            self._end(self._box)
        else:
            self._leave()

    def _end_soon(self, grace: float) -> None:
        """End the program, if it runs, while the caller goes on."""
        if self._box:
            threading.Thread(target=self._end, args=(self._box, grace), name="stopping", daemon=True).start()

    def _end(self, box: Box, grace: float = STOP_SECONDS) -> None:
        """End the program; whoever waits for it hears how it ended, or why the box was lost."""
        with suppress(OSError):
            box.end(grace)

    def _wait_for_yarn(self, printed: Printed) -> None:
        """Be ended by YARN, once all that the program has left is safe.

        It returns when YARN does without the room, or the owner stops the task.
        """
        self._said = "waiting for YARN to take its place back"
        printed.hurry()
        if self._kept:
            self._kept.keep_now()
        while self._wanted_back_at and (left := self._wanted_back_at + self._longest_seconds - time.monotonic()) > 0:
            if self._woken.wait(left):
                if self._asked_to_end:
                    return
                self._leave()
        self._wanted_back_at = None
        print("YARN does without this place after all, so the program starts again", flush=True)

    def _leave(self) -> NoReturn:
        """End as a process that SIGTERM ended, without a word to YARN: it knows why the container was to end."""
        if self._kept:
            self._kept.close()
        if self._printed:
            self._printed.close(LAST_SECONDS)
        sys.stdout.flush()
        os._exit(ENDED_BY_SIGTERM)
