"""`nodewise env warm`: have nodes fetch an environment before anybody waits for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from hadoop.client.yarn import Application
from infosvc.wire.service_options import ServiceAddress
from jobs.application import job_record
from jobs.application.following import ask
from jobs.application.job_spec import JobOptions
from jobs.application.submit import Submitter
from jobs.commands.options import hadoop_options, progress_console, session, show
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options
from jobs.kinds.warm import request


@click.command("warm")
@click.argument("name")
@click.option("--node", "nodes", multiple=True, metavar="NODE", help="Lay it out there; repeatable.")
@click.option("--all", "everywhere", is_flag=True, help="Lay it out on all nodes that can run it.")
@click.option("--queue", default="default", show_default=True, help="YARN queue to run in.")
@click.option(
    "--node-seconds",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="That a node may take, waiting for room there included.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@service_options
@hadoop_options
@click.pass_obj
def warm(
    home: Path,
    /,
    name: str,
    nodes: Sequence[str],
    everywhere: bool,
    queue: str,
    node_seconds: float,
    as_json: bool,
    service: ServiceAddress,
    **hadoop: Any,
) -> None:
    """Lay an environment out on nodes ahead, so that what is started there in it begins at once.

    It is a short job, with a container of 64 MB on each of the nodes: YARN fetches what a node lacks.

    \b
    Example:
      nodewise env warm onnx@1.32 --all
      nodewise env warm onnx@1.32 --node worker-1 --node worker-2
    """
    if bool(nodes) == everywhere:
        raise click.UsageError("name nodes by --node, or take --all: one of these")
    begun, submitter = time.monotonic(), session(home, hadoop)
    options = replace(JobOptions(), queue=queue, container_wait=node_seconds)
    job_id = submitter.submit(request.order(submitter, name, nodes, options, access(home, service)))
    _follow(submitter, job_id)
    record = job_record.load(submitter.filesystem, job_id)
    warmed = [one for one in record.status.nodes if one.done] if record else []
    table = Table("node", "has it after", title=f"{name}, {job_id}", title_justify="left")
    for one in warmed:
        table.add_row(one.node_name, one.said)
    body = {"job_id": job_id, "nodes": [one.node_name for one in warmed], "seconds": time.monotonic() - begun}
    show(as_json, body, table)


def _follow(submitter: Submitter, job_id: str) -> None:
    """Wait for the end, and name each node as soon as it has the environment; JobError when the job fails."""
    told: set[str] = set()

    def tell(application: Application) -> None:
        status = ask(application)
        for one in status.nodes if status else ():
            if one.done and one.node_name not in told:
                told.add(one.node_name)
                progress_console.print(f"{one.node_name} has it after {one.said}", style="dim")

    progress_console.print(f"{job_id} lays it out; `nodewise job kill {job_id}` ends it", style="dim", soft_wrap=True)
    submitter.follow(job_id, tell)
