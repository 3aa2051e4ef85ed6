"""`nodewise queue`: how full YARN's queues are, what waits in them and for what, and when it is expected to begin."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Column, Table

from hadoop.rest.amounts import MEMORY, VCORES, say_amount
from infosvc.wire.queues import ClusterQueues, WaitingApplication
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.terminal_text import moment, plain
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json

OWN = "*"
UNITS = ((1, "s"), (60, "min"), (3_600, "h"), (86_400, "d"))
MOST_OF_A_UNIT = 120


@click.command()
@json_option
@service_options
@click.pass_obj
def queue(home: Path, /, service: ServiceAddress, as_json: bool) -> None:
    """Show YARN's queues and what waits in them: for what, and when it is expected to begin.

    You see your own tasks and the positions of all others; with a token of role admin all. What is expected holds in
    eight of ten cases.

    \b
    Example:
      nodewise queue --watch 5s
    """
    found = service.client(home).queues()
    if as_json:
        print_json(found.to_json())
        return
    if found.said:
        click.echo(plain(found.said))
        return
    console().print(_queues(found))
    if found.waiting:
        console().print(_waiting(found))
    else:
        click.echo("nothing waits")
    if not found.whole:
        click.echo("more wait than are shown", err=True)
    if found.held_back:
        click.echo(
            f"YARN does not have {found.held_back:,} of your tasks yet: see `nodewise task list --state waiting`"
        )


def _queues(found: ClusterQueues) -> Table:
    table = Table(Column("queue", no_wrap=True), "state", box=None)
    for heading in ("used", "guaranteed", "at most", "application masters", "running", "waiting", "users"):
        table.add_column(heading, justify="right")
    for one in found.queues:
        masters = f"{one.masters.used:,} of {say_amount(one.masters.resource, one.masters.most)}"
        parts = (f"{part:.0%}" for part in (one.used, one.capacity, one.maximum))
        counts = map(str, (one.running, one.waiting, len(one.users)))
        table.add_row(plain(one.name), plain(one.state.lower()), *parts, masters, *counts)
    return table


def _waiting(found: ClusterQueues) -> Table:
    table = Table(Column("place", justify="right"), Column("queue", no_wrap=True), box=None)
    for heading in ("task or job", "name", "asks for", "since", "begins", "waits for"):
        table.add_column(heading)
    for one in found.waiting:
        place = f"{OWN if one.own else ''}{one.position}"
        asks = "" if one.memory_mb is None else ", ".join(_asks(one))
        said = (one.task_id or one.job_id, one.name, asks, moment(one.since, ""), _begins(one, found.time))
        table.add_row(place, plain(one.queue), *(plain(text or "") for text in (*said, one.waits_for)))
    return table


def _asks(one: WaitingApplication) -> list[str]:
    asks = {MEMORY: one.memory_mb or 0, VCORES: one.vcores or 0, **(one.resources or {})}
    return [say_amount(name, count) for name, count in asks.items()]


def _begins(one: WaitingApplication, now: float) -> str:
    if one.start is None:
        return one.no_start or ""
    return in_words(max(0.0, one.start.earliest - now), max(0.0, one.start.latest - now))


def in_words(earliest: float, latest: float) -> str:
    """An interval of seconds from now in the unit of its end, rounded so that it grows no narrower.

    >>> in_words(95, 530)
    'in 1 to 9 min'
    >>> in_words(0, 3)
    'in at most 3 s'
    """
    unit, name = next((one for one in UNITS if latest <= MOST_OF_A_UNIT * one[0]), UNITS[-1])
    first, last = int(earliest // unit), int(-(-latest // unit))
    return f"in {first} to {last} {name}" if first else f"in at most {last} {name}"
