"""The tasks of one slice in one way, each asked for when its time has come."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from bench.completion.draw import Slice, Wish
from bench.completion.scene import IMAGE, LABEL, MEMORY_MB, ON_NODE, ONE_THREAD, Scene, seconds_of
from bench.completion.ways import DOCKER, LEARNED, arrange
from bench.lab import WORKERS
from bench.paper.stage import WORKER_PYTHON

RUN_SECONDS = 3600.0
"""Without YARN nothing keeps many tasks that read from one slow card."""
_IDLE = "grep '^cpu ' /proc/stat; sleep 1; grep '^cpu ' /proc/stat"
_FILES = ("/usr", "/opt/nodewise", ON_NODE)
"""What a container sees of its node, so that no image has to hold a Python with numpy."""

Row = dict[str, Any]
T = TypeVar("T")


def run(scene: Scene, part: Slice, way: str, unit: float) -> list[Row]:
    """What became of each task; seconds count from when it was asked for. `unit` is how long `Wish.at` = 1 is."""
    scene.stage.clear()
    arrange(scene.stage, way, scene.settings)
    if way == DOCKER:
        with ThreadPoolExecutor(len(part.wishes)) as pool:
            return [one.result() for one in _in_time(part, unit, lambda wish: pool.submit(_docker_run, scene, wish))]
    ended = scene.await_ends(_in_time(part, unit, lambda wish: scene.submit(wish, way == LEARNED)))
    return [_row(wish, task.node_name, *seconds_of(task)) for wish, task in zip(part.wishes, ended, strict=True)]


def _row(wish: Wish, node: str | None, waited: float, completed: float) -> Row:
    told = {"number": wish.number, "program": wish.program, "length": wish.length, "node": node}
    return {**told, "waited": waited, "completed": completed}


def _in_time(part: Slice, unit: float, ask: Callable[[Wish], T]) -> list[T]:
    begun, found = time.monotonic(), []
    for wish in part.wishes:
        time.sleep(max(0.0, begun + wish.at * unit - time.monotonic()))
        found.append(ask(wish))
    return found


def _docker_run(scene: Scene, wish: Wish) -> Row:
    """What people do without a scheduler: look which node is the least busy, and start a container there by ssh."""
    begun = time.monotonic()
    idle = scene.stage.everywhere(lambda name: _idle(scene.stage.run(name, "sh", "-c", _IDLE)))
    dice = random.Random(wish.number)  # noqa: S311 - an experiment that can be repeated
    node = max(WORKERS, key=lambda name: (round(idle[name], 2), dice.random()))
    chosen = time.monotonic()
    options = ["--rm", f"--label={LABEL}", "--network=host", f"--memory={MEMORY_MB}m"]
    options += [f"--volume={one}:{one}:ro" for one in _FILES]
    options += [f"--env={name}={value}" for name, value in ONE_THREAD.items()]
    argv = ("sudo", "docker", "run", *options, IMAGE, WORKER_PYTHON, ON_NODE, *scene.words(wish))
    scene.stage.run(node, *argv, timeout=RUN_SECONDS)
    return _row(wish, node, chosen - begun, time.monotonic() - begun)


def _idle(told: str) -> float:
    """The idle share of a node's processors between two lines of /proc/stat.

    >>> _idle("cpu  10 0 10 80 0 0 0 0 0 0\\ncpu  20 0 20 160 0 0 0 0 0 0\\n")
    0.8
    """
    before, after = ([int(number) for number in re.findall(r"\d+", line)] for line in told.splitlines())
    grown = [new - old for new, old in zip(after, before, strict=True)][:8]
    return (grown[3] + grown[4]) / max(1, sum(grown))
