"""`nodewise job list`: the jobs that YARN remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from jobs.application import job_record
from jobs.commands.job import pooled
from jobs.commands.job.records import application_json
from jobs.commands.options import hadoop_options, session, show


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def list_(home: Path, /, as_json: bool, **hadoop: Any) -> None:
    """List the jobs that YARN remembers, and those in pools of which anything is kept.

    \b
    Example:
      nodewise job list --json
    """
    submitter = session(home, hadoop)
    applications = submitter.yarn.applications()
    found = [*applications, *pooled.list_kept(submitter.filesystem, applications)]
    table = Table(Column("job", no_wrap=True), "kind", "state", "outcome", "progress", "attempts", "said")
    for one in found:
        said = one.diagnostics.split("\n", maxsplit=1)[0]
        kind, progress = job_record.kind_of(one.tags), f"{one.progress:.0%}"
        table.add_row(one.application_id, kind, one.state, one.final, progress, str(one.attempt), said)
    show(as_json, [application_json(one) for one in found], table)
