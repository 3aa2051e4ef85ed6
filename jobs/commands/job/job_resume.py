"""`nodewise job resume`: stores what a job had done when it failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from infosvc.wire.service_options import ServiceAddress
from jobs.application.resuming import resume as finish
from jobs.commands.options import hadoop_options, session, show
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options
from jobs.kinds import find_kind


@click.command()
@click.argument("job_id")
@service_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def resume(home: Path, /, job_id: str, service: ServiceAddress, as_json: bool, **hadoop: Any) -> None:
    """Store the results of a job that failed although all its work was done.

    It runs here and needs no container: it reads the rows that the job recorded in HDFS. They are kept for 7 days, of
    the last 10 such jobs; those of a job in a pool also when the pool has ended.

    \b
    Example:
      nodewise job resume application_1700000000000_0001
    """
    submitter = session(home, hadoop)
    outcome = finish(submitter, job_id, access(home, service).client(), find_kind)
    show(as_json, {"job_id": job_id, "said": outcome.message}, f"{job_id}: {outcome.message}")
