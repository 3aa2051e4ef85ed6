"""`nodewise slot`: which producer runs on which node, and how it does."""

from __future__ import annotations

from pathlib import Path

import click

from infosvc.commands import show
from infosvc.commands.options import for_each, json_option, service_options, to_be_taken_away
from infosvc.commands.record_options import record_options
from infosvc.management.cluster_slots import ANYWHERE
from infosvc.wire.answers import PastRun
from infosvc.wire.bodies import SlotBody
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Outcome, Producer, Scope, Slot, check_name, check_node_name
from infosvc.wire.service_options import ServiceAddress

nodes_option = click.option("--node", "nodes", multiple=True, help="Only on this node; repeatable.")

COLUMNS = ("node", "data_name", "wanted", "interval", "outcome", "took", "ago", "skipped", "reason")


@click.group()
def slot() -> None:
    """Start and stop producers on nodes, and see how they do.

    \b
    Example:
      nodewise slot list --node 127.0.1.11
    """


@slot.command("list")
@nodes_option
@click.option("--bad", is_flag=True, help="Only slots whose last run went wrong.")
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, service: ServiceAddress, nodes: tuple[str, ...], bad: bool, as_json: bool) -> None:
    """List the slots of all nodes: what is wanted, how each last run ended, and how many ticks were missed.

    \b
    Examples:
      nodewise slot list --json
      nodewise slot list --bad
    """
    client = service.client(home)
    slots = [(name, item) for name in nodes or _all_nodes(client) for item in client.slots(check_node_name(name)).slots]
    if bad:
        slots = [(name, item) for name, item in slots if item.outcome is not None and item.outcome.is_bad]
    if as_json:
        show.as_json([{"node_name": name} | item.to_json() for name, item in slots])
    else:
        empty = "no slot has gone wrong" if bad else "no slot: start one with `nodewise slot start NAME`"
        show.as_table(COLUMNS, [_row(*pair) for pair in slots], empty)


@slot.command()
@click.argument("name")
@nodes_option
@record_options(SlotBody, "interval")
@service_options
@click.pass_obj
def start(home: Path, service: ServiceAddress, name: str, nodes: tuple[str, ...], interval: float | None) -> None:
    """Start a producer on all nodes, or one of scope cluster on as many as it has replicas.

    The service chooses these nodes, and others when one is lost; it never moves a producer that you start with --node.

    \b
    Examples:
      nodewise slot start cpu_free_ratio
      nodewise slot start access_cost --node 127.0.1.11 --interval 30
    """
    client = service.client(home)
    producer = client.producer(name)
    every = f"every {interval or producer.time_max:g} s"
    if producer.scope is Scope.CLUSTER and not nodes:
        client.put_slot(ANYWHERE, name, running=True, interval=interval)
        click.echo(f"{name} runs {every} on {_count(producer)} of the service's choice: see `nodewise slot list`")
        return
    chosen = nodes or _all_nodes(client)
    if not chosen:
        raise InvalidInput("no node is enrolled", "node_name", remedy="add one with `nodewise node add`")

    def begin(node_name: str) -> str:
        client.put_slot(check_node_name(node_name), name, running=True, interval=interval)
        return f"{name} runs {every}"

    for_each(chosen, begin)


@slot.command()
@click.argument("name")
@nodes_option
@service_options
@click.pass_obj
def stop(home: Path, service: ServiceAddress, name: str, nodes: tuple[str, ...]) -> None:
    """Stop a producer on all nodes that run it, or on some; its values stay and grow old.

    \b
    Example:
      nodewise slot stop cpu_free_ratio --node 127.0.1.11
    """
    client = service.client(home)
    with to_be_taken_away(f"no producer is registered under {name!r}", "nodewise producer list"):
        producer = client.producer(name)
    placed = producer.scope is Scope.CLUSTER and not nodes and _withdraw(client, name)
    by_node = {}
    for node in nodes or _all_nodes(client):
        with to_be_taken_away(f"no node is called {node!r}", "nodewise node list"):
            by_node[node] = _find(client, node, name)
    chosen = list(nodes) or [node for node, there in by_node.items() if there]
    if not chosen and not placed:
        raise InvalidInput(f"{name} has no slot on any node", "data_name", remedy="see `nodewise slot list`")
    if placed:
        click.echo(f"{name} is stopped where the service ran it")

    def end(node_name: str) -> str:
        there = by_node[node_name]
        if there is None:
            raise NotFound(f"has no slot for {name}", remedy=f"see `nodewise slot list --node {node_name}`")
        own = None if there.interval == producer.time_max else there.interval
        client.put_slot(node_name, name, running=False, interval=own)
        return f"{name} is stopped"

    for_each(chosen, end)


@slot.command()
@click.argument("node_name", metavar="NODE")
@click.argument("name")
@json_option
@service_options
@click.pass_obj
def log(home: Path, service: ServiceAddress, node_name: str, name: str, as_json: bool) -> None:
    """Show the last runs of a slot, newest first: when, how it ended, how long it took, and its error output.

    \b
    Example:
      nodewise slot log 127.0.1.11 cpu_free_ratio
    """
    runs = service.client(home).slot_log(check_node_name(node_name), check_name(name))
    if as_json:
        show.as_json([run.to_json() for run in runs])
    else:
        columns = ("ended", "outcome", "took", "exit", "value", "stderr")
        show.as_table(columns, [_past(run) for run in runs], f"{name} has not run on {node_name} yet")


@slot.command()
@click.argument("node_name", metavar="NODE")
@click.argument("name")
@service_options
@click.pass_obj
def lift(home: Path, service: ServiceAddress, node_name: str, name: str) -> None:
    """End the quarantine of a slot that failed too often, and start it afresh.

    \b
    Example:
      nodewise slot lift 127.0.1.11 gpu_usage
    """
    client = service.client(home)
    there = _find(client, node_name, check_name(name))
    if there is None:
        raise NotFound(
            f"{node_name} has no slot for {name}", "data_name", remedy=f"see `nodewise slot list --node {node_name}`"
        )
    client.put_slot(node_name, name, running=True, lift=True)
    was = "was in quarantine" if there.outcome is Outcome.QUARANTINED else "was not in quarantine"
    click.echo(f"{node_name}: {name} {was} and starts afresh")


def _all_nodes(client: InfoClient) -> list[str]:
    return [node.node_name for node in client.nodes()]


def _withdraw(client: InfoClient, name: str) -> bool:
    """End a placement; False when the service has placed it nowhere."""
    try:
        client.delete_slot(ANYWHERE, name)
    except NotFound:
        return False
    return True


def _find(client: InfoClient, node_name: str, data_name: str) -> Slot | None:
    slots = client.slots(check_node_name(node_name)).slots
    return next((item for item in slots if item.data_name == data_name), None)


def _past(run: PastRun) -> tuple[object, ...]:
    """One run as a row; the lines of its stderr side by side."""
    stderr = " / ".join(run.stderr.splitlines())
    return show.moment(run.ended_at), run.outcome, show.seconds(run.duration), run.exit_status, run.value, stderr


def _count(producer: Producer) -> str:
    return "one node" if producer.replicas == 1 else f"{producer.replicas} nodes"


def _row(node_name: str, item: Slot) -> tuple[object, ...]:
    wanted = "running" if item.running else "stopped"
    took, ago = show.seconds(item.duration), show.seconds(item.age)
    interval, skipped = show.seconds(item.interval), item.skipped or ""
    return node_name, item.data_name, wanted, interval, item.outcome, took, ago, skipped, item.reason
