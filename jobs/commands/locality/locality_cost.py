"""`nodewise locality cost`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from infosvc.wire.service_options import ServiceAddress
from jobs.commands.service_options import service_options
from jobs.division.access_cost import access_cost
from jobs.errors import JobError
from locality.cost import AccessCost, Rate, Side

MOST_IN_MATRIX = 12
PIPE_WIDTH = 220
GIGABYTE, MEGABYTE = 1e9, 1e6
ENDS = {
    "receive_same_rack": (False, True),
    "send_same_rack": (True, True),
    "receive_other_rack": (False, False),
    "send_other_rack": (True, False),
}


@click.command()
@click.argument("nodes", metavar="[NODE]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, in seconds per byte and bytes per second.")
@service_options
@click.pass_obj
def cost(home: Path, nodes: tuple[str, ...], as_json: bool, service: ServiceAddress) -> None:
    """Show what it costs each node to read what another one holds, how well that is known, and how old it is.

    Every entry says whether it was measured, estimated from what both nodes measured with others, or assumed because
    nothing was. For more than 12 nodes, each line shows one node and the best rate at which it sent and received,
    unless you name some.

    The disk measured is the agent's own. Name the one with HDFS's data, as in the first example.

    \b
    Examples:
      nodewise producer put disk_sequential_read_bytes_per_second \\
        --cmd "scripts/disk_sequential_read_bytes_per_second.sh /data/dfs"
      nodewise slot start access_cost
      nodewise locality cost
      nodewise locality cost worker1 worker2 --json
    """
    with service.client(home) as client:
        found = access_cost(client)
    _check(nodes, found)
    shown = nodes or found.nodes
    body: dict[str, Any] = {"nodes": list(shown)}
    whole = bool(nodes) or len(shown) <= MOST_IN_MATRIX
    if whole:
        body["seconds_per_byte"] = list(_entries(found, shown))
    else:
        body["bytes_per_second"] = [_summary(found, node) for node in shown]
    if as_json:
        click.echo(json.dumps(body, indent=1))
    elif found.is_empty:
        click.echo(
            "nothing is measured yet: `nodewise slot start access_cost` starts it, `nodewise slot list` shows it"
        )
    else:
        table = _matrix(shown, body["seconds_per_byte"]) if whole else _summaries(body["bytes_per_second"])
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        Console(markup=False, highlight=False, width=width).print(table)


def _check(nodes: Sequence[str], found: AccessCost) -> None:
    unknown = [node for node in nodes if node not in found.nodes]
    if unknown:
        raise JobError(
            f"nothing is known of {', '.join(unknown)}",
            remedy=(
                f"name nodes among {', '.join(found.nodes) or 'none yet'}; `nodewise slot start "
                "access_cost` collects more"
            ),
        )


def _entries(found: AccessCost, nodes: Sequence[str]) -> Iterator[dict[str, Any]]:
    for reader, holder in product(nodes, nodes):
        entry = found.entry(reader, holder)
        yield {
            "reader": reader,
            "holder": holder,
            "seconds_per_byte": entry.seconds_per_byte,
            "basis": entry.basis.value,
            "age_seconds": entry.age,
        }


def _matrix(nodes: Sequence[str], entries: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="seconds per GB, of what a holder (column) has, for a reader (row)", show_lines=True)
    table.add_column("reader", no_wrap=True)
    for node in nodes:
        table.add_column(node, justify="right")
    for start in range(0, len(entries), len(nodes)):
        row = entries[start : start + len(nodes)]
        table.add_row(row[0]["reader"], *(_cell(entry) for entry in row))
    return table


def _cell(entry: dict[str, Any]) -> str:
    aged = "" if entry["age_seconds"] is None else f" {_age(entry['age_seconds'])}"
    return f"{entry['seconds_per_byte'] * GIGABYTE:.3g}\n{entry['basis']}{aged}"


def _summary(found: AccessCost, node: str) -> dict[str, Any]:
    ends = {name: found.best.get(Side(node, *end)) for name, end in ENDS.items()}
    measured = {"disk": found.disks.get(node), **ends}
    return {"node": node, "rack": found.rack(node), **{name: _rate_json(rate) for name, rate in measured.items()}}


def _rate_json(rate: Rate | None) -> dict[str, float] | None:
    return None if rate is None else {"bytes_per_second": rate.bytes_per_second, "age_seconds": rate.age}


def _summaries(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("node", "rack", title="best rates in MB/s, with their ages; empty where nothing was measured")
    for heading in ("disk", *ENDS):
        table.add_column(heading.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(row["node"], row["rack"], *(_rate(row[name]) for name in ("disk", *ENDS)))
    return table


def _rate(known: dict[str, float] | None) -> str:
    return f"{known['bytes_per_second'] / MEGABYTE:.4g}, {_age(known['age_seconds'])}" if known else ""


def _age(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
