"""Which of several NameNodes or ResourceManagers is asked: the active one, which takes turns with one that stands by.

A master that stands by says so, or leads to the other one. Which answered last is known to the whole process, so that
a master that is gone costs its silence only once.
"""

from __future__ import annotations

import json

from hadoop.rest.connections import Answer

Addresses = str | tuple[str, ...]
"""Of one daemon, or of all masters of a kind (scheme://host:port)."""
ACTIVE, STANDBY = "active", "standby"
_NOT_NOW = ("StandbyException", "RetriableException")
_NOBODY = b"There is no active RM"
_HEAD_BYTES = 4096
_last: dict[tuple[str, ...], str] = {}


def as_tuple(addresses: Addresses) -> tuple[str, ...]:
    """All of them."""
    return (addresses,) if isinstance(addresses, str) else tuple(addresses)


def in_order(addresses: tuple[str, ...]) -> list[str]:
    """The addresses, that which answered last before the others."""
    first = _last.get(addresses)
    return sorted(addresses, key=lambda address: address != first)


def remember(addresses: tuple[str, ...], address: str) -> None:
    """Note that of several masters this one has answered as the active one."""
    if len(addresses) > 1:
        _last[addresses] = address


def stands_by(answer: Answer) -> bool:
    """Whether a master says that it is not, or not yet, the one to ask."""
    if answer.status == 200:
        return answer.content[:_HEAD_BYTES].lstrip().startswith(_NOBODY)
    if answer.status != 403:
        return False
    try:
        told = json.loads(answer.content)["RemoteException"]
        # Who shows a token is told so of the token, which one that stands by cannot check.
        return told["exception"] in _NOT_NOW or told["message"].rpartition(": ")[2] in _NOT_NOW
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def read_role(page: object) -> str | None:
    """Read active or standby out of what a NameNode or a ResourceManager says of itself; None for anything else.

    >>> read_role({"beans": [{"State": "active"}]}), read_role({"clusterInfo": {"haState": "STANDBY"}})
    ('active', 'standby')
    """
    match page:
        case {"beans": [{"State": str(state)}, *_]} | {"clusterInfo": {"haState": str(state)}}:
            return state.lower()
    return None
