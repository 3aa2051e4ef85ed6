"""The latest of everything, in memory: readers ask it and never the database.

Configuration is one immutable object, replaced as a whole; values lie in CurrentValues, one column per data name. The
writer changes both only after what it changes is stored (or, with ack fast, noted down), so no reader needs a lock.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

import msgspec

from infosvc.state.tracked import Experiment, StoredRun
from infosvc.wire.answers import AuditEntry, Token
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Producer
from infosvc.wire.tasks import Task


class Machine(msgspec.Struct, frozen=True, gc=False):
    """One enrolled node; `seen` is monotonic seconds, `version` that of its wanted state."""

    address: str
    agent_version: str
    version: int
    seen: float | None = None
    boot: str = ""
    sequence: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class SlotRequest:
    """One slot as it is wanted; without an `interval` (seconds) the producer's time_max counts.

    `epoch` counts how often its quarantine was lifted. A `placed` slot is one for which the service chose the node.
    """

    running: bool
    interval: float | None = None
    epoch: int = 0
    placed: bool = False


@dataclass(frozen=True)
class StoredToken:
    """A token as it is kept: what may be shown of it, and its SHA-256."""

    token: Token
    sha256: str


class StoredTask(msgspec.Struct, frozen=True):
    """A task as it is kept; `size` is the bytes of its specification."""

    task: Task
    size: int


class StoredAlert(msgspec.Struct, frozen=True):
    """An alert as it is kept; `seconds` is how long its condition must hold, or not hold."""

    condition: str
    seconds: float
    url: str | None
    created_by: str
    created_at: float


class AlertState(msgspec.Struct, frozen=True):
    """How an alert stands about one thing; `owner` is the user whose task that is, empty for what all may know.

    `since` is when it went on, or when its condition began to hold; `until` when that ceased to hold while it is on.
    """

    is_on: bool
    since: float
    until: float | None
    said: str
    owner: str = ""


class Delivery(msgspec.Struct, frozen=True):
    """A message that has not arrived yet; `alert_id` is empty if it is about no alert."""

    url: str
    body: str
    created_at: float
    alert_id: str = ""


@dataclass(frozen=True)
class Configuration:
    """The configuration at one moment: producers by name, nodes by name, slots by node and name, tokens, tasks,
    experiments and runs by id.

    `gone_tasks` holds when tasks were forgotten whose files on the cluster may still be there, in Unix seconds, `audit`
    the newest entry of the audit log under "last", `counters` what must never be counted anew. `alert_states` are by
    alert and what they are about, `deliveries` by the id of their event.
    """

    producers: dict[str, Producer] = field(default_factory=dict)
    nodes: dict[str, Machine] = field(default_factory=dict)
    slots: dict[str, dict[str, SlotRequest]] = field(default_factory=dict)
    tokens: dict[str, StoredToken] = field(default_factory=dict)
    tasks: dict[str, StoredTask] = field(default_factory=dict)
    gone_tasks: dict[str, float] = field(default_factory=dict)
    experiments: dict[str, Experiment] = field(default_factory=dict)
    runs: dict[str, StoredRun] = field(default_factory=dict)
    alerts: dict[str, StoredAlert] = field(default_factory=dict)
    alert_states: dict[str, dict[str, AlertState]] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    audit: dict[str, AuditEntry] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def producer(self, data_name: str) -> Producer:
        """A registered producer; NotFound says how to register it and which names are close."""
        if data_name in self.producers:
            return self.producers[data_name]
        close = difflib.get_close_matches(data_name, self.producers, n=3)
        raise NotFound(
            f"no producer is registered under {data_name!r}: "
            f"register it with `nodewise producer put {data_name} --cmd ... --time-max ...`"
            + (f", or use a name close to it: {', '.join(close)}" if close else ""),
            "data_name",
        )

    def node(self, node_name: str) -> Machine:
        """An enrolled node; NotFound says how to enrol it."""
        if node_name not in self.nodes:
            raise NotFound(
                f"no node is called {node_name!r}", "node_name", remedy=f"enrol it with `nodewise node add {node_name}`"
            )
        return self.nodes[node_name]

    def slot_request(self, node_name: str, data_name: str) -> SlotRequest:
        """One slot of a node; NotFound says how to start it."""
        self.node(node_name)
        slot_request = self.slots.get(node_name, {}).get(data_name)
        if slot_request is None:
            raise NotFound(
                f"{node_name} has no slot for {data_name!r}",
                "data_name",
                remedy=f"start one with `nodewise slot start {data_name} --node {node_name}`",
            )
        return slot_request
