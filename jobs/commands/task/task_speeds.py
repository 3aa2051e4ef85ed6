"""`nodewise task speeds`: how fast programs run on each node, as seen and as learned."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Column, Table

from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.terminal_text import plain
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json, short
from jobs.submitter.learned_speed import LearnedSpeeds, held_out_error, learn
from jobs.submitter.speeds import read_recorded

NOTHING = "no task of a program has succeeded yet: name one by `nodewise task submit --program`"


@click.command()
@click.argument("program", required=False)
@json_option
@service_options
@click.pass_obj
def speeds(home: Path, /, service: ServiceAddress, program: str | None, as_json: bool) -> None:
    """Show how fast programs run on each node: what their tasks have shown there, and what is learned from all of them.

    A program that never ran on a node is judged by what else ran there, and how it ran elsewhere.

    \b
    Example:
      nodewise task speeds
      nodewise task speeds resnet --json
    """
    client = service.client(home)
    seen = read_recorded(client)
    learned, error = learn(seen), held_out_error(seen)
    nodes = sorted({node.node_name for node in client.nodes()} | set(learned.nodes))
    programs = [name for name in sorted(learned.programs) if program in (None, name)]
    if as_json:
        rows = [_row(learned, name, node) for name in programs for node in nodes]
        print_json({"error_ratio": error, "speeds": rows})
    elif not programs:
        click.echo(f"no task of {program} has succeeded yet" if program else NOTHING)
    else:
        console().print(_table(learned, programs, nodes))
        click.echo(_sentence(error))


def _row(learned: LearnedSpeeds, program: str, node: str) -> dict[str, object]:
    return {
        "program": program,
        "node_name": node,
        "seen": learned.seen.get((node, program)),
        "learned": learned.fitted(node, program),
    }


def _table(learned: LearnedSpeeds, programs: list[str], nodes: list[str]) -> Table:
    table = Table("program", Column("node", no_wrap=True), box=None)
    for name in ("per second, seen", "by the fit", "of the fastest"):
        table.add_column(name, justify="right", no_wrap=True)
    for program in programs:
        shares = learned.shares(program, nodes)
        for node in sorted(nodes, key=lambda one: -shares[one]):
            seen, fitted = learned.seen.get((node, program)), learned.fitted(node, program)
            table.add_row(program, plain(node), short(seen), short(fitted), f"{100 * shares[node]:.0f} %")
    return table


def _sentence(error: float | None) -> str:
    if error is None:
        return "How far the fit is off is not known: no node has run two programs of which each ran on two nodes."
    return (
        f"For a pair that it was not told of, the fit is off by {100 * error:.0f} %, the median over the pairs above."
    )
