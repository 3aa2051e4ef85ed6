"""`nodewise job kill`: the end of a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobs.commands.job import pooled
from jobs.commands.options import console, hadoop_options, session
from jobs.job_ids import POOL_JOB


@click.command()
@click.argument("job_id")
@hadoop_options
@click.pass_obj
def kill(home: Path, /, job_id: str, **hadoop: Any) -> None:
    """End a job and all its containers; nothing is left at its output. The workers of a job in a pool stay.

    \b
    Example:
      nodewise job kill application_1700000000000_0001
    """
    if POOL_JOB.fullmatch(job_id):
        console.print(pooled.kill(home, hadoop, job_id))
        return
    submitter = session(home, hadoop)
    before = submitter.yarn.application(job_id)
    submitter.kill(job_id)
    after = submitter.yarn.application(job_id)
    if before.has_ended:
        console.print(f"{job_id} had ended already: {before.final.lower()}")
    elif after.final == "KILLED":
        console.print(f"{job_id} killed")
    else:
        console.print(f"{job_id} ended by itself before it could be killed: {after.final.lower()}")
