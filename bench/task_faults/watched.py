"""The tasks of a trial: a program whose log says when it printed what, and what of it runs on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import psutil

from bench.info.errors import BenchError
from bench.stage import until
from bench.tasks.scene import MEMORY_MB, Scene
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState

MARK = "bench-task-faults"
"""An argument that no other program has."""
PROGRAM = """
import os, sys, time
end, number = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    print(number, time.time(), flush=True)
    number += 1
    time.sleep(0.1)
with open(os.path.join(os.environ["OUTPUT"], "result"), "w") as file:
    file.write(str(number))
"""
PRINT_SECONDS = 0.1
ATTEMPTS = 4
BEGIN_SECONDS = 180.0


@dataclass(frozen=True)
class Line:
    """One of a log: its number, and when it was printed in Unix seconds."""

    number: int
    at: float


def ask(scene: Scene, output: str, seconds: float, in_docker: bool) -> Task:
    """Ask for a task that prints for so long and then leaves one file."""
    return scene.client.submit_task(
        TaskSpec(
            ["/usr/bin/python3", "-c", PROGRAM, MARK, str(seconds)],
            memory_mb=MEMORY_MB,
            image=scene.docker.image if in_docker else None,
            attempts=ATTEMPTS,
            output=output,
        )
    )


def await_begin(scene: Scene, tasks: list[Task]) -> None:
    """Until the programs of all of them run; BenchError when that takes too long, or one has ended before."""
    wanted = {task.task_id for task in tasks}

    def begun() -> bool:
        for task in map(scene.client.task, wanted):
            if task.state.is_final:
                raise BenchError(f"{task.task_id} is {task.state} before any fault: {task.reason}")
        return wanted <= set(find_programs().values())

    until(begun, BEGIN_SECONDS, "all programs run")


def find_programs() -> dict[int, str]:
    """The process ids of programs that run now, with their tasks."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if MARK in process.cmdline():
                found[process.pid] = process.environ().get("TASK_ID", "")
    return found


def application_of(process: psutil.Process) -> str:
    """The application of YARN that a process of a container belongs to, empty when it has ended meanwhile."""
    with suppress(psutil.Error):
        parts = process.environ().get("CONTAINER_ID", "").split("_")
        if len(parts) >= 4:
            return f"application_{parts[-4]}_{parts[-3]}"
    return ""


def read_log(scene: Scene, task_id: str, attempt: int) -> list[Line]:
    """What one start printed."""
    text = "".join(_pieces(scene, task_id, attempt))
    return [Line(int(line.split()[0]), float(line.split()[1])) for line in text.splitlines() if len(line.split()) == 2]


def _pieces(scene: Scene, task_id: str, attempt: int) -> Iterator[str]:
    offset = 0
    while True:
        piece = scene.client.task_log(task_id, attempt=attempt, offset=offset)
        yield piece.text
        if not piece.more:
            return
        offset = piece.next


def await_ends(scene: Scene, tasks: list[Task], seconds: float) -> list[Task]:
    """All of them once they have ended; BenchError names one that does not."""

    def ended() -> list[Task] | None:
        now = [scene.client.task(task.task_id) for task in tasks]
        return now if all(task.state.is_final for task in now) else None

    try:
        found: list[Task] = until(ended, seconds, "all tasks have ended")
    except BenchError:
        waiting = [task for task in map(scene.client.task, (one.task_id for one in tasks)) if not task.state.is_final]
        raise BenchError(
            "; ".join(f"{one.task_id} is still {one.state} ({one.reason})" for one in waiting) or "a task ended late"
        ) from None
    return found


def is_good(task: Task, may_fail: bool) -> bool:
    """Whether it ended as it must: a program that was killed itself has failed."""
    return task.state is TaskState.SUCCEEDED or (may_fail and task.state is TaskState.FAILED)
