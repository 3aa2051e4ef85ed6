"""Clients of users who have tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infosvc.wire.client import DEFAULT_TIMEOUT, InfoClient
from infosvc.wire.records import Role

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served


def as_user(service: Served, name: str, role: Role = Role.USER, timeout: float = DEFAULT_TIMEOUT) -> InfoClient:
    """A client with a new token of this name."""
    return InfoClient(service.url, service.client.create_token(name, role)[1], timeout)
