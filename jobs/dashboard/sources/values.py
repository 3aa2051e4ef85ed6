"""What the board asks of the information service, whose values lie in the same process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, cast

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Datum
from infosvc.wire.tasks import Task

R = TypeVar("R")


class Values(Protocol):
    """The latest value of a data name on every node; NotFound when nothing produces it."""

    def data(self, data_name: str) -> list[Datum]: ...


class Viewer(Protocol):
    """Who makes the call: its name as a user, and whose tasks it may know of, None for everybody's."""

    @property
    def user_name(self) -> str: ...

    @property
    def owners(self) -> frozenset[str] | None: ...


class ServiceView(Values, Protocol):
    """What the service tells whoever makes the call."""

    def viewer(self) -> Viewer:
        """Who makes it."""

    def read_body(self, record: type[R]) -> R:
        """The record that the call's body holds; InvalidInput names a field that is wrong."""

    def tasks(self) -> Mapping[str, Task]:
        """All tasks by id, whoever may know of them: for figures of all."""

    def task(self, task_id: str) -> Task:
        """A task that the caller may see; NotFound for any other."""


def as_client(values: Values) -> InfoClient:
    """The same for functions that take a client: those called here read values and ask nothing else of it."""
    return cast(InfoClient, values)
