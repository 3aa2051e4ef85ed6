"""Tunnels as they are asked for and told."""

from __future__ import annotations

from dataclasses import dataclass, field

from infosvc.wire.fields import Limits, Record, describe
from infosvc.wire.task_spec import TASK_ID
from infosvc.wire.tasks import EXAMPLE_ID

TUNNEL_ID = r"^[0-9a-f]{32}$"


@dataclass(frozen=True)
class TunnelBody(Record):
    """A tunnel that is to be opened."""

    task_id: str = field(
        metadata=describe(
            "the task that it leads to",
            limits=Limits(pattern=TASK_ID.pattern, longest=21, form="an id of a task"),
            example=EXAMPLE_ID,
        )
    )


@dataclass(frozen=True)
class Tunnel(Record):
    """A tunnel between who asked for it and the runner of a task."""

    tunnel_id: str = field(metadata=describe(example="0f" * 16))
    task_id: str = field(metadata=describe("the task that it leads to", example=EXAMPLE_ID))


@dataclass(frozen=True)
class TunnelList(Record):
    """Tunnels that wait for the runners of their tasks."""

    tunnels: tuple[Tunnel, ...] = field(metadata=describe("oldest first"))
