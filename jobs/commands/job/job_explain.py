"""`nodewise job explain`: why each node got its share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from infosvc.wire.fields import answer_of
from jobs.commands.job import tables
from jobs.commands.job.reports import save as save_into
from jobs.commands.options import console, hadoop_options, session
from jobs.division import decision_store, explanation


@click.command()
@click.argument("job")
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Also put the record into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def explain(home: Path, /, job: str, node: str | None, save: Path | None, as_json: bool, **hadoop: Any) -> None:
    """Explain each node's share: its capability with age and confidence, the formula, and what was moved.

    JOB is the id of a job, even of one that failed, its output folder in HDFS, or a decision.json on this machine (no
    cluster needed).

    \b
    Example:
      nodewise job explain application_1700000000000_0001 --node worker1
    """
    decision = decision_store.load(job, lambda: session(home, hadoop))
    said = explanation.explanation(decision, node)
    if as_json:
        click.echo(json.dumps(answer_of(said), indent=1))
    else:
        for line in explanation.heading(said):
            console.print(line, soft_wrap=True)
        console.print(tables.shares_table(said))
        for line in explanation.sentences(said):
            console.print(line, soft_wrap=True)
    if save:
        save_into(save, decision.to_bytes(), "record")
