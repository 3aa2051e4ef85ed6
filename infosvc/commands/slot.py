"""`nodewise slot`: which producer runs on which node."""

from __future__ import annotations

from pathlib import Path

import click

from infosvc.client import InfoClient
from infosvc.commands import show
from infosvc.commands.options import connect, for_each, json_option, service_options
from infosvc.errors import InvalidInput, NotFound
from infosvc.manage import nodes_for
from infosvc.records import Slot, check_node_name

nodes_option = click.option("--node", "nodes", multiple=True, help="Only on this node; repeatable.")


@click.group()
def slot() -> None:
    """Start and stop producers on nodes, and see how they do.

    \b
    Example:
      nodewise slot list --node 127.0.1.11
    """


@slot.command("list")
@nodes_option
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, url: str, token_file: Path | None, nodes: tuple[str, ...], as_json: bool) -> None:
    """List the slots of all nodes: what is wanted, and how each last run ended.

    \b
    Example:
      nodewise slot list --json
    """
    client = connect(home, url, token_file)
    found = [(name, item) for name in nodes or _all_nodes(client) for item in client.slots(check_node_name(name)).slots]
    if as_json:
        show.as_json([{"node_name": name} | item.to_json() for name, item in found])
    else:
        columns = ("node", "data_name", "wanted", "interval", "outcome", "took", "ago", "reason")
        show.as_table(columns, [_row(*pair) for pair in found], "no slot: start one with `nodewise slot start NAME`")


@slot.command()
@click.argument("name")
@nodes_option
@click.option(
    "--interval", type=click.FloatRange(min=0, min_open=True), help="Seconds between two runs, instead of time_max."
)
@service_options
@click.pass_obj
def start(
    home: Path, url: str, token_file: Path | None, name: str, nodes: tuple[str, ...], interval: float | None
) -> None:
    """Start a producer: on all nodes, or one of scope cluster on as many ready nodes as it has replicas.

    \b
    Examples:
      nodewise slot start cpu_free_ratio
      nodewise slot start block_distribution --node 127.0.1.11 --interval 30
    """
    client = connect(home, url, token_file)
    producer = client.producer(name)
    chosen = nodes or nodes_for(producer, client.nodes())

    def begin(node_name: str) -> str:
        client.put_slot(check_node_name(node_name), name, running=True, interval=interval)
        return f"{name} runs every {interval or producer.time_max:g} s"

    for_each(chosen, begin)


@slot.command()
@click.argument("name")
@nodes_option
@service_options
@click.pass_obj
def stop(home: Path, url: str, token_file: Path | None, name: str, nodes: tuple[str, ...]) -> None:
    """Stop a producer on all nodes that run it, or on some; its values stay and grow old.

    \b
    Example:
      nodewise slot stop cpu_free_ratio --node 127.0.1.11
    """
    client = connect(home, url, token_file)
    producer = client.producer(name)
    found = {node: _find(client, node, name) for node in nodes or _all_nodes(client)}
    chosen = list(nodes) or [node for node, there in found.items() if there]
    if not chosen:
        raise InvalidInput(f"{name} has no slot on any node: see `nodewise slot list`", "data_name")

    def end(node_name: str) -> str:
        there = found[node_name]
        if there is None:
            raise NotFound(f"has no slot for {name}: see `nodewise slot list --node {node_name}`")
        own = None if there.interval == producer.time_max else there.interval
        client.put_slot(node_name, name, running=False, interval=own)
        return f"{name} is stopped"

    for_each(chosen, end)


def _all_nodes(client: InfoClient) -> list[str]:
    return [node.node_name for node in client.nodes()]


def _find(client: InfoClient, node_name: str, data_name: str) -> Slot | None:
    slots = client.slots(check_node_name(node_name)).slots
    return next((item for item in slots if item.data_name == data_name), None)


def _row(node_name: str, item: Slot) -> tuple[object, ...]:
    wanted = "running" if item.running else "stopped"
    took, ago = show.seconds(item.duration), show.seconds(item.age)
    return node_name, item.data_name, wanted, show.seconds(item.interval), item.outcome, took, ago, item.reason
