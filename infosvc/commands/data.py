"""`nodewise data`: the latest values, and what they were."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from infosvc.commands import show
from infosvc.commands.options import Moment, json_option, service_options
from infosvc.data.history import summary
from infosvc.wire.answers import History
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, check_name, check_node_name
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.terminal_text import sparkline

COLUMNS = ("node", "value", "unit", "age", "state", "reason")
STATISTICS = ("count", "min", "max", "mean", "p50", "p90", "p99")


@click.group()
def data() -> None:
    """Read and write the latest values.

    \b
    Example:
      nodewise data get cpu_free_ratio
    """


@data.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--node", help="Only this node.")
@click.option("--max-age", type=click.FloatRange(min=0), help="Leave out values older than this, in seconds.")
@json_option
@service_options
@click.pass_obj
def get(
    home: Path,
    service: ServiceAddress,
    names: tuple[str, ...],
    node: str | None,
    max_age: float | None,
    as_json: bool,
) -> None:
    """Show the latest value of some names on every node, with its age and state.

    \b
    Examples:
      nodewise data get cpu_free_ratio --max-age 10
      nodewise data get load_1m memory_available_bytes --node 127.0.1.11
    """
    by_name = service.client(home).data_many(names, node, max_age)
    values = [datum for name in names for datum in by_name[name]]
    if as_json:
        show.as_json([item.to_json() for item in values])
    else:
        several = len(names) > 1
        columns = ("data_name", *COLUMNS) if several else COLUMNS
        nothing = f"{', '.join(names)}: no value that fits: see `nodewise slot list`"
        show.as_table(columns, [_row(datum, several) for datum in values], nothing)


@data.command(context_settings={"ignore_unknown_options": True})  # a value may be below 0
@click.argument("name")
@click.argument("node")
@click.argument("value")
@service_options
@click.pass_obj
def put(home: Path, service: ServiceAddress, name: str, node: str, value: str) -> None:
    """Write one value of a registered name.

    \b
    Example:
      nodewise data put rack 127.0.1.11 r7
    """
    service.client(home).put_value(check_name(name), check_node_name(node), value)
    click.echo(f"{name} on {node}: {value}")


@data.command("rm")
@click.argument("name")
@click.argument("node")
@service_options
@click.pass_obj
def remove(home: Path, service: ServiceAddress, name: str, node: str) -> None:
    """Forget one value and its history; a slot that still runs brings the next.

    \b
    Example:
      nodewise data rm rack 127.0.1.11
    """
    service.client(home).delete_value(check_name(name), check_node_name(node))
    click.echo(f"{name} on {node}: forgotten")


@data.command()
@click.argument("name")
@click.argument("node")
@click.option("--since", type=Moment(), help="Only from this time on: 15m, 1h or 7d ago, or Unix seconds.  [all kept]")
@click.option("--until", type=Moment(), help="Only until this time, written as for --since.  [now]")
@json_option
@service_options
@click.pass_obj
def history(
    home: Path,
    service: ServiceAddress,
    name: str,
    node: str,
    since: float | None,
    until: float | None,
    as_json: bool,
) -> None:
    """Show what a name was on a node: minimum, maximum, mean and percentiles.

    Where its producer keeps no history (--keep), the last hour is shown: one number for each 30 s, out of the service's
    memory.

    \b
    Example:
      nodewise data history cpu_free_ratio 127.0.1.11 --since 1h
    """
    client = service.client(home)
    history = client.history(check_name(name), check_node_name(node), since, until)
    if not history.points:
        history = _last_hour(client, history, since)
    if as_json:
        show.as_json(history.to_json())
    else:
        _print_history(history)


@data.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--node", "nodes", multiple=True, help="Only this node; repeatable.")
@click.option("--count", type=click.IntRange(min=1), help="End after so many new values; else at Ctrl-C.")
@json_option
@service_options
@click.pass_obj
def watch(
    home: Path,
    service: ServiceAddress,
    names: tuple[str, ...],
    nodes: tuple[str, ...],
    count: int | None,
    as_json: bool,
) -> None:
    """Show the values of some names, then each new one as it comes. With --json, one object a line.

    \b
    Examples:
      nodewise data watch cpu_free_ratio
      nodewise data watch load_1m cpu_free_ratio --node 127.0.1.11 --json
    """
    try:
        with service.client(home) as client:
            _watch(client, names, nodes, count, as_json)
    except KeyboardInterrupt:
        click.echo()


def _watch(client: InfoClient, names: Sequence[str], nodes: Sequence[str], count: int | None, as_json: bool) -> None:
    """Present values, then `count` new ones; after a gap the present ones again."""
    with client.events(["value"], names, nodes) as events:  # opened first, so that nothing falls in between
        _tell_all(_present(client, names, nodes), as_json)
        told = 0
        for event in events:
            if event.type == "gap":
                click.echo("some values were missed; these are the present ones:", err=True)
                _tell_all(_present(client, names, nodes), as_json)
                continue
            _tell(event.data, as_json)
            told += 1
            if told == count:
                return


def _present(client: InfoClient, names: Sequence[str], nodes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The latest values in the form of events."""
    by_name, now = client.data_many(names), time.time()
    for datum in (datum for name in names for datum in by_name[name] if not nodes or datum.node_name in nodes):
        kept = ("data_name", "node_name", "data_value", "outcome")
        shown = {key: value for key, value in datum.to_json().items() if key in kept}
        yield shown | {"time": None if datum.age is None else now - datum.age}


def _tell_all(changes: Iterator[dict[str, Any]], as_json: bool) -> None:
    for change in changes:
        _tell(change, as_json)


def _tell(change: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(dict(change)))
        return
    at = "never   " if change["time"] is None else time.strftime("%H:%M:%S", time.localtime(change["time"]))
    value = "no value" if change["data_value"] is None else change["data_value"]
    outcome = change["outcome"] or "forgotten"
    click.echo(show.plain(f"{at}  {change['data_name']}  {change['node_name']}  {value}  {outcome}"))


def _row(datum: Datum, several: bool) -> tuple[object, ...]:
    row = (datum.node_name, datum.data_value, datum.unit, show.seconds(datum.age), datum.state, datum.reason)
    return (datum.data_name, *row) if several else row


def _print_history(history: History) -> None:
    click.echo(
        f"{history.data_name} on {history.node_name}, {show.moment(history.since)} to {show.moment(history.until)}"
    )
    if not history.points:
        click.echo("no value from this time is stored: `nodewise producer put NAME --keep SECONDS` sets for how long")
        return
    fields = asdict(history)
    numbers = {key: fields[key] for key in STATISTICS}
    show.as_table(STATISTICS, [[_short(number) for number in numbers.values()]], "")
    line = sparkline(history.points, history.since, history.until)
    if line:
        click.echo(f"{line}  {history.unit}".rstrip())


def _last_hour(client: InfoClient, history: History, since: float | None) -> History:
    """Of what the service has in memory as much as lies in the window of an empty history; nothing as it is."""
    try:
        hour = client.hour(history.data_name, history.node_name)
    except NotFound:
        return history  # it has no value there
    begin = max(hour.since, since or 0.0)
    times = ((hour.since + place * hour.step, number) for place, number in enumerate(hour.numbers))
    points = [(at, repr(number)) for at, number in times if number is not None and begin <= at <= history.until]
    window = (begin, history.until)
    return summary(history.data_name, history.node_name, history.unit, window, points) if points else history


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"
