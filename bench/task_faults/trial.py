"""One trial: some tasks, faults while they run, and what must hold during and after that."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil
from hdfs import HdfsError

from bench.info.errors import BenchError
from bench.stage import until
from bench.task_faults import watched
from bench.task_faults.faults import FAULTS, Hit, mend
from bench.task_faults.watched import PRINT_SECONDS, Line
from bench.tasks.scene import Scene
from hadoop.errors import HadoopError
from infosvc.wire.errors import InfoError
from infosvc.wire.tasks import Task, TaskState

TASKS = 4
"""Half of them in boxes of Docker."""
RUN_SECONDS = 25.0
STRAY_SECONDS = 10.0
"""How long a program may go on whose runner or node has gone."""
END_SECONDS = 300.0
OUTPUT = "/bench/task-faults"
FAILURES = (BenchError, HadoopError, HdfsError, InfoError, OSError, psutil.Error)


@dataclass(frozen=True)
class Cut:
    """A start of a task that a fault has ended: what it printed until then has to be in its log."""

    kind: str
    task_id: str
    attempt: int
    at: float


@dataclass
class Outcome:
    """What was done and what became of it; `lost_seconds` are those of log for each start that was cut, by kind."""

    number: int
    faults: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    strays: int = 0
    doubled: int = 0
    lost_seconds: list[tuple[str, float]] = field(default_factory=list)
    starts: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def run(scene: Scene, number: int, kinds: Sequence[str], chance: random.Random) -> Outcome:
    """Run tasks, do the faults one after another at random moments, mend, and look."""
    outcome, begun = Outcome(number), time.monotonic()
    try:
        _run(scene, kinds, chance, outcome)
    except FAILURES as error:
        outcome.wrong.append(f"{type(error).__name__}: {error}")
        mend(scene)
        _stop_all(scene)
    outcome.seconds = time.monotonic() - begun
    return outcome


def _run(scene: Scene, kinds: Sequence[str], chance: random.Random, outcome: Outcome) -> None:
    outputs = [f"{OUTPUT}/{outcome.number}-{place}" for place in range(TASKS)]
    for one in outputs:
        scene.made.hdfs().delete(one, recursive=True)
    tasks = [watched.ask(scene, f"hdfs://{one}", RUN_SECONDS, place % 2 == 1) for place, one in enumerate(outputs)]
    watched.await_begin(scene, tasks)
    cuts: list[Cut] = []
    fallible: set[str] = set()
    for kind in kinds:
        time.sleep(chance.uniform(0.5, 4.0))
        hit = _hit(scene, kind, chance, outcome, cuts)
        if hit and hit.may_fail:
            fallible |= hit.tasks
    mend(scene)
    ended = watched.await_ends(scene, tasks, END_SECONDS)
    for task, output in zip(ended, outputs, strict=True):
        _look(scene, task, output, task.task_id in fallible, outcome)
    for cut in cuts:
        _measure_loss(scene, cut, outcome)
    outcome.strays += len(_remaining(scene, STRAY_SECONDS))
    again = [scene.client.task(task.task_id) for task in tasks]
    outcome.wrong += [
        f"{now.task_id} has changed after its end" for old, now in zip(ended, again, strict=True) if old != now
    ]


def _hit(scene: Scene, kind: str, chance: random.Random, outcome: Outcome, cuts: list[Cut]) -> Hit | None:
    """Do a fault, and look for programs that it should have ended."""
    before = {task.task_id: task for task in scene.client.tasks(states=[TaskState.RUNNING])}
    programs = watched.find_programs()
    at = time.time()
    hit = FAULTS[kind](scene, chance)
    if hit is None:
        outcome.missed.append(kind)
        return None
    outcome.faults.append(kind)
    cuts += [Cut(kind, one, before[one].attempt or 1, at) for one in hit.tasks if one in before]
    must_end = {pid for pid, task_id in programs.items() if task_id in hit.tasks}
    deadline = time.monotonic() + STRAY_SECONDS
    while (left := must_end & watched.find_programs().keys()) and time.monotonic() < deadline:
        time.sleep(0.2)
    outcome.strays += len(left)
    outcome.wrong += [f"{programs[pid]} went on after {kind}" for pid in left]
    return hit


def _look(scene: Scene, task: Task, output: str, may_fail: bool, outcome: Outcome) -> None:
    """Its end, its output and the logs of all its starts."""
    outcome.starts += task.attempt or 0
    if not watched.is_good(task, may_fail):
        outcome.wrong.append(f"{task.task_id} is {task.state}: {task.reason}")
    logs = [watched.read_log(scene, task.task_id, number) for number in range(1, (task.attempt or 0) + 1)]
    outcome.wrong += [
        f"the log of start {number} of {task.task_id} has gaps"
        for number, lines in enumerate(logs, 1)
        if not _is_whole(lines)
    ]
    status = scene.made.hdfs().status(output, strict=False)
    names = scene.made.hdfs().list(output) if status else []
    if task.state is TaskState.SUCCEEDED and names != ["result"]:
        outcome.doubled += 1
        outcome.wrong.append(f"the output of {task.task_id} is {names}")
    elif task.state is TaskState.SUCCEEDED and logs:
        with scene.made.hdfs().read(f"{output}/result") as file:
            count = int(file.read())
        if count != len(logs[-1]):
            outcome.wrong.append(f"{task.task_id} printed {count} lines, and its log has {len(logs[-1])}")


def _is_whole(lines: Sequence[Line]) -> bool:
    return [line.number for line in lines] == list(range(len(lines)))


def _measure_loss(scene: Scene, cut: Cut, outcome: Outcome) -> None:
    lines = watched.read_log(scene, cut.task_id, cut.attempt)
    if lines:  # else it had printed nothing yet, or was cut before its first piece was stored
        outcome.lost_seconds.append((cut.kind, max(0.0, cut.at - lines[-1].at - PRINT_SECONDS)))
    else:
        outcome.wrong.append(f"nothing is left of the log of start {cut.attempt} of {cut.task_id}")


def _remaining(scene: Scene, seconds: float) -> list[str]:
    """What still runs of tasks that have ended."""
    deadline = time.monotonic() + seconds
    while (left := [*map(str, watched.find_programs()), *scene.docker.containers()]) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _stop_all(scene: Scene) -> None:
    tasks = [task for task in scene.client.tasks() if not task.state.is_final]
    for task in tasks:
        scene.client.stop_task(task.task_id)
    until(lambda: all(scene.client.task(one.task_id).state.is_final for one in tasks), END_SECONDS, "all tasks stop")
