"""`nodewise pool show`: what a pool has, and what it does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.table import Column, Table

from hadoop.rest.addresses import resourcemanager_addresses
from jobs.application.following import ask_proxy
from jobs.application.status import JobStatus
from jobs.commands.options import hadoop_options, page_reader, show
from jobs.kinds.pool.about import tell_settings, tell_worker
from jobs.kinds.pool.client import Pools
from jobs.kinds.pool.wishes import READY
from jobs.reports.texts import count_text


@click.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def show_(home: Path, /, name: str, as_json: bool, **hadoop: Any) -> None:
    """Show a pool of your own: what its workers have loaded, the state of each, and its jobs.

    \b
    Example:
      nodewise pool show photos
    """
    where = page_reader(home, hadoop)
    pool = Pools(where.conf_dir, where.user).find(name)
    jobs, status = pool.jobs(), ask_proxy(resourcemanager_addresses(where.conf_dir), pool.application_id)
    about = tell_settings(name, pool)
    nodes = [{**node.to_json(), "worker": tell_worker(node)} for node in status.nodes] if status else []
    show(as_json, {**about, "nodes": nodes, "jobs": jobs}, Group(_heading(about), _nodes(status), _jobs(jobs)))


def _heading(about: Mapping[str, Any]) -> str:
    idle = f"ends after {about['idle']} without a job or picture" if about["idle_seconds"] else "never ends by itself"
    model = f"{about['model_file']} ({about['model']})" if about["model_file"] else about["model"]
    nodes = f"{count_text(about['most_nodes'], 'nodes')} at most" if about["most_nodes"] else "all nodes"
    best = f", the best by {about['best_by']}" if about["best_by"] else ""
    return (
        f"{about['name']} ({about['job_id']}): {about['engine']}, {model}, batch {about['batch']}, "
        f"{count_text(about['vcores'], 'vcores')} a worker, on {nodes}{best}, queue {about['queue']}, {idle}"
    )


def _nodes(status: JobStatus | None) -> Table | str:
    if status is None:
        return "its application master does not say how its workers are"
    table = Table(Column("node", no_wrap=True), "worker", "in work", "failures", "said")
    for node in status.nodes:
        said = "" if node.said == READY else node.said
        table.add_row(node.node_name, tell_worker(node), str(node.running), str(node.failures), said)
    return table


def _jobs(jobs: list[dict[str, Any]]) -> Table:
    table = Table(Column("job", no_wrap=True), "state", "done", "weight", "output", "said")
    for one in jobs:
        done = f"{one['done']} of {one['of']}"
        table.add_row(one["job_id"], one["state"], done, f"{one['weight']:g}", one["output"], one["said"])
    return table
