"""`nodewise job status`: how far a job is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobs.application import following
from jobs.commands.job import attend, bars, pooled
from jobs.commands.job.records import application_json
from jobs.commands.options import hadoop_options, progress_console, session, show
from jobs.job_ids import POOL_JOB


@click.command()
@click.argument("job_id")
@click.option("--watch", is_flag=True, help="Follow the job until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def status(home: Path, /, job_id: str, watch: bool, as_json: bool, **hadoop: Any) -> None:
    """Show how far a job is, and each of its nodes.

    \b
    Example:
      nodewise job status application_1700000000000_0001 --watch
    """
    if POOL_JOB.fullmatch(job_id):
        pooled.show_status(home, hadoop, job_id, watch, as_json)
        return
    submitter = session(home, hadoop)
    if watch:
        attend.watch(submitter, job_id, progress_console)
    found = submitter.yarn.application(job_id)
    seen = following.ask(found)
    body = application_json(found) | {"status": seen.to_json() if seen else None}
    said = f"{found.state} {found.final} {found.progress:.0%} {found.diagnostics}".strip()
    show(as_json, body, bars.snapshot(following.Sight(found, seen), said))
