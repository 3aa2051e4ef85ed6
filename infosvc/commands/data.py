"""`nodewise data`: the latest values."""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path

import click

from infosvc.commands import show
from infosvc.commands.options import connect, json_option, service_options
from infosvc.records import Datum, check_name, check_node_name

COLUMNS = ("node", "value", "unit", "age", "state", "reason")


@click.group()
def data() -> None:
    """Read and write the latest values.

    \b
    Example:
      nodewise data get cpu_free_ratio
    """


@data.command()
@click.argument("name")
@click.option("--node", help="Only this node.")
@click.option("--max-age", type=click.FloatRange(min=0), help="Leave out values older than this, in seconds.")
@json_option
@service_options
@click.pass_obj
def get(
    home: Path, url: str, token_file: Path | None, name: str, node: str | None, max_age: float | None, as_json: bool
) -> None:
    """Show the latest value of a name on every node, with its age and state.

    \b
    Example:
      nodewise data get cpu_free_ratio --max-age 10
    """
    found = connect(home, url, token_file).data(name, node, max_age)
    if as_json:
        show.as_json([item.to_json() for item in found])
    else:
        _print(name, found)


@data.command()
@click.argument("name")
@click.argument("node")
@click.argument("value")
@service_options
@click.pass_obj
def put(home: Path, url: str, token_file: Path | None, name: str, node: str, value: str) -> None:
    """Write one value of a registered name.

    \b
    Example:
      nodewise data put rack 127.0.1.11 r7
    """
    connect(home, url, token_file).put_value(check_name(name), check_node_name(node), value)
    click.echo(f"{name} on {node}: {value}")


def _finite(_context: click.Context, _option: click.Parameter, seconds: float) -> float:
    """A range alone lets NaN through."""
    if not math.isfinite(seconds):
        raise click.BadParameter(f"{seconds} is not a number of seconds.")
    return seconds


@data.command()
@click.argument("name")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 86_400),
    callback=_finite,
    default=2.0,
    show_default=True,
    help="Seconds between looks.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many looks; else at Ctrl-C.")
@service_options
@click.pass_obj
def watch(home: Path, url: str, token_file: Path | None, name: str, interval: float, count: int | None) -> None:
    """Show the values of a name again and again.

    \b
    Example:
      nodewise data watch cpu_free_ratio --interval 1
    """
    client = connect(home, url, token_file)
    for look in itertools.count(1):
        click.echo(time.strftime("%H:%M:%S"))
        _print(name, client.data(name))
        if look == count:
            return
        time.sleep(interval)


def _print(name: str, found: list[Datum]) -> None:
    rows = [(d.node_name, d.data_value, d.unit, show.seconds(d.age), d.state, d.reason) for d in found]
    show.as_table(COLUMNS, rows, f"{name} has no value that fits: see `nodewise slot list`")
