"""The speeds at which nodes ran a program, written back so that the next plan can use them."""

from __future__ import annotations

from collections.abc import Mapping

from infosvc.client import InfoClient
from infosvc.errors import NotFound
from infosvc.records import Kind, Producer

REMEMBERED_SECONDS = 30 * 86400.0


def speed_name(engine: str) -> str:
    """The data name under which an engine's images per second are kept."""
    return f"images_per_second:{engine}"


def recorded(client: InfoClient, engine: str) -> dict[str, float]:
    """The images per second of each node that ran the engine before; empty when none did."""
    try:
        known = client.data(speed_name(engine))
    except NotFound:
        return {}
    return {datum.node_name: datum.number() for datum in known if datum.data_value is not None}


def prepare(client: InfoClient, engine: str) -> None:
    """Register the name under which an engine's speeds are kept, unless it is known; the token must allow that."""
    name = speed_name(engine)
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
                unit="images/s",
                help=f"speed at which a node last ran {engine}, written by jobs",
            )
        )


def record(client: InfoClient, engine: str, speeds: Mapping[str, float]) -> None:
    """Write the images per second of each node; InfoError when the service refuses or is away."""
    name = speed_name(engine)
    for node_name, speed in speeds.items():
        client.put_value(name, node_name, speed)
