"""`nodewise alert`: what is told to whom when it happens."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from infosvc.commands import show
from infosvc.commands.options import for_each, json_option, service_options, to_be_taken_away
from infosvc.commands.spans import Span
from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.alerts.alert_records import Alert
from infosvc.wire.service_options import ServiceAddress

COLUMNS = ("alert_id", "condition", "for", "notify", "created_by", "on", "trouble")
COLUMNS_ON = ("about", "since", "said")


@click.group()
def alert() -> None:
    """Be told when something needs somebody: on the dashboard, and at a web address.

    \b
    Example:
      nodewise alert add 'disk_free_bytes / disk_total_bytes < 0.05' --for 5m --notify https://hooks.example.org/nodewise
    """


@alert.command()
@click.argument("condition")
@click.option(
    "--for",
    "hold",
    type=Span(),
    default=0.0,
    help="How long the CONDITION must hold before the alert is on, and not hold before it is off: 90, 5m, 2h.  [0]",
)
@click.option(
    "--notify",
    metavar="URL",
    help="https address that gets a POST when it goes on or off.  [none: the dashboard alone]",
)
@json_option
@service_options
@click.pass_obj
def add(home: Path, service: ServiceAddress, condition: str, hold: float, notify: str | None, as_json: bool) -> None:
    """Add an alert about a CONDITION; only admins may.

    A CONDITION compares data names and numbers, which may be multiplied and divided; several stand with `and` between
    them, and it is looked at on every node. Or it is one of: `node lost`, `queue stuck` (tasks are queued in it, and
    nothing starts or runs), `job failed` (tasks too).

    \b
    Examples:
      nodewise alert add 'disk_free_bytes / disk_total_bytes < 0.05' --for 5m --notify https://hooks.example.org/nodewise
      nodewise alert add 'node lost' --for 2m
      nodewise alert add 'queue stuck' --for 30m --notify https://hooks.example.org/nodewise
      nodewise alert add 'job failed' --notify https://hooks.example.org/nodewise
    """
    made = AlertClient(service.client(home)).add(condition, hold, notify)
    show.as_json(made.to_json()) if as_json else click.echo(made.alert_id)


@alert.command("list")
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, service: ServiceAddress, as_json: bool) -> None:
    """List all alerts. Of addresses only admins see more than the host.

    \b
    Example:
      nodewise alert list --json
    """
    alerts = AlertClient(service.client(home)).all()
    if as_json:
        show.as_json([one.to_json() for one in alerts])
    else:
        show.as_table(COLUMNS, [_row(one) for one in alerts], "no alert; add one with `nodewise alert add`")


@alert.command("show")
@click.argument("alert_id")
@json_option
@service_options
@click.pass_obj
def show_one(home: Path, service: ServiceAddress, alert_id: str, as_json: bool) -> None:
    """Show the alert ALERT_ID and what it is on for.

    \b
    Example:
      nodewise alert show alert_0f0f0f0f0f0f0f0f
    """
    found = AlertClient(service.client(home)).find(alert_id)
    if as_json:
        show.as_json(found.to_json())
        return
    hold = f" for {show.seconds(found.seconds)}" if found.seconds else ""
    click.echo(show.plain(f"{found.condition}{hold}, told to {found.notify or 'the dashboard alone'}"))
    if found.trouble:
        click.echo(show.plain(f"{found.undelivered} messages wait: {found.trouble}"))
    show.as_table(COLUMNS_ON, [[one.about, show.moment(one.since), one.said] for one in found.on], "on for nothing")


@alert.command()
@click.argument("alert_ids", nargs=-1, required=True)
@service_options
@click.pass_obj
def rm(home: Path, service: ServiceAddress, alert_ids: tuple[str, ...]) -> None:
    """Remove alerts by their ALERT_IDS; what they still had to tell is not told.

    \b
    Example:
      nodewise alert rm alert_0f0f0f0f0f0f0f0f
    """
    client = AlertClient(service.client(home))

    def remove(alert_id: str) -> str:
        with to_be_taken_away(f"no alert is called {alert_id}", "nodewise alert list"):
            client.remove(alert_id)
        return "removed"

    for_each(alert_ids, remove)


@alert.command()
@click.argument("alert_id")
@json_option
@service_options
@click.pass_obj
def test(home: Path, service: ServiceAddress, alert_id: str, as_json: bool) -> None:
    """Send a message to the address of the alert ALERT_ID now, once; exit 1 when it does not arrive.

    \b
    Example:
      nodewise alert test alert_0f0f0f0f0f0f0f0f
    """
    found = AlertClient(service.client(home)).test(alert_id)
    if as_json:
        show.as_json(found.to_json())
    elif found.delivered:
        click.echo("delivered")
    else:
        click.echo(show.plain(f"not delivered: {found.trouble}"), err=True)
    if not found.delivered:
        sys.exit(1)


def _row(one: Alert) -> list[object]:
    waits = f"{one.undelivered} wait: {one.trouble}" if one.trouble else ""
    return [
        one.alert_id, one.condition, show.seconds(one.seconds) if one.seconds else "", one.notify or "", one.created_by,
        ", ".join(on.about for on in one.on), waits,
    ]  # fmt: skip
