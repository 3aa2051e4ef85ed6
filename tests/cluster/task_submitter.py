"""Submits tasks and tells what becomes of them: it does what it reads line by line, as JSON, in one session.

Arguments: the site files' folder, the jars' folder, the user. Each line is `[what, argument...]`, each answer
`["ok", result]` or `["refused", sentence]`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hadoop.client import append_stream, jvm
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.task_spec import TaskSpec
from jobs.application import job_record
from jobs.application.submit import InfoAccess, Submitter
from jobs.errors import JobError
from jobs.kinds.task.committing import Commit
from jobs.kinds.task.request import check, order, preferring
from jobs.submitter import moving
from jobs.submitter.cluster import TaskCluster

submitter: Submitter


def submit(spec: dict[str, Any], task_id: str, archive: str | None = None, prefers: Sequence[str] = ()) -> str:
    """The application's id."""
    nodes = submitter.yarn.running_nodes()
    made = order(TaskSpec.from_json(spec), task_id, Path(archive) if archive else None, nodes)
    check(submitter, made)
    return submitter.submit(preferring(made, prefers, {}))


def application(job_id: str) -> dict[str, Any]:
    """What YARN knows."""
    found = asdict(submitter.yarn.application(job_id))
    return found | {"tags": sorted(found["tags"])}


def wait(job_id: str) -> dict[str, Any]:
    """What YARN knows at the end, and the record that the task left."""
    while not submitter.yarn.application(job_id).has_ended:
        time.sleep(0.1)
    record = job_record.load(submitter.filesystem, job_id)
    return application(job_id) | {"record": record and record.status.to_json(), "said": record and record.said}


def take_log_away(task_id: str, stream: str) -> None:
    """What the runner of a task has open, it can write to no more."""
    append_stream.take_away(submitter.filesystem, f"{submitter.filesystem.home()}/.nodewise/tasks/{task_id}/{stream}")


def kill(job_id: str) -> None:
    """Have YARN end it."""
    submitter.kill(job_id)


def withdraw(job_id: str, why: str) -> None:
    """Have YARN end it for a reason, as the submitter does."""
    submitter.yarn.kill(job_id, why)


def stage(target: str, number: int, folder: str) -> int:
    """Upload as an attempt does that does not come to commit."""
    return Commit(submitter.filesystem, target, number).upload(Path(folder))


def begin(target: str, number: int) -> None:
    """Begin as an attempt does."""
    Commit(submitter.filesystem, target, number).begin()


def finish_earlier(target: str, number: int, identity: int) -> bool:
    """Finish what was noted, as a later attempt does."""
    return Commit(submitter.filesystem, target, number).finish_earlier(identity)


def commit(target: str, number: int, identity: int) -> None:
    """Commit as an attempt does that wakes."""
    Commit(submitter.filesystem, target, number).commit(identity)


def move(url: str, token: str) -> list[str]:
    """What the submitter says that looks for tasks to move, once all that runs has run for long enough."""
    clock, said = [0.0], list[str]()
    client = InfoClient(url, token)
    mover = moving.Mover(client, TaskCluster(submitter, InfoAccess(url), client), said.append, lambda: clock[0])
    for seconds in (moving.PAUSE_SECONDS, moving.LEAST_SECONDS):
        clock[0] += seconds
        mover.look()
    return said


def main(conf_dir: str, jars: str, user: str) -> None:
    """Answer until there is no line any more."""
    global submitter
    home = jvm.HadoopHome(Path(conf_dir), Path(jars), user)
    jvm.start(home)
    submitter = Submitter(home, lambda line: print(line, file=sys.stderr))
    for line in sys.stdin:
        what, *words = json.loads(line)
        try:
            answer = ["ok", globals()[what](*words)]
        except (JobError, HadoopError) as error:
            answer = ["refused", str(error)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
