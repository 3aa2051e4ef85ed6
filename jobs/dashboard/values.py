"""What the board asks of the information service, whose values lie in the same process."""

from __future__ import annotations

from typing import Protocol, cast

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Datum


class Values(Protocol):
    """The latest value of a data name on every node; NotFound when nothing produces it."""

    def data(self, data_name: str) -> list[Datum]: ...


def as_client(values: Values) -> InfoClient:
    """The same for functions that take a client: those called here read values and ask nothing else of it."""
    return cast(InfoClient, values)
