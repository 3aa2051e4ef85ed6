"""The lab in one of its shapes, what tasks of the bench need there, and how fast each worker is with each program."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.completion.cards import hold
from bench.completion.draw import CARD, STEPS, Wish, bound_by
from bench.completion.model import Alone
from bench.completion.shapes import USUAL_CPUS, Shape
from bench.completion.ways import DICE, POLICY, read_settings
from bench.info.errors import BenchError
from bench.lab import CALM_SECONDS, MASTER, WORKERS, known_by_name
from bench.paper import levels
from bench.paper.stage import SCHEDULER, WORKER_PYTHON, Stage, install, stage
from bench.stage import until
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer
from infosvc.wire.tasks import Task
from nodewise import tasks

SCRIPT = Path(__file__).with_name("train.py")
ON_NODE = "/srv/bench-train.py"
IMAGE = "bench-empty"
MEMORY_MB = 512
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LOOK = Wish(0, 0.0, "dense", 2 / 3, 1)
"""What a worker's speed is measured by."""
LOOK_SECONDS = 0.5
TASK_SECONDS = 900.0
TTL_SECONDS = 3600.0
SPEEDS = ("steps_per_second", "training_speed")
"""Data names of a program, less its name."""
LABEL = "nodewise-bench"
_DICE = random.Random()  # noqa: S311 - an experiment
_MAKE_IMAGE = f"""folder=$(mktemp -d)
for one in bin lib lib64; do ln -s usr/$one "$folder/$one"; done
tar c -C "$folder" . | docker import - {IMAGE}
rm -r "$folder"
"""
"""An image without files: a container of it is given those of its node."""
_CLEAN = f"""rm -f {ON_NODE}
docker ps --quiet --all --filter label={LABEL} | xargs --no-run-if-empty docker rm --force
docker images --quiet {IMAGE} | xargs --no-run-if-empty docker rmi
"""
_SHARE = r"s|(maximum-am-resource-percent</name><value>)[0-9.]+<|\11.0<|"
"""Tasks are application masters, and may fill the queue."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Scene:
    """The lab while it is measured. `settings` are the lines of the policy's file that are not rules.

    `source` is where tasks that read get their data. Speeds are learned under names with `mark`, so that nothing of an
    earlier run or of another way counts.
    """

    stage: Stage
    client: InfoClient
    folder: Path
    settings: str
    shape: Shape
    source: str
    mark: str = field(default_factory=lambda: secrets.token_hex(4))
    asked: list[str] = field(default_factory=list)

    def words(self, wish: Wish) -> tuple[str, ...]:
        """What train.py is told."""
        return (*wish.words, self.source) if bound_by(wish.program) == CARD else wish.words

    def submit(self, wish: Wish, learns: bool, nodes: Sequence[str] = ()) -> str:
        """Ask for a task, of which speeds are learned and used or not; its id."""
        for name in WORKERS:
            self.client.put_value(DICE, name, _DICE.random())
        argv = (WORKER_PYTHON, SCRIPT.name, *self.words(wish))
        program = f"{wish.program}-{self.mark}" if learns else None
        more: dict[str, Any] = {"program": program, "nodes": tuple(nodes), "variables": ONE_THREAD}
        made = tasks.submit(argv, folder=self.folder, client=self.client, memory_mb=MEMORY_MB, **more)
        self.asked.append(made.task_id)
        return made.task_id

    def await_ends(self, task_ids: Sequence[str]) -> list[Task]:
        """The tasks once all have succeeded; BenchError when one does not."""
        deadline, found = time.monotonic() + TASK_SECONDS, dict[str, Task]()
        while len(found) < len(task_ids):
            for task_id in (one for one in task_ids if one not in found):
                with suppress(InfoError):
                    task = self.client.task(task_id)
                    found |= {task_id: task} if task.state.is_final else {}
            if time.monotonic() > deadline:
                raise BenchError(f"{len(task_ids) - len(found)} tasks have not ended within {TASK_SECONDS:g} s")
            time.sleep(LOOK_SECONDS)
        for task in found.values():
            if task.state != "succeeded":
                raise BenchError(f"{task.task_id} is {task.state}: {task.reason}")
        return [found[task_id] for task_id in task_ids]

    def forget(self) -> None:
        """Have the service forget the tasks and what was learned of them."""
        for task_id in self.asked:
            with suppress(InfoError):
                self.client.remove_task(task_id)
        for name in (f"{kind}:{program}-{self.mark}" for kind in SPEEDS for program in STEPS):
            with suppress(InfoError):
                self.client.delete_producer(name)


@contextmanager
def scene(shape: Shape, seed: int, say: Say) -> Iterator[tuple[Scene, levels.Scene | None]]:
    """The lab with workers of a shape, as it was again afterwards; and how busy they are, if they are."""
    with ExitStack() as stack:
        made = stack.enter_context(stage(USUAL_CPUS))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bench-completion-")))
        stack.enter_context(known_by_name(made.addresses))
        client = stack.enter_context(made.admin(folder)())
        install(made)
        settings = read_settings(_keep(stack, made, POLICY))
        _keep(stack, made, SCHEDULER)
        made.run(MASTER, "sudo", "sed", "-E", "-i", _SHARE, SCHEDULER)
        client.put_producer(Producer(DICE, "", TTL_SECONDS, Kind.PROGRAM))
        stack.callback(client.delete_producer, DICE)
        stack.callback(made.everywhere, lambda name: made.run(name, "sudo", "sh", "-euc", _CLEAN))
        made.everywhere(lambda name: made.run(name, "sudo", "sh", "-euc", _MAKE_IMAGE))
        made.everywhere(lambda name: made.write(name, ON_NODE, SCRIPT.read_text()))
        made.place_by_values(False)  # the ResourceManager reads the share, too
        stack.callback(made.clear)
        source = stack.enter_context(hold(made, shape))
        found = _make_busy(made, seed, say) if shape.is_busy else None
        work = folder / "work"
        work.mkdir()
        (work / SCRIPT.name).write_text(SCRIPT.read_text())
        one = Scene(made, client, work, settings, shape, source)
        stack.callback(one.forget)
        yield one, found


def teach(found: Scene, say: Say) -> Alone:
    """One task of each program on each worker, by which speeds are learned; how long each took alone."""
    alone: dict[tuple[str, str], tuple[float, float]] = {}
    until(found.stage.is_ready, CALM_SECONDS, "the service hears of all workers")
    for program in found.shape.programs:
        wish = Wish(0, 0.0, program, 1.0, 1)
        asked = [found.submit(wish, True, [name]) for name in WORKERS]
        for task in found.await_ends(asked):
            waited, completed = seconds_of(task)
            alone[str(task.node_name), program] = waited, completed - waited
    for program in found.shape.programs:
        told = ", ".join(f"{name} {sum(alone[name, program]):.0f}" for name in WORKERS)
        say(
            f"seconds of a usual task of {program} alone, {alone[WORKERS[0], program][0]:.0f} of them around it: {told}"
        )
    return alone


def seconds_of(task: Task) -> tuple[float, float]:
    """From asking for a task until its program began, and until all had ended; BenchError when it never ran."""
    if task.started_at is None or task.ended_at is None:
        raise BenchError(f"the service does not know when {task.task_id} ran")
    return task.started_at - task.created_at, task.ended_at - task.created_at


def _keep(stack: ExitStack, made: Stage, path: str) -> str:
    """What a file of the master's holds, and will hold again afterwards."""
    before = made.run(MASTER, "sudo", "cat", path)
    stack.callback(made.write, MASTER, path, before)
    return before


def _make_busy(made: Stage, seed: int, say: Say) -> levels.Scene:
    found = levels.calibrate(seed, WORKERS, USUAL_CPUS, made.load, lambda: _speeds(made, say))
    say("stress-ng: " + ", ".join(f"{name} {percent} %" for name, percent in found.percent.items()))
    return found


def _speeds(made: Stage, say: Say) -> dict[str, float]:
    def look(name: str) -> float:
        begun = time.monotonic()
        variables = (f"{key}={value}" for key, value in ONE_THREAD.items())
        made.run(name, "env", *variables, WORKER_PYTHON, ON_NODE, *LOOK.words, timeout=400)
        return LOOK.steps / (time.monotonic() - begun)

    found = made.everywhere(look)
    say("steps/s: " + ", ".join(f"{name} {speed:.0f}" for name, speed in found.items()))
    return found
