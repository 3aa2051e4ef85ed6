"""`nodewise usage`: core-, memory- and GPU-hours, by user or by queue."""

from __future__ import annotations

from pathlib import Path

import click

from hadoop.local.state import current_user
from hadoop.rest.addresses import resourcemanager_addresses
from hadoop.rest.callers import find_caller
from hadoop.rest.resourcemanager import ResourceManager
from hadoop.rest.usage import ApplicationUse, parse_use
from infosvc.commands import show
from infosvc.commands.options import Moment, json_option, service_options
from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tasks import Task
from nodewise.usage.accounting import GPU, Account, accounts, ended_since, owner_of

COLUMNS = ("applications", "running", "core-hours", "memory GB-hours", "GPU-hours")


@click.command()
@click.option(
    "--by", type=click.Choice(["user", "queue"]), default="user", show_default=True, help="What is summed up."
)
@click.option(
    "--since",
    type=Moment(),
    default="7d",
    show_default=True,
    help="Count what ended after this, or still runs: 12h, 30d, or Unix seconds.",
)
@json_option
@click.option(
    "--user", envvar="HADOOP_USER_NAME", help="User name for YARN [default: your own]; no other with Kerberos"
)
@click.option(
    "--hadoop-conf",
    type=click.Path(path_type=Path),
    envvar="HADOOP_CONF_DIR",
    help="Folder of Hadoop's site files [default: those of `nodewise cluster up`].",
)
@service_options
@click.pass_obj
def usage(
    home: Path,
    /,
    service: ServiceAddress,
    by: str,
    since: float,
    as_json: bool,
    user: str | None,
    hadoop_conf: Path | None,
) -> None:
    """Show who has used how much of the cluster, by YARN's own figures.

    An application counts with all that it has used if it ended after --since, and with what it has used up to now if
    it still runs. By user, a task counts for its owner, whom the service tells to admins; without that, for the user
    as whom it runs. YARN forgets applications that ended long ago, and the last line says how far back it remembers.

    \b
    Examples:
      nodewise usage --since 30d
      nodewise usage --by queue --json
    """
    conf_dir = (hadoop_conf or home / "cluster" / "conf").absolute()
    asker = find_caller(conf_dir, user, current_user()) if user else current_user()
    manager = ResourceManager(resourcemanager_addresses(conf_dir), asker)
    uses = [parse_use(row) for row in manager.applications()]
    name_of = owner_of(uses, _tasks(home, service)) if by == "user" else _queue
    found = accounts(ended_since(uses, since), name_of)
    first = min((use.started_at for use in uses), default=None)
    if as_json:
        rows = [one.to_json(by) for one in found]
        show.as_json({"since": since, "by": by, "remembered_since": first, "usage": rows})
        return
    show.as_table((by, *COLUMNS), map(_row, found), f"no application has ended since {show.moment(since)} or runs")
    if first is not None:
        click.echo(f"YARN remembers {len(uses):,} applications, of which the first began at {show.moment(first)}")


def _queue(use: ApplicationUse) -> str:
    return use.queue


def _tasks(home: Path, service: ServiceAddress) -> dict[str, Task]:
    """All tasks that the caller may see; none, and a warning, when the service does not tell."""
    try:
        return {task.task_id: task for task in service.client(home).tasks()}
    except InfoError as error:
        click.echo(
            show.plain(f"Warning: tasks count for the user as whom they run, not for their owners: {error}"), err=True
        )
        return {}


def _row(one: Account) -> list[object]:
    hours = (one.core_hours, one.memory_gb_hours, one.hours(GPU))
    return [one.name, one.applications, one.running, *(f"{number:,.2f}" for number in hours)]
