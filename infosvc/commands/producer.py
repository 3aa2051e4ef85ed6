"""`nodewise producer`: which data exists and which command produces it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from infosvc.commands import show
from infosvc.commands.options import for_each, json_option, service_options, to_be_taken_away
from infosvc.commands.push import push
from infosvc.commands.record_options import record_options
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Kind, Producer, check_name
from infosvc.wire.service_options import ServiceAddress

COLUMNS = ("data_name", "kind", "scope", "time_max", "timeout", "ttl", "unit", "version", "cmd")


@click.group()
def producer() -> None:
    """Register which data exists and which command produces it.

    \b
    Example:
      nodewise producer list
    """


producer.add_command(push)


@producer.command("list")
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, service: ServiceAddress, as_json: bool) -> None:
    """List all producers.

    \b
    Example:
      nodewise producer list --json
    """
    producers = [item.to_json() for item in service.client(home).producers()]
    if as_json:
        show.as_json(producers)
    else:
        rows = [[item[column] for column in COLUMNS] for item in producers]
        show.as_table(COLUMNS, rows, "no producer is registered: `nodewise node add` registers those that ship")


@producer.command("show")
@click.argument("name")
@json_option
@service_options
@click.pass_obj
def show_one(home: Path, service: ServiceAddress, name: str, as_json: bool) -> None:
    """Show one producer.

    \b
    Example:
      nodewise producer show cpu_free_ratio
    """
    fields = service.client(home).producer(name).to_json()
    if as_json:
        show.as_json(fields)
    else:
        rows = [
            (field, ", ".join(value) if isinstance(value, list | tuple) else value) for field, value in fields.items()
        ]
        show.as_table(("field", "value"), rows, "")


@producer.command()
@click.argument("name")
@record_options(Producer)
@click.option("--new", "only_new", is_flag=True, help="Refuse a name that is registered already.")
@service_options
@click.pass_obj
def put(home: Path, /, service: ServiceAddress, name: str, only_new: bool, **given: Any) -> None:
    """Register a producer, or change one: options that you leave out keep their values.

    Seconds can be written as 90, 30m, 24h or 7d.

    A run prints its value. With --emits it prints lines `name value` instead; a line for NAME itself sets its own
    value, which otherwise is the number of names that came. Each run finds both in the environment variables
    DATA_NAME and EMITS.

    \b
    Examples:
      nodewise producer put getCpuUsage --cmd /usr/Apps/bin/getCpuUsage.sh --time-max 5 --unit percent
      nodewise producer put cpu_free_ratio --time-max 10 --keep 24h
      nodewise producer put disk --new --cmd scripts/disk.sh --time-max 5 --emits disk_free --emits disk_used
    """
    client = service.client(home)
    wanted = _chosen_options(given)
    old = None if only_new else _find(client, check_name(name))
    if old is None:
        stored = client.put_producer(_new(check_name(name), wanted), new=True)
    else:
        if "time_max" in wanted and old.ttl == 3 * old.time_max:
            wanted.setdefault("ttl", None)
        stored = client.put_producer(replace(old, **wanted), if_match=old.version)
    click.echo(f"{name}: version {stored.version}, every {stored.time_max:g} s, stale after {stored.ttl:g} s")


@producer.command("rm")
@click.argument("names", nargs=-1, required=True)
@service_options
@click.pass_obj
def remove(home: Path, service: ServiceAddress, names: tuple[str, ...]) -> None:
    """Forget producers and what they emit, their slots and their values.

    \b
    Example:
      nodewise producer rm getCpuUsage
    """
    client = service.client(home)

    def forget(name: str) -> str:
        with to_be_taken_away("no producer is registered under this name", "nodewise producer list"):
            client.delete_producer(check_name(name))
        return "forgotten"

    for_each(names, forget)


def _chosen_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; a list whose only name is empty empties the list."""
    lists = {key: tuple(name for name in given.pop(key) if name) for key in ("emits", "inputs") if given[key]}
    return {key: value for key, value in given.items() if value not in (None, ())} | lists


def _find(client: InfoClient, name: str) -> Producer | None:
    try:
        return client.producer(name)
    except NotFound:
        return None


def _new(name: str, wanted: dict[str, Any]) -> Producer:
    if wanted.get("kind") == Kind.PROGRAM:
        wanted.setdefault("cmd", "")
    for key in ("cmd", "time_max"):
        if key not in wanted:
            raise InvalidInput(f"{name} is not registered yet", key, remedy="give --cmd and --time-max")
    return Producer(data_name=name, **wanted)
