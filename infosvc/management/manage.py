"""What may be wished of a node, and where its agent is said to listen."""

from __future__ import annotations

from dataclasses import replace

from infosvc.data import changes
from infosvc.state.transaction import Draft
from infosvc.wire.errors import InvalidInput
from infosvc.state.configuration import Wish


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` (an IPv6 host in brackets); InvalidInput names what was given."""
    host, _, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or set(host) & set("/@ \t\n") or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidInput(f"address {address!r} is not HOST:PORT, for example 127.0.0.1:8410", "address")
    return host, int(port)


def set_slot(draft: Draft, node_name: str, data_name: str, running: bool, interval: float | None) -> bool:
    """Start, stop or re-time a producer on the node that somebody named, where it stays from then on.

    Returns whether the slot is new; `interval` in seconds, None for the producer's time_max.
    """
    old = draft.picture.slots.get(node_name, {}).get(data_name)
    return changes.put_slot(draft, node_name, data_name, Wish(running, interval, old.epoch if old else 0))


def lift_slot(draft: Draft, node_name: str, data_name: str, interval: float | None) -> bool:
    """End a slot's quarantine and run it, every `interval` seconds if that is given; never makes a slot."""
    wish = draft.picture.wish(node_name, data_name)
    if interval is not None:
        changes.put_slot(draft, node_name, data_name, replace(wish, interval=interval))
    changes.lift(draft, node_name, data_name)
    return False
