"""Measures how quickly bytes come from other nodes to this one: one node a run, and what runs before found is kept.

The other nodes are walked around a ring that all nodes have in common, each beginning behind itself, so that nodes
whose runs are numbered alike ask different ones. Nodes of the own rack and of others take turns.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from collectors.agent.probe import CHUNK_BYTES, PATH
from infosvc.wire.bounded_answer import answer_by, new_connection
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound

RACK = "rack_name"
WARM_BYTES = 128 * 1024  # fetched first and not timed: a connection is slow until it has seen some traffic
PROBE_BYTES = 512 * 1024
PATIENCE_SECONDS = 5.0
MOST_PEERS = 32
OLDEST_SECONDS = 86400.0
ROSTER_SECONDS_A_NODE = 0.6  # the list of n nodes is read every 0.6 n seconds: each costs the service the same


class NoProbe(Exception):
    """The other node could not be measured; the text says why."""


@dataclass(frozen=True)
class Roster:
    """The nodes of the cluster: name -> address of its agent; the known racks; and how agents are called."""

    at: float
    scheme: str
    addresses: Mapping[str, str]
    racks: Mapping[str, str]

    @classmethod
    def read(cls, client: InfoClient, now: float) -> Roster:
        """The nodes that are not lost, as the service knows them at the Unix second `now`."""
        addresses = {node.node_name: node.address for node in client.nodes() if node.state != "lost"}
        return cls(now, client.agents_scheme(), addresses, known_racks(client))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Roster:
        """What was saved; some error of Python when it is of the wrong kind."""
        return cls(float(body["at"]), str(body["scheme"]), _texts(body["addresses"]), _texts(body["racks"]))

    def is_old(self, now: float) -> bool:
        """Whether it should be read again."""
        return not 0 <= now - self.at < ROSTER_SECONDS_A_NODE * len(self.addresses)


@dataclass
class Memory:
    """What a run leaves to the next: how many there were, the roster, and what was measured of each peer and when.

    Moments are Unix seconds; what lies in the future, because a clock was set back, is forgotten.
    """

    runs: int = 0
    roster: Roster | None = None
    seen: dict[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> Memory:
        """What was saved; a new one when that is missing or damaged."""
        try:
            body: dict[str, Any] = json.loads(file.read_bytes())
            seen = {str(peer): (float(rate), float(at)) for peer, (rate, at) in body["seen"].items()}
            if not all(0 < rate < math.inf for rate, _ in seen.values()):
                return cls()
            return cls(int(body["runs"]), Roster.from_json(body["roster"]), seen)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return cls()

    def save(self, file: Path) -> None:
        """All or nothing."""
        body = {"runs": self.runs, "roster": self.roster and vars(self.roster), "seen": self.seen}
        new = file.with_suffix(".new")
        new.write_text(json.dumps(body))
        new.replace(file)

    def note(self, peer: str, bytes_per_second: float, now: float) -> None:
        """Keep a result, and of all results the newest."""
        self.seen[peer] = (bytes_per_second, now)
        newest = sorted(self.seen.items(), key=lambda seen: seen[1][1], reverse=True)
        self.seen = dict(newest[:MOST_PEERS])

    def results(self, now: float) -> dict[str, dict[str, float]]:
        """Peer -> bytes_per_second and age_seconds, of the nodes that there still are."""
        known = self.roster.addresses if self.roster else {}
        return {
            peer: {"bytes_per_second": round(rate), "age_seconds": round(now - at, 1)}
            for peer, (rate, at) in sorted(self.seen.items())
            if peer in known and 0 <= now - at <= OLDEST_SECONDS
        }


def known_racks(client: InfoClient) -> dict[str, str]:
    """The rack of each node of which one is known; none where nothing tells racks."""
    try:
        return {datum.node_name: datum.data_value for datum in client.data(RACK) if datum.data_value}
    except NotFound:
        return {}


def next_peer(node: str, roster: Roster, run: int) -> str | None:
    """The node to ask in the run of this number; None where there is no other node."""
    ring = sorted({node, *roster.addresses}, key=lambda name: hashlib.sha256(name.encode()).digest())
    here = ring.index(node)
    others = ring[here + 1 :] + ring[:here]
    own_rack = roster.racks.get(node)
    near = [other for other in others if roster.racks.get(other) == own_rack]
    far = [other for other in others if roster.racks.get(other) != own_rack]
    groups = [group for group in (near, far) if group]
    if not groups:
        return None
    turn, group = divmod(run, len(groups))
    return groups[group][turn % len(groups[group])]


def bytes_per_second(address: str, tls: ssl.SSLContext | None) -> float:
    """How quickly PROBE_BYTES come from the agent at an address (host:port); NoProbe when they do not in time."""
    results: SimpleQueue[float | NoProbe] = SimpleQueue()
    # Nothing ends a look-up of a name that takes long. So this waits for a thread, and does not any longer when it is
    # over time; the program does not wait for it either.
    threading.Thread(target=lambda: results.put(_try_probe(address, tls)), daemon=True).start()
    try:
        rate = results.get(timeout=PATIENCE_SECONDS)
    except Empty:
        raise _too_slow(address) from None
    if isinstance(rate, NoProbe):
        raise rate
    return rate


def _try_probe(address: str, tls: ssl.SSLContext | None) -> float | NoProbe:
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        with closing(new_connection(address, None, PATIENCE_SECONDS, tls)) as connection:
            _fetch(connection, WARM_BYTES, deadline)
            started = time.perf_counter()
            _fetch(connection, PROBE_BYTES, deadline)
            return PROBE_BYTES / (time.perf_counter() - started)
    except NoProbe as error:
        return error
    except TimeoutError:
        return _too_slow(address)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return NoProbe(f"the agent at {address} gave no probe: {error}")


def _too_slow(address: str) -> NoProbe:
    return NoProbe(f"the agent at {address} gave no probe within {PATIENCE_SECONDS:g} s")


def _fetch(connection: http.client.HTTPConnection, size: int, deadline: float) -> None:
    connection.request("GET", f"{PATH}?bytes={size}")
    came = 0
    with answer_by(connection, deadline) as response:
        if response.status != http.client.OK:
            raise NoProbe(f"it answered {response.status}")
        while chunk := response.read(CHUNK_BYTES):
            came += len(chunk)
    if came != size:
        raise NoProbe(f"{came} bytes came instead of {size}")


def _texts(body: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(text) for name, text in body.items()}
