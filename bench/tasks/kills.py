"""A submitter that is killed again and again while tasks go over to YARN: each must go over exactly once."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.stage import PATIENT, Stage, until
from bench.tasks.scene import MEMORY_MB
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState

LIFE_SECONDS = (0.5, 5.0)
"""How long a submitter lives: its JVM needs one to three of these seconds, and then there is a turn a second."""
TASKS_A_LIFE = 1
PATIENCE_SECONDS = 900.0


def measure(made: Stage, kills: int, seed: int) -> Mapping[str, float]:
    """Kill so many submitters at random moments; how many tasks YARN got twice, or never.

    The service goes on without a submitter of its own, which would take these tasks.
    """
    random_moments = random.Random(seed)  # noqa: S311 a draw, no secret
    made.end_service()
    made.serve()
    with tempfile.TemporaryDirectory(prefix="bench-kills-") as folder:
        client = made.client()
        token_file = Path(folder, "token")
        token_file.write_text(client.create_token("submitter", Role.SUBMITTER)[1])
        tasks: list[Task] = []
        between = 0
        for _ in range(kills):
            tasks += [client.submit_task(TaskSpec(["true"], memory_mb=MEMORY_MB)) for _ in range(TASKS_A_LIFE)]
            with _submitter(made, token_file):
                time.sleep(random_moments.uniform(*LIFE_SECONDS))
            open_tasks = client.tasks(states=[TaskState.QUEUED])
            between += any(task.taken and task.application_id is None for task in open_tasks)
        with _submitter(made, token_file):
            until(lambda: not _open(made), PATIENCE_SECONDS, "all tasks have ended")
        return {
            "kills": float(kills),
            "kills_between": float(between),
            **_count(made, [client.task(task.task_id) for task in tasks]),
        }


@contextmanager
def _submitter(made: Stage, token_file: Path) -> Iterator[None]:
    """A submitter that is killed at the end of the block."""
    words = [sys.executable, "-m", "jobs.commands.submitter", "--home", str(made.cluster.home), "--url", made.url]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [*words, "--token-file", str(token_file)], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    ) as process:
        try:
            yield
        finally:
            process.kill()


def _open(made: Stage) -> list[Task]:
    return made.client().tasks(states=[state for state in TaskState if not state.is_final])


def _count(made: Stage, tasks: list[Task]) -> Mapping[str, float]:
    """How many applications of YARN each task has."""
    applications = ResourceManager(made.cluster.rm_http, made.cluster.user, PATIENT).applications("NODEWISE")
    tags = Counter(tag for one in applications for tag in one.get("applicationTags", "").split(","))
    found = [tags[f"task:{task.task_id}"] for task in tasks]
    return {
        "tasks": float(len(tasks)),
        "tasks_never": float(sum(count == 0 for count in found)),
        "tasks_twice": float(sum(count > 1 for count in found)),
        "tasks_not_succeeded": float(sum(task.state is not TaskState.SUCCEEDED for task in tasks)),
    }
