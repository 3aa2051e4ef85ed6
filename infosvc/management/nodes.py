"""Enrols, moves and forgets nodes, and says what the address of an agent may look like."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from infosvc.state.configuration import Machine
from infosvc.state.transaction import Past, Transaction
from infosvc.wire.errors import InvalidInput


def put_node(transaction: Transaction, node_name: str, address: str, agent_version: str, first_version: int) -> bool:
    """Enrol a node or move it to another address; returns whether it is new.

    `first_version` is larger than any that an agent of a forgotten node of this name may still hold.
    """
    old = transaction.configuration.nodes.get(node_name)
    new = Machine(address, agent_version, first_version)
    if old is not None:
        version = agent_version or old.agent_version
        new = msgspec.structs.replace(old, address=address, agent_version=version)
    transaction.put("nodes", (node_name,), new)
    return old is None


def delete_node(transaction: Transaction, node_name: str, now: float) -> None:
    """Forget a node, its slots and its values, and revoke its tokens at Unix second `now`.

    One that nobody enrolled and that has values only is forgotten too; NotFound when there are none either.
    """
    cells = transaction.cells(node_name=node_name)
    if node_name in transaction.configuration.nodes or not cells:
        transaction.configuration.node(node_name)
        transaction.put("nodes", (node_name,), None)
    for data_name in list(transaction.configuration.slots.get(node_name, {})):
        transaction.put("slots", (node_name, data_name), None)
    for cell in cells:
        transaction.values[cell] = None
    transaction.forget.append(Past(None, node_name))
    for token_id, stored in list(transaction.configuration.tokens.items()):
        if stored.token.node_name == node_name and stored.token.revoked_at is None:
            gone = replace(stored, token=replace(stored.token, revoked_at=now))
            transaction.put("tokens", (token_id,), gone)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` (an IPv6 host in brackets); InvalidInput names what was given."""
    host, _, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or set(host) & set("/@ \t\n") or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidInput(f"address {address!r} is not HOST:PORT, for example 127.0.0.1:8410", "address")
    return host, int(port)
