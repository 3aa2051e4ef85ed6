"""`nodewise pool list`: which pools there are."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from infosvc.wire.terminal_text import moment
from jobs.commands.options import hadoop_options, page_reader, show
from jobs.kinds.pool.client import Found, Pools


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def list_(home: Path, /, as_json: bool, **hadoop: Any) -> None:
    """List the pools of the cluster, everybody's.

    \b
    Example:
      nodewise pool list --json
    """
    where = page_reader(home, hadoop)
    found = Pools(where.conf_dir, where.user).list()
    table = Table(Column("pool", no_wrap=True), "owner", Column("job", no_wrap=True), "state", "queue", "since")
    for one in found:
        since = moment(one.started_at)
        table.add_row(one.name, one.user, one.application_id, one.state.lower(), one.queue, since)
    show(as_json, [_to_json(one) for one in found], table)


def _to_json(one: Found) -> dict[str, Any]:
    """A pool, whose application is called `job_id` as the other commands call it."""
    body = asdict(one)
    return {"name": body.pop("name"), "job_id": body.pop("application_id"), **body}
