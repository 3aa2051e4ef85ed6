"""Why a task runs where it runs: what YARN and the plug-in said of the nodes when it was seen there first.

YARN decides when a node has room, and tells nobody. So this is what could be seen a moment later, at most a turn of the
submitter; what the task itself took of its node is given back to it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hadoop.rest.resourcemanager import NodeOrder, NodeRoom
from infosvc.wire.records import Datum, State
from infosvc.wire.tasks import ConsideredNode, NotedValue, TaskDecision
from jobs.submitter.replaying import USUAL_ORDER


@dataclass(frozen=True)
class Sight:
    """What YARN says of its nodes at one moment: what those that take work have left, and the plug-in's orders."""

    rooms: Sequence[NodeRoom]
    orders: Mapping[str, NodeOrder]

    def order_of(self, program: str | None) -> NodeOrder | None:
        """The order by which the tasks of a program go, None where there is no plug-in."""
        return self.own_order_of(program) or self.orders.get(USUAL_ORDER)

    def own_order_of(self, program: str | None) -> NodeOrder | None:
        """The order that is made for a program alone, None without one."""
        return self.orders.get(f"program.{program}")


@dataclass(frozen=True)
class Seat:
    """Where a start of a task is, or was, what it needs there, and the hosts that may have it, none for any.

    YARN was asked for a node that it `prefers` before others, and `ready_seconds` is when each node would have its
    environment. `resources` are of other types than memory and cores.
    """

    task_id: str
    node_name: str
    attempt: int
    memory_mb: int
    vcores: int
    hosts: Sequence[str] = ()
    prefers: Sequence[str] = ()
    ready_seconds: Mapping[str, float] = field(default_factory=dict)
    has_ended: bool = False
    resources: Mapping[str, int] = field(default_factory=dict)


def decide(
    seat: Seat, rooms: Sequence[NodeRoom], order: NodeOrder | None, at: float, known: Iterable[Datum] = ()
) -> TaskDecision:
    """Why a task sits there, by what nodes have left and how they are ordered; `at` is the moment in Unix seconds.

    `known` are the values that orders are made from, of all nodes.
    """
    names = {room.node_name for room in rooms}
    nodes = consider(seat, rooms, order)
    nodes.sort(key=lambda one: (one.score is None, -(one.score or 0.0), one.node_name))
    return TaskDecision(
        task_id=seat.task_id,
        attempt=seat.attempt,
        node_name=seat.node_name,
        at=at,
        order=order.name if order else None,
        age_seconds=order.age_seconds if order else None,
        nodes=tuple(nodes),
        said=_sentence(seat.node_name, nodes, order) + _ready_sentence(seat),
        values=tuple(_noted(one) for one in known if one.node_name in names),
    )


def consider(seat: Seat, rooms: Iterable[NodeRoom], order: NodeOrder | None) -> list[ConsideredNode]:
    """What each node is to a task that sits there, by what it has left and its score in an order, if it has one."""
    scores = dict(order.first) if order and order.age_seconds is not None else {}
    return [_considered(room, seat, scores) for room in rooms]


def _noted(datum: Datum) -> NotedValue:
    is_fresh = datum.state is State.FRESH
    return NotedValue(datum.data_name, datum.node_name, datum.data_value, datum.age, is_fresh)


def _considered(room: NodeRoom, seat: Seat, scores: Mapping[str, float]) -> ConsideredNode:
    is_own = room.node_name == seat.node_name and not seat.has_ended
    free_mb = room.free_mb + (seat.memory_mb if is_own else 0)
    free_vcores = room.free_vcores + (seat.vcores if is_own else 0)
    has_others = is_own or all(room.free.get(name, 0) >= count for name, count in seat.resources.items())
    return ConsideredNode(
        node_name=room.node_name,
        allowed=not seat.hosts or room.node_name in seat.hosts,
        has_room=free_mb >= seat.memory_mb and free_vcores >= seat.vcores and has_others,
        free_mb=free_mb,
        free_vcores=free_vcores,
        score=scores.get(room.node_name),
        ready_seconds=seat.ready_seconds.get(room.node_name),
        preferred=room.node_name in seat.prefers,
    )


def _sentence(node_name: str, nodes: Sequence[ConsideredNode], order: NodeOrder | None) -> str:
    allowed = [one for one in nodes if one.allowed]
    able = [one.node_name for one in allowed if one.has_room]
    said = f"{len(allowed)} of {len(nodes)} nodes may run it, of which {len(able)} had room. "
    if order is None:
        return f"{said}YARN has no order of nodewise here, and took {node_name} by its own rules."
    if order.age_seconds is None:
        return f"{said}The order {order.name} had no values, so YARN took {node_name} by its own rules."
    of_values = f"The order {order.name}, by values that were {order.age_seconds:.1f} s old, "
    if node_name not in able:
        return f"{said}{of_values}says nothing of {node_name}, which YARN took."
    place = able.index(node_name) + 1
    which = "first" if place == 1 else f"at place {place}"
    return f"{said}{of_values}has {node_name} {which} among them."


def _ready_sentence(seat: Seat) -> str:
    seconds = seat.ready_seconds.get(seat.node_name)
    if seconds is None:
        return ""
    has_it = "had its environment already" if seconds <= 0 else f"gets its environment in about {seconds:.2g} s"
    said = f" {seat.node_name} {has_it}."
    if not seat.prefers:
        return said
    first = ", ".join(seat.prefers)
    why = "" if seat.node_name in seat.prefers else ", and got none of these in time"
    return f" YARN was asked for {first} first, where the task would be done soonest{why}.{said}"
