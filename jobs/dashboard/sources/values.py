"""What the board asks of the information service, whose values lie in the same process."""

from __future__ import annotations

from typing import Protocol, cast

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Datum
from infosvc.wire.tasks import Task


class Values(Protocol):
    """The latest value of a data name on every node; NotFound when nothing produces it."""

    def data(self, data_name: str) -> list[Datum]: ...


class ServiceView(Values, Protocol):
    """What the service tells whoever makes the call."""

    def task(self, task_id: str) -> Task:
        """A task that the caller may see; NotFound for any other."""


def as_client(values: Values) -> InfoClient:
    """The same for functions that take a client: those called here read values and ask nothing else of it."""
    return cast(InfoClient, values)
