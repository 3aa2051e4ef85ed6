"""`nodewise task`: ask for programs that run once on the cluster, and see what becomes of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tasks import Task, TaskState
from infosvc.wire.terminal_text import moment, plain
from jobs.commands.asking.task_waiting import follow, sentence
from jobs.commands.lazy_group import LazyGroup
from jobs.commands.service_options import service_options
from jobs.commands.task.task_shown import console, gpus_text, json_option, print_json, state_text

TASK_COMMANDS = {
    name: f"jobs.commands.task.task_{name}:{name}"
    for name in (
        *("compare", "explain", "image", "logs", "outputs"),
        *("replay", "shell", "speeds", "submit", "values"),
    )
}
"""Those with a file of their own: the name after `nodewise task`  ->  module:command."""


@click.group(cls=LazyGroup, places=TASK_COMMANDS)
def task() -> None:
    """Run programs once on the cluster, each in a container of its own, in any order or one after another.

    The service keeps tasks; `nodewise serve --submit` gives them to YARN.

    \b
    Example:
      nodewise task submit --folder src --memory 2g --wait -- python3 train.py
      nodewise task list --state running
    """


@task.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in TaskState]),
    help="Only those in this state; repeatable.",
)
@click.option("--owner", help="Only those of this user.")
@click.option("-q", "--text", help="Only those in whose name, id or program this stands.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Most that are listed.")
@json_option
@service_options
@click.pass_obj
def list_(home: Path, /, service: ServiceAddress, as_json: bool, limit: int, **wanted: Any) -> None:
    """List tasks, newest first: your own; with a token of role admin those of all.

    \b
    Example:
      nodewise task list --state queued --state running --watch 2s
    """
    found = service.client(home).tasks(wanted["states"], wanted["owner"] or "", wanted["text"] or "", limit)
    if as_json:
        print_json([one.to_json() for one in found])
    elif not found:
        click.echo("no task: ask for one with `nodewise task submit -- PROGRAM`")
    else:
        table = Table(Column("task", no_wrap=True), "owner", "name", "state", "node", "since", "why", box=None)
        for one in found:
            since = moment(one.ended_at or one.changed_at)
            table.add_row(
                one.task_id, *map(plain, (one.owner, one.name, state_text(one), one.node_name, since, one.reason))
            )
        console().print(table)


@task.command()
@click.argument("task_id")
@json_option
@service_options
@click.pass_obj
def show(home: Path, /, service: ServiceAddress, task_id: str, as_json: bool) -> None:
    """Show one task: what it runs, how far it is, where and why. Of its variables only the names.

    \b
    Example:
      nodewise task show task_0f1e2d3c4b5a6978
    """
    found = service.client(home).task(task_id)
    if as_json:
        print_json(found.to_json())
        return
    table = Table(box=None, show_header=False)
    for name, said in _rows(found):
        table.add_row(name, plain(said))
    console().print(table)


@task.command()
@click.argument("task_id")
@json_option
@service_options
@click.pass_obj
def wait(home: Path, /, service: ServiceAddress, task_id: str, as_json: bool) -> None:
    """Wait until a task has ended; exit status 0 when it succeeded, else 1.

    \b
    Example:
      nodewise task wait task_0f1e2d3c4b5a6978
    """
    ended = follow(service.client(home), task_id)
    print_json(ended.to_json()) if as_json else click.echo(plain(sentence(ended)))
    sys.exit(0 if ended.state is TaskState.SUCCEEDED else 1)


@task.command()
@click.argument("task_ids", nargs=-1, required=True)
@service_options
@click.pass_obj
def stop(home: Path, /, service: ServiceAddress, task_ids: Sequence[str]) -> None:
    """Stop tasks: at once if no submitter has taken them, else as soon as the submitter has ended them.

    \b
    Example:
      nodewise task stop task_0f1e2d3c4b5a6978
    """
    client = service.client(home)

    def end(task_id: str) -> str:
        return "stopped" if client.stop_task(task_id).state is TaskState.STOPPED else "asked to stop"

    _for_each(task_ids, end)


@task.command()
@click.argument("task_id")
@json_option
@service_options
@click.pass_obj
def again(home: Path, /, service: ServiceAddress, task_id: str, as_json: bool) -> None:
    """Ask for a new task that does the same.

    \b
    Example:
      nodewise task again task_0f1e2d3c4b5a6978
    """
    made = service.client(home).task_again(task_id)
    print_json(made.to_json()) if as_json else click.echo(f"{made.task_id} {made.state}")


@task.command()
@click.argument("task_ids", nargs=-1, required=True)
@service_options
@click.pass_obj
def rm(home: Path, /, service: ServiceAddress, task_ids: Sequence[str]) -> None:
    """Forget tasks that have ended.

    \b
    Example:
      nodewise task rm task_0f1e2d3c4b5a6978
    """
    client = service.client(home)

    def forget(task_id: str) -> str:
        client.remove_task(task_id)
        return "forgotten"

    _for_each(task_ids, forget)


def _rows(found: Task) -> list[tuple[str, Any]]:
    spec = found.spec
    said = {
        "task": found.task_id,
        "owner": found.owner,
        "name": found.name,
        "state": state_text(found),
        "why": found.reason,
        "program": json.dumps(spec.argv),
        "variables": ", ".join(sorted(spec.variables)),
        "image": spec.image,
        "files": spec.files,
        "commit": spec.commit,
        "changes": f"{len(spec.changes.splitlines())} lines, see --json" if spec.changes else None,
        "data": ", ".join(spec.data),
        "needs": f"{spec.memory_mb} MB, {spec.vcores} vcores",
        "gpus": gpus_text(spec),
        "priority": spec.priority or None,
        "environment": spec.env,
        "devices": ", ".join(spec.devices),
        "after": ", ".join(spec.after),
        "output": spec.output,
        "application": found.application_id,
        "node": found.node_name,
        "attempt": found.attempt,
        "exit code": found.exit_code,
        "asked for": moment(found.created_at),
        "began": moment(found.started_at, ""),
        "idle since": moment(found.idle_since, ""),
        "ended": moment(found.ended_at, ""),
        "again of": found.again_of,
    }
    return [(name, text) for name, text in said.items() if text not in (None, "")]


def _for_each(task_ids: Sequence[str], action: Callable[[str], str]) -> None:
    """Do one thing for every task and say what came of it; exit 1 when it failed for any, after trying all."""
    failed = False
    for task_id in task_ids:
        try:
            click.echo(f"{task_id}: {action(task_id)}")
        except InfoError as error:
            click.echo(f"{task_id}: {error}", err=True)
            failed = True
    if failed:
        sys.exit(1)
