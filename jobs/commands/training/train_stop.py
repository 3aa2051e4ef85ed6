"""`nodewise train stop`: the end of a run after a step, with its state in HDFS."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hadoop.errors import HadoopError
from hadoop.rest.told import tell_end
from jobs.application.job_record import kind_of
from jobs.application.submit import Submitter
from jobs.commands.job import attend
from jobs.commands.options import hadoop_options, progress_console, session, show
from jobs.errors import JobError
from jobs.kinds.train.hearing import STOP
from jobs.submitter.telling import tell

AGAIN_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
"""How long its application master may be away: it starts again."""


@click.command()
@click.argument("job_id", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def stop(home: Path, /, job_id: str, as_json: bool, **hadoop: Any) -> None:
    """Have a run end after the step that it computes, and wait until its state is stored.

    Where members average only now and then, it ends after the next average. `nodewise train resume` goes on from there.
    A run that has not begun to compute makes one step first: `nodewise train kill` ends it at once.

    \b
    Example:
      nodewise train stop application_1700000000000_0001
    """
    submitter = session(home, hadoop)
    check(submitter, job_id)
    ask(submitter, job_id)
    ended = attend.watch(submitter, job_id, progress_console)
    said = tell_end(ended.diagnostics)
    show(as_json, {"job_id": job_id, "final": ended.final, "said": said}, f"{job_id}: {said}")


def check(submitter: Submitter, job_id: str) -> None:
    """JobError when it is no training run of this user that has not ended."""
    application = submitter.yarn.application(job_id)
    if kind_of(application.tags) != "train":
        raise JobError(f"{job_id} is not a training run", remedy=f"nodewise job kill {job_id}")
    if application.has_ended:
        raise JobError(
            f"{job_id} has ended already: {application.final.lower()}", remedy=f"nodewise train report {job_id}"
        )
    if not submitter.filesystem.exists(f"{submitter.staging(job_id)}/job.json"):
        raise JobError(
            f"{job_id} is not a run of {submitter.user}: its files are not in {submitter.staging(job_id)}",
            remedy="only who has submitted a run can stop it",
        )


def ask(submitter: Submitter, job_id: str, pause: Callable[[float], None] = time.sleep) -> None:
    """Tell its application master, until it has heard it or the run has ended; JobError when it stays away."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not submitter.yarn.application(job_id).has_ended:
        try:
            tell(submitter.filesystem, submitter.staging(job_id), STOP)
            return
        except HadoopError as error:
            if time.monotonic() > until:
                raise JobError(
                    f"{job_id} cannot be told to stop: {error}", remedy=f"end it: nodewise train kill {job_id}"
                ) from error
        pause(AGAIN_SECONDS)
