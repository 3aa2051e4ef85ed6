"""The speeds at which nodes ran a program, written back so that the next plan can use them."""

from __future__ import annotations

from collections.abc import Mapping

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Datum, Kind, Producer

REMEMBERED_SECONDS = 30 * 86400.0


def speed_name(engine: str, batch: int) -> str:
    """The data name under which the images per second of an engine with `batch` pictures per inference are kept."""
    return f"images_per_second:{engine}:{batch}"


def recorded(client: InfoClient, engine: str, batch: int) -> dict[str, float]:
    """The images per second at which each node last ran the engine with this batch; empty when none did.

    What is no number above 0 is no speed: whoever may write values may have written it, and a plan needs none.
    """
    try:
        known = client.data(speed_name(engine, batch))
    except NotFound:
        return {}
    return {datum.node_name: datum.number() for datum in known if _is_speed(datum)}


def prepare(client: InfoClient, engine: str, batch: int) -> None:
    """Register the name under which the speeds are kept, unless it is known; the token must allow that."""
    name = speed_name(engine, batch)
    try:
        client.producer(name)
    except NotFound:
        client.put_producer(
            Producer(
                data_name=name,
                cmd="",
                time_max=REMEMBERED_SECONDS,
                ttl=REMEMBERED_SECONDS,
                kind=Kind.PROGRAM,
                keep=REMEMBERED_SECONDS,
                unit="images/second",
                help=f"Speed at which the node ran its last {engine} job with {batch} pictures per inference",
            )
        )


def record(client: InfoClient, engine: str, batch: int, speeds: Mapping[str, float]) -> None:
    """Write the images per second of each node; InfoError when the service refuses or is away."""
    name = speed_name(engine, batch)
    for node_name, speed in speeds.items():
        client.put_value(name, node_name, speed)


def _is_speed(datum: Datum) -> bool:
    try:
        return datum.number() > 0
    except InvalidInput:
        return False
