"""The speeds at which nodes ran a program, written back so that the next plan can use them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Producer
from jobs.reports.texts import FORMER_UNIT
from locality.capability import Sample
from locality.program_names import speed_name, spellings

REMEMBERED_SECONDS = 30 * 86400.0


def recorded_speeds(client: InfoClient, program: str, batch: int) -> dict[str, float]:
    """The items per second at which each node last ran a program with this batch; empty when none did.

    What stands under a former name of the program counts where there is nothing else. Anything but a number above 0 is
    ignored: whoever may write values may have written it, and a plan needs no speed.
    """
    return {node: datum.number() for node, datum in last_speeds(client, program, batch).items()}


def last_speeds(client: InfoClient, program: str, batch: int) -> dict[str, Datum]:
    """The same with their ages."""
    return read(client, speed_name(program, batch))


def read(client: InfoClient, data_name: str) -> dict[str, Datum]:
    """The same for any data name that jobs write back."""
    found: dict[str, Datum] = {}
    for name in reversed(spellings(data_name)):
        try:
            known = client.data(name)
        except NotFound:
            continue
        found |= {datum.node_name: datum for datum in known if _is_speed(datum.data_value)}
    return found


def past_jobs(client: InfoClient, program: str, batch: int, node: str) -> list[Sample]:
    """The speeds of a node that are kept, under each name of their program."""
    found = []
    for name in spellings(speed_name(program, batch)):
        try:
            past = client.history(name, node)
        except NotFound:
            continue
        found += [Sample(past.until - at, float(text)) for at, text in past.points if _is_speed(text)]
    return found


def prepare(client: InfoClient, program: str, batch: int, unit: str = FORMER_UNIT) -> None:
    """Register the name under which the speeds are kept, unless it is known; the token must allow that.

    `unit` is what an item is called, in the plural.
    """
    name = speed_name(program, batch)
    program = name.split(":")[1]
    at_once = "pictures per inference" if unit == FORMER_UNIT else f"{unit} at a time"  # the first is in the catalog
    register(
        client, name, f"{unit}/second", f"Speed at which the node ran its last {program} job with {batch} {at_once}"
    )


def register(client: InfoClient, data_name: str, unit: str, help_text: str) -> None:
    """The same for any data name that jobs write back."""
    try:
        client.producer(data_name)
    except NotFound:
        client.put_producer(
            Producer(
                data_name=data_name,
                cmd="",
                time_max=REMEMBERED_SECONDS,
                ttl=REMEMBERED_SECONDS,
                kind=Kind.PROGRAM,
                keep=REMEMBERED_SECONDS,
                unit=unit,
                help=help_text,
            )
        )


def record(client: InfoClient, program: str, batch: int, speeds: Mapping[str, float]) -> None:
    """Write the items per second of each node; errors as of `write`."""
    write(client, speed_name(program, batch), speeds)


def write(client: InfoClient, data_name: str, speeds: Mapping[str, float]) -> None:
    """Write the speed of each node; InfoError when the service refuses or is away.

    NotFound comes last: the service knows one of the nodes not, and the speeds of all others are written.
    """
    unknown = None
    for node_name, speed in speeds.items():
        try:
            client.put_value(data_name, node_name, speed)
        except NotFound as error:
            if error.field != "node_name":
                raise
            unknown = error
    if unknown is not None:
        raise unknown


def _is_speed(text: str | None) -> bool:
    try:
        return 0 < float(text or "") < math.inf
    except ValueError:
        return False
