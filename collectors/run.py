"""One run of a Python program in a slot: what the agent tells it, and how it answers. Standard library only.

The client of the service is imported by the functions that need it: that takes ten times as long as a bare start.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infosvc.wire.client import InfoClient
    from infosvc.wire.records import Datum

NO_DATA = 3  # the exit status that says so


def node_name() -> str:
    """The node on which this runs."""
    return os.environ["NODE_NAME"]


def service() -> InfoClient:
    """The information service to which the node belongs."""
    from infosvc.wire.client import InfoClient

    told = os.environ
    return InfoClient.from_token_file(
        told["INFOSVC_URL"], told.get("INFOSVC_TOKEN_FILE"), ca_file=told.get("NODEWISE_CA_FILE")
    )


def fresh(data: Iterable[Datum]) -> dict[str, Datum]:
    """By node, the values that are fresh."""
    from infosvc.wire.records import State

    return {datum.node_name: datum for datum in data if datum.state is State.FRESH}


def await_fresh(client: InfoClient, data_name: str, node: str, seconds: float) -> bool:
    """Whether the node has a fresh value, or has one within so many seconds."""
    deadline = time.monotonic() + seconds
    while not fresh(client.data(data_name, node=node)):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.5)
    return True


def answer(value: str, **beside: float | None) -> str:
    """What to print: the value, and each number beside it under NAME.KEY if the producer, NAME, emits that.

    NAME is what the program is registered as, so it may be registered several times. None stands for no data.
    """
    return lines(value, beside, os.environ.get("DATA_NAME", ""), os.environ.get("EMITS", "").split())


def lines(value: str, beside: Mapping[str, float | None], data_name: str, emits: Collection[str]) -> str:
    """As `answer`, for a producer `data_name` that emits the names `emits`.

    >>> print(lines("0.5", {"confidence": 1.0, "count": None}, "perf", ["perf.confidence", "perf.count"]))
    perf 0.5
    perf.confidence 1
    >>> print(lines("0.5", {"confidence": 1.0}, "perf", []))
    0.5
    """
    if not emits:
        return value
    named = {f"{data_name}.{key}": number for key, number in beside.items() if number is not None}
    return "\n".join([f"{data_name} {value}", *(f"{name} {named[name]:.6g}" for name in emits if name in named)])
