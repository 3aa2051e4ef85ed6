"""The speeds that jobs recorded, under each name that their program has had. Standard library only."""

from __future__ import annotations

from infosvc.wire.answers import History
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from locality.program_names import spellings


def past_speeds(client: InfoClient, data_name: str, node: str) -> dict[str, History]:
    """By each name that speeds of this program stand under, a former one first; NotFound when none is registered."""
    found: dict[str, History] = {}
    for name in reversed(spellings(data_name)):
        try:
            found[name] = client.history(name, node)
        except NotFound:
            if not found and name == spellings(data_name)[0]:
                raise
    return found
