"""`nodewise top`: the nodes and what they are worth right now, in a table that stays and changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from infosvc.commands import show
from infosvc.commands.options import json_option, service_options
from infosvc.commands.spans import Span
from infosvc.commands.staying import often, signals_leave
from infosvc.commands.top_table import NODE, STATE, Look, Order, count_line, look, table
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import AWAY, NotFound
from infosvc.wire.service_options import ServiceAddress

USUAL = ("cpu_free_ratio", "load_1m", "memory_available_bytes", "perf_cpu")
EVERY_SECONDS = 2.0
DRAWN_PER_SECOND = 2.0  # so that ages grow, and a terminal of another size is filled, between two looks
PATIENCE_SECONDS = 3.0  # a look may take this long before its absence is told


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--sort",
    "by",
    metavar="NAME",
    default=NODE,
    show_default=True,
    help="Sort by node, state, or a name that is shown.",
)
@click.option("-r", "--reverse", is_flag=True, help="The largest first.")
@click.option("--filter", "part", metavar="TEXT", default="", help="Show only nodes whose names contain this.")
@click.option(
    "--every",
    type=Span(),
    metavar="SECONDS",
    default=EVERY_SECONDS,
    show_default=True,
    callback=often,
    help="How often to ask.",
)
@click.option("--once", is_flag=True, help="Print one table with all nodes and end, as it does without a terminal.")
@json_option
@service_options
@click.pass_obj
def top(
    home: Path,
    /,
    service: ServiceAddress,
    names: tuple[str, ...],
    every: float,
    once: bool,
    as_json: bool,
    **order: Any,
) -> None:
    """Watch all nodes: their states, and the latest values of some names, until Ctrl-C. With --json, once.

    Without names it shows free CPU, load, free memory and capability, as far as they are registered. A stale value is
    dim and shows its age; - means that there is no value. While the service is away, the table stays and says since
    when.

    \b
    Examples:
      nodewise top
      nodewise top load_1m disk_free_bytes --sort load_1m -r --filter rack7-
    """
    try:
        with service.client(home) as client:
            units = _units(client, names)
            shown = _check_order(Order(**order), units)
            if as_json or once or not sys.stdout.isatty():
                _print(_first(client, units), units, shown, as_json)
            else:
                _stay(client, TopView(_first(client, units), units, shown, every, show.console()))
    except KeyboardInterrupt:
        return  # how it is meant to end


def _units(client: InfoClient, names: Sequence[str]) -> dict[str, str]:
    """The names to show, each with its unit, empty for one that is not registered."""
    known = {producer.data_name: producer.unit for producer in client.producers()}
    wanted = names or [name for name in USUAL if name in known]
    if not wanted:
        raise NotFound(
            f"none of {', '.join(USUAL)} is registered", remedy="name others, `nodewise producer list` shows them"
        )
    return {name: known.get(name, "") for name in wanted}


def _check_order(order: Order, names: Mapping[str, str]) -> Order:
    if order.by not in (NODE, STATE, *names):
        raise click.UsageError(f"--sort {order.by} is not shown: sort by {', '.join((NODE, STATE, *names))}")
    return order


def _first(client: InfoClient, names: Mapping[str, str]) -> Look:
    try:
        return look(client, list(names))
    except NotFound as error:
        raise NotFound(f"{error}; `nodewise producer list` shows all") from error


def _print(seen: Look, units: Mapping[str, str], order: Order, as_json: bool) -> None:
    rows = order.of(seen.rows)
    if as_json:
        show.as_json([row.to_json() for row in rows])
    elif rows:
        show.console().print(table(rows, units))
    else:
        click.echo(_nothing(seen, order))


def _nothing(seen: Look, order: Order) -> str:
    if seen.rows:
        return f"no node has {order.part!r} in its name: `nodewise node list` shows all"
    return "no node is enrolled: add one with `nodewise node add HOST`"


@dataclass
class TopView:
    """What stands on the terminal: the last look, and why nothing came since, if something is the matter."""

    seen: Look
    units: Mapping[str, str]
    order: Order
    every: float
    console: Console
    trouble: str = ""

    def take(self, seen: Look) -> None:
        """The service has answered."""
        self.seen, self.trouble = seen, ""

    def draw(self) -> RenderableType:
        """As many rows as there is room for; drawn by a thread of its own, so each field is read once."""
        seen, trouble = self.seen, self.trouble
        passed, rows = time.monotonic() - seen.came, self.order.of(seen.rows)
        lines = [_line(f"{_clock(time.time())}  {count_line(rows)}")]
        if trouble or passed > self.every + PATIENCE_SECONDS:
            lines.append(_line(_silence(seen, passed, trouble), "bold red"))
        room = self.console.height - len(lines) - 2  # the heading has two lines
        if len(rows) > room:
            room = max(0, room - 1)
            more = f"{len(rows) - room:,} more: choose with --filter, --sort and --reverse, or see all with --once"
            return Group(*lines, table(rows[:room], self.units, passed), _line(more, "dim"))
        return Group(*lines, table(rows, self.units, passed) if rows else _line(_nothing(seen, self.order)))


def _line(text: str, style: str = "") -> Text:
    """One line however narrow the terminal."""
    return Text(show.plain(text), style, no_wrap=True, overflow="ellipsis")


def _silence(seen: Look, passed: float, trouble: str) -> str:
    sentence = f"nothing came since {_clock(seen.at)}, {show.seconds(passed)} ago"
    return f"{sentence}: {trouble}" if trouble else sentence


def _clock(unix: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix))


def _stay(client: InfoClient, view: TopView) -> None:
    """Look again and again until Ctrl-C, on a screen of its own, after which the terminal is as it was."""
    drawing = Live(console=view.console, get_renderable=view.draw, screen=True, refresh_per_second=DRAWN_PER_SECOND)
    with signals_leave(), drawing:
        while True:
            drawing.refresh()
            time.sleep(view.every)
            try:
                view.take(look(client, list(view.units)))
            except AWAY as error:
                view.trouble = str(error)
