"""How long nodes needed to begin with a program, written back so that the next plan can count it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import median

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, NotFound
from jobs.division import speed_history
from locality.program_names import start_name


def recorded_starts(client: InfoClient, program: str, nodes: Sequence[str]) -> dict[str, float]:
    """The seconds until a worker of each node had loaded the program last; {} when none ever did.

    A node that has not loaded it yet counts as the median of those that have.
    """
    known = speed_history.read(client, start_name(program))
    found = {node: known[node].number() for node in nodes if node in known}
    usual = median(found.values()) if found else 0.0
    return {node: found.get(node, usual) for node in nodes} if found else {}


def prepare(client: InfoClient, program: str) -> None:
    """Register the name under which they are kept, unless it is known; without the right to do so they are not kept."""
    help_text = f"Seconds until the node's worker had loaded its libraries and {program} last"
    with suppress(Forbidden):
        speed_history.register(client, start_name(program), "second", help_text)


def record(client: InfoClient, program: str, starts: Mapping[str, float]) -> None:
    """Write the seconds of each node, where the name is registered; InfoError when the service refuses or is away."""
    with suppress(NotFound):
        speed_history.write(client, start_name(program), starts)
