"""`nodewise task replay`: where a task would have run by another order of nodes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Column, Table

from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.task_spec import TASK_ID
from infosvc.wire.tasks import TaskDecision
from infosvc.wire.terminal_text import plain
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, json_option, print_json, short
from jobs.submitter.replaying import Replay, read_order
from jobs.submitter.replaying import replay as judge


@click.command()
@click.argument("record")
@click.option(
    "--policy-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Settings of YARN's plug-in with the order to try.",
)
@click.option("--order", help="Which order of that file: first, second, or program.NAME  [default: the one noted].")
@click.option("--attempt", type=click.IntRange(1), help="Which start of it  [default: the last].")
@json_option
@service_options
@click.pass_obj
def replay(
    home: Path,
    /,
    service: ServiceAddress,
    record: str,
    policy_file: Path,
    order: str | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Order the nodes of a task's decision again, by the values noted with it and by another policy.

    RECORD is a task id, or a file that `nodewise task explain --json` has printed (no cluster needed). Nothing is
    started or moved.

    \b
    Example:
      nodewise task replay task_0f1e2d3c4b5a6978 --policy-file least-pressure.properties
    """
    decision = _load(record, home, service, attempt)
    try:
        text = policy_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{policy_file} cannot be read: {error}") from None
    found = judge(decision, read_order(text, order or decision.order))
    if as_json:
        print_json({**asdict(found), "said": found.said})
        return
    click.echo(plain(found.said))
    console().print(_table(found))


def _load(record: str, home: Path, service: ServiceAddress, attempt: int | None) -> TaskDecision:
    if TASK_ID.fullmatch(record):
        return service.client(home).task_decision(record, attempt)
    if attempt is not None:
        raise click.UsageError("--attempt is for a task id: a file holds one start")
    try:
        return TaskDecision.from_json(json.loads(Path(record).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise click.ClickException(
            f"{record} is neither a task id nor a file: `nodewise task list` shows ids"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise click.ClickException(
            f"{record} holds no decision: `nodewise task explain TASK --json` prints one"
        ) from None


def _table(found: Replay) -> Table:
    numbers = (Column(name, justify="right") for name in ("score", "noted score"))
    table = Table("node", *numbers, "may run it", "had room", box=None)
    for one in found.nodes:
        score = f"{short(one.score)}, last" if one.goes_last else short(one.score)
        words = ("yes" if one.allowed else "no", "yes" if one.has_room else "no")
        table.add_row(plain(one.node_name), score, short(one.noted_score), *words)
    return table
