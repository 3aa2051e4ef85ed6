"""`nodewise locality plan`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from hadoop.client.disk_cache import take_current
from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import ServiceAddress
from jobs.application.submit import Submitter
from jobs.commands.options import console, hadoop_options, progress_console, session, take_hadoop
from jobs.commands.service_options import service_options
from jobs.division import capability as capabilities
from jobs.division.terms import known_terms
from jobs.errors import JobError
from jobs.reports.texts import bytes_text, over_optimum_text, ratio_text
from locality.explain import Move, moves
from locality.policies import POLICIES, policy
from locality.quality import Quality, measure_quality, optimum_of
from locality.types import EPSILON, Block, Plan, Terms

MOST_MOVES = 20


@dataclass(frozen=True)
class Snapshot:
    """What a plan is made from: all of it is read once, so that policies are compared over the same."""

    blocks: Sequence[Block]
    capability: dict[str, float]
    terms: Terms


@dataclass(frozen=True)
class Tried:
    """One policy's answer."""

    policy: str
    plan: Plan
    quality: Quality


@click.command()
@click.argument("path")
@click.option("--capability", required=True, metavar="NAME", help="Data name that tells what a node can do.")
@click.option(
    "--policy", "names", type=click.Choice(list(POLICIES)), multiple=True, help="May be repeated  [default: all]."
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0),
    default=EPSILON,
    show_default=True,
    help="How far over the bound a plan may end.",
)
@click.option("--explain", is_flag=True, help="Say why each image that is moved is moved.")
@click.option("--capability-wait", type=float, default=20, show_default=True, help="Seconds for fresh values.")
@service_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every move.")
@hadoop_options
@click.pass_obj
def plan(
    home: Path,
    /,
    path: str,
    names: tuple[str, ...],
    explain: bool,
    as_json: bool,
    service: ServiceAddress,
    **options: Any,
) -> None:
    """Show how each policy would divide the images of an HDFS path, and start nothing.

    The makespan is in seconds when the capability is in images per second; the ratios hold in any unit. The optimum
    is the fewest bytes that a plan can move and still end within epsilon of the bound.

    \b
    Example:
      nodewise locality plan hdfs:///data/images --capability perf_history
      nodewise locality plan hdfs:///data/images --capability perf_cpu --policy maxflow --explain
    """
    hadoop = take_hadoop(options)
    with service.client(home) as client:
        known = _know(home, session(home, hadoop), client, path, options)
    optimum = optimum_of(known.blocks, known.capability, known.terms)
    tried = [_try(name, known, optimum) for name in names or POLICIES]
    if as_json:
        click.echo(json.dumps(_body(path, options["capability"], known, tried), indent=1))
        return
    console.print(_table(tried))
    console.print(_shares(tried, known))
    if known.terms.cost.is_empty:
        console.print("What reading costs is assumed: `nodewise slot start access_cost` has it measured.")
    if explain:
        for one in tried:
            _print_reasons(one.policy, moves(one.plan, known.capability))


def _try(name: str, known: Snapshot, optimum: int) -> Tried:
    found = policy(name)(known.blocks, known.capability, known.terms)
    return Tried(name, found, measure_quality(found, known.blocks, known.capability, known.terms, optimum))


def _know(home: Path, submitter: Submitter, client: InfoClient, path: str, options: dict[str, Any]) -> Snapshot:
    stored = take_current(submitter.filesystem, path, home / "blocks")
    if not stored.file_count:
        raise JobError(f"{path} holds no files", remedy="`nodewise images load` puts images there")
    nodes = submitter.yarn.running_nodes()
    values = capabilities.wait(client, options["capability"], nodes, options["capability_wait"])
    return Snapshot(
        [Block(file.path, 1, file.size_bytes, file.hosts()) for file in stored.files()],
        {node: datum.number() for node, datum in values.items()},
        known_terms(client, stored.racks, progress_console.print, options["epsilon"]),
    )


def _body(path: str, capability: str, known: Snapshot, tried: Sequence[Tried]) -> dict[str, Any]:
    return {
        "path": path,
        "images": sum(block.items for block in known.blocks),
        "blocks": len(known.blocks),
        "capability": capability,
        "values": known.capability,
        "epsilon": known.terms.epsilon,
        "access_cost_known": not known.terms.cost.is_empty,
        "plans": [
            {
                "policy": one.policy,
                **asdict(one.quality),
                "moves": [_move(move) for move in moves(one.plan, known.capability)],
            }
            for one in tried
        ],
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "block": move.part.block.name,
        "first": move.part.first,
        "images": move.part.items,
        "to": move.node,
        "from": list(move.part.block.replicas),
        "reason": move.reason.value,
        "text": move.text,
    }


def _table(tried: Sequence[Tried]) -> Table:
    table = Table("policy")
    for heading in ("makespan", "over bound", "moved", "optimum", "over optimum", "local", "reading, s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in tried:
        quality = one.quality
        table.add_row(
            one.policy,
            f"{quality.makespan_seconds:.1f}",
            ratio_text(quality.makespan_over_bound),
            bytes_text(quality.bytes_moved),
            bytes_text(quality.bytes_moved_optimal),
            over_optimum_text(quality.bytes_moved_over_optimal),
            f"{quality.locality_ratio:.1%}",
            f"{quality.access_seconds:.2f}",
        )
    return table


def _shares(tried: Sequence[Tried], known: Snapshot) -> Table:
    table = Table("node", Column("capability", justify="right"), title="images per node")
    for one in tried:
        table.add_column(one.policy, justify="right", overflow="fold")
    for node, value in sorted(known.capability.items()):
        table.add_row(node, f"{value:.4g}", *(str(one.quality.loads[node]) for one in tried))
    return table


def _print_reasons(name: str, found: Sequence[Move]) -> None:
    counts = Counter[str]()
    for move in found:
        counts[move.reason.value] += move.part.items
    told = ", ".join(f"{images} ({reason})" for reason, images in counts.items())
    console.print(f"{name} moves {told or 'nothing'}")
    for move in found[:MOST_MOVES]:
        part = move.part
        console.print(f"  {part.block.name} [{part.first}, {part.first + part.items}) to {move.node}: {move.text}")
    if len(found) > MOST_MOVES:
        console.print(f"  and {len(found) - MOST_MOVES} more: --json lists all")
