"""How soon lines that many tasks print are read by those who follow their logs, and whether each is read once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.info.figures import quantile
from bench.tasks.scene import Scene
from infosvc.wire.tasks import Task
from jobs.commands.asking.task_printed import read

PROGRAM = """
import sys, time
count, pause = int(sys.argv[1]), float(sys.argv[2])
due = time.monotonic()
for number in range(count):
    print(number, time.monotonic(), flush=True)
    due += pause
    time.sleep(max(0, due - time.monotonic()))
"""
PATIENCE_SECONDS = 300.0


@dataclass
class Heard:
    """What one follower has read: the number of each line, and seconds from printing to reading."""

    numbers: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)


def measure(scene: Scene, tasks: int, lines_per_second: int, seconds: float) -> Mapping[str, float]:
    """Run so many tasks at once; printing and reading go by the one clock of this machine."""
    count = round(lines_per_second * seconds)
    asked = [scene.submit(sys.executable, "-c", PROGRAM, str(count), str(1 / lines_per_second)) for _ in range(tasks)]
    heard = [Heard() for _ in asked]
    followers = [
        threading.Thread(target=_follow, args=(scene, task, one)) for task, one in zip(asked, heard, strict=True)
    ]
    for follower in followers:
        follower.start()
    for task in asked:
        scene.await_end(task, seconds + PATIENCE_SECONDS)
    for follower in followers:
        follower.join()
    delays = [delay for one in heard for delay in one.delays]
    return {
        "line_p50_seconds": quantile(delays, 0.5),
        "line_p99_seconds": quantile(delays, 0.99),
        "lines_lost": sum(count - len(set(one.numbers)) for one in heard),
        "lines_doubled": sum(len(one.numbers) - len(set(one.numbers)) for one in heard),
        "tasks_at_once": _at_once(scene, asked),
    }


def _follow(scene: Scene, task: Task, heard: Heard) -> None:
    """As `nodewise task logs -f` does."""
    for printed in read(scene.client, task.task_id, None, True):
        now = time.monotonic()
        for line in printed.text.splitlines():
            number, moment = line.split()
            heard.numbers.append(int(number))
            heard.delays.append(now - float(moment))


def _at_once(scene: Scene, asked: list[Task]) -> float:
    """The most tasks that ran at the same moment."""
    found = [scene.client.task(task.task_id) for task in asked]
    begun = [task.started_at for task in found if task.started_at is not None]
    return max(sum((one.started_at or 0) <= at < (one.ended_at or 0) for one in found) for at in begun)
