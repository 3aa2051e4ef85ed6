"""`nodewise locality replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from jobs.commands.options import console, hadoop_options, session, show
from jobs.division import decision_store
from jobs.division import replay as again
from jobs.reports.texts import bytes_text, over_optimum_text, ratio_text
from locality.policies import POLICIES


@click.command()
@click.argument("record")
@click.option("--policy", "policies", multiple=True, help=f"One of {', '.join(sorted(POLICIES))}; may be repeated.")
@click.option(
    "--capability",
    "capabilities",
    multiple=True,
    metavar="NAME|FILE",
    help="Name of a recorded value, or a JSON file {node: value}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def replay(
    home: Path,
    /,
    record: str,
    policies: tuple[str, ...],
    capabilities: tuple[str, ...],
    as_json: bool,
    **hadoop: Any,
) -> None:
    """Plan again from the record of a job's decision, and predict how long each plan takes.

    RECORD is a decision.json on this machine (no cluster needed), a job id, or an output folder in HDFS. --capability
    takes the name of any value that the record holds, or a JSON file {node: value}. Without options: every policy.

    \b
    Example:
      nodewise locality replay decision.json --policy algorithm1 --policy maxflow --capability perf_history
    """
    decision = decision_store.load(record, lambda: session(home, hadoop))
    tried = policies or ((decision.policy,) if capabilities else tuple(POLICIES))
    values = {name: again.values_of(decision, name) for name in capabilities or (decision.capability,)}
    body = again.comparison(decision, again.attempts(decision, tried, values))
    show(as_json, body, _table(body))
    if not as_json:
        console.print(
            f"First the plan of {body['job_id']}, made at {body['made_at']}: {body['images']} images in "
            f"{body['blocks']} blocks, {body['nodes']} nodes, judged by {decision.capability}. "
            f"Makespans are {body['makespan_meaning']}."
        )


def _table(body: dict[str, Any]) -> Table:
    table = Table(Column("policy", overflow="fold"))
    several = len({row["capability"] for row in body["plans"]}) > 1
    if several:
        table.add_column("judged by", overflow="fold")
    for heading in ("makespan", "over\nbound", "moved", "over\noptimum", "local", "plan,\nms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in body["plans"]:
        table.add_row(
            row["policy"],
            *([row["capability"]] if several else []),
            "for ever" if row["makespan"] is None else f"{row['makespan']:.1f}",
            ratio_text(row["makespan_over_bound"]),
            bytes_text(row["bytes_moved"]),
            over_optimum_text(row["bytes_moved_over_optimal"]),
            f"{row['locality_ratio']:.1%}",
            f"{row['planning_seconds'] * 1000:.1f}",
            end_section=row["recorded"],
        )
    return table
