"""`nodewise train report`: what a run has done on each node, and what its losses have cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.table import Table

from jobs.application.submit import Submitter
from jobs.commands.job import records
from jobs.commands.job.reports import read_report
from jobs.commands.options import hadoop_options, session, show
from jobs.errors import JobError
from jobs.kinds.train.news import computes


@click.command()
@click.argument("output", metavar="OUTPUT|JOB")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def report(home: Path, /, output: str, as_json: bool, **hadoop: Any) -> None:
    """Show what each node has done for a finished run, who computed when, and what lost members have cost.

    Name the run by its output folder or by its id.

    \b
    Example:
      nodewise train report hdfs:///out/run1
    """
    submitter = session(home, hadoop)
    body = read_report(submitter.filesystem, output_of(submitter, output))
    if "generations" not in body:
        raise JobError(f"{output} holds the report of another kind of job", remedy=f"nodewise job report {output}")
    show(as_json, body, Group(_nodes(body), *_events(body)))


def output_of(submitter: Submitter, run: str) -> str:
    """The output of a run that is named by its id; an output stays as it is."""
    record = records.of_other_kind(submitter, run)
    if record is None:
        return run
    if record.status.kind != "train" or not record.status.section:
        raise JobError(f"{run} is not a training run", remedy=f"nodewise job report {run}")
    return str(record.status.section["Output"])


def _nodes(body: Mapping[str, Any]) -> Table:
    found = Table("node", "samples", "a second", "computing", "waiting", title_justify="left")
    for column in found.columns[1:]:
        column.justify = "right"
    loss = "" if body["loss"] is None else f", loss {body['loss']:.6g}"
    stopped = ", then stopped" if body.get("stopped") else ""
    found.title = (
        f"{body['steps']:,} steps in {body['seconds']:,.0f} s{stopped}{loss}; checkpoint after {body['checkpoint']:,}"
    )
    for node, done in body["nodes"].items():
        computing = done["compute_seconds"]
        rate = f"{done['samples'] / computing:,.0f}" if computing else ""
        found.add_row(node, f"{done['samples']:,}", rate, f"{computing:,.1f} s", f"{done['wait_seconds']:,.1f} s")
    return found


def _events(body: Mapping[str, Any]) -> list[str]:
    """Generations and losses in the order of time, a line each."""
    told = [(one["at_seconds"], _generation(one)) for one in body["generations"]]
    told += [(one["at_seconds"], _loss(one)) for one in body["losses"]]
    return [f"{at:,.1f} s: {said}" for at, said in sorted(told, key=lambda one: one[0])]


def _generation(body: Mapping[str, Any]) -> str:
    return computes(body["number"], body["first_step"], body["nodes"], is_resumed=body["from_checkpoint"])


def _loss(body: Mapping[str, Any]) -> str:
    cost = body["cost_seconds"]
    end = "nobody went on" if cost is None else f"the others went on after {cost:.1f} s"
    return f"{body['node']} takes part no more: {body['why']}; {end}"
