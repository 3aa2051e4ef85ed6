"""What an application waits for, in words: made of what YARN says of it, and of the figures of queue and nodes."""

from __future__ import annotations

from collections.abc import Sequence

from hadoop.rest.amounts import MEMORY, VCORES, Amounts, join_words, say_amount, subtract
from hadoop.rest.resourcemanager import NodeRoom
from hadoop.rest.scheduler import LeafQueue
from jobs.dashboard.queue.line import Row

MOST_NAMES = 5
"""Of nodes in one sentence."""
_USERS_MASTERS = "User's AM resource limit exceeded"
_NO_CLUSTER = "cluster resource is empty"


def waits_for(row: Row, place: int, queue: LeafQueue | None, rooms: Sequence[NodeRoom], *, counts_all: bool) -> str:
    """What stands in its way now, as "it waits for ..." goes on; `place` counts from 1 in its queue.

    Where YARN does not count all types, memory alone is looked at.
    """
    if row.known.application.state != "ACCEPTED":
        return "YARN to take it in"
    if not rooms or _NO_CLUSTER in row.known.application.diagnostics:
        return "nodes: none takes work"
    asks = _counted(row.asks or {}, counts_all)
    if not row.is_active:
        return _inactive(row, asks, queue)
    if not asks:
        return "a place: YARN does not tell this user how much it asks for"
    may = [one for one in rooms if one.label == row.label and (row.hosts is None or one.node_name in row.hosts)]
    return _no_node(row, asks, may) or _full_queue(row, asks, queue) or _room(row, asks, place, may)


def _counted(asks: Amounts, counts_all: bool) -> dict[str, int]:
    """What it asks for of the types that YARN looks at: of others than memory and cores only what is not 0."""
    if not counts_all:
        return {name: count for name, count in asks.items() if name == MEMORY}
    return {name: count for name, count in asks.items() if count or name in (MEMORY, VCORES)}


def _inactive(row: Row, asks: Amounts, queue: LeafQueue | None) -> str:
    said = row.known.application.diagnostics
    if queue is None or "AM resource limit exceeded" not in said:
        return "YARN to make it active: the queue or its user has as many applications as may run at once"
    if _USERS_MASTERS in said:
        user = row.known.user
        has = next((one.masters for one in queue.users if one.name == user), {})
        whose, figures = f"the application masters of {user}", _masters(asks, has, queue.user_masters_most)
    else:
        whose, figures = "application masters", _masters(asks, queue.masters, queue.masters_most)
    if row.label:  # YARN tells what queues have on nodes without a label
        return f"room for {whose} in {queue.name} on nodes with the label {row.label}, tasks included"
    return f"room for {whose} in {queue.name}, tasks included: {figures}"


def _masters(asks: Amounts, has: Amounts, most: Amounts) -> str:
    """What masters have of at most how much: of each type that leaves no room for it; of memory where none does."""
    full = _beyond(asks, has, most) or [MEMORY]
    figures = join_words([f"{has.get(name, 0):,} of at most {say_amount(name, most.get(name, 0))}" for name in full])
    asked = join_words([say_amount(name, asks[name]) for name in full if name in asks])
    return f"they have {figures}{f', and it asks for {asked}' if asked else ''}"


def _full_queue(row: Row, asks: Amounts, queue: LeafQueue | None) -> str:
    if queue is None or row.label:
        return ""
    used = subtract(queue.used, row.reserved)  # YARN counts that as used
    if queue.most.get(MEMORY) and (full := _beyond(asks, used, queue.most)):
        figures = _of_at_most(full, used, queue.most)
        asked = join_words([say_amount(name, asks[name]) for name in full])
        return f"room in the queue {queue.name}: it has {figures}, and this asks for {asked}"
    user = next((one for one in queue.users if one.name == row.known.user), None)
    has = subtract(user.used, row.reserved) if user else {}
    if user and user.most.get(MEMORY) and (full := _beyond(asks, has, user.most)):
        figures = _of_at_most(full, has, user.most)
        asked = join_words([say_amount(name, asks[name]) for name in full])
        return f"what {user.name} runs in {queue.name} to end: it has {figures} there, and this asks for {asked}"
    return ""


def _beyond(asks: Amounts, has: Amounts, most: Amounts) -> list[str]:
    """The types of which there would be more than may be, of those that have a limit."""
    return [name for name, count in asks.items() if name in most and has.get(name, 0) + count > most[name]]


def _of_at_most(names: Sequence[str], has: Amounts, most: Amounts) -> str:
    return join_words(
        [f"{say_amount(name, has.get(name, 0))} of at most {say_amount(name, most[name])}" for name in names]
    )


def _no_node(row: Row, asks: Amounts, may: Sequence[NodeRoom]) -> str:
    """Why none of the nodes that it may use will ever take it as they are, empty if one will."""
    if not may:
        return f"{_which(row)}: none of them takes work"
    if any(_holds(one.all_total, asks) for one in may):
        return ""
    largest = max(may, key=lambda one: _nearness(one.all_total, asks))
    asked, has = _all_of(asks, asks), _all_of(largest.all_total, asks)
    return (
        f"a node that is large enough: it asks for {asked}, and the largest that it may use, {largest.node_name}, "
        f"has {has}"
    )


def _room(row: Row, asks: Amounts, place: int, may: Sequence[NodeRoom]) -> str:
    if not any(_holds(one.all_free, asks) for one in may):
        most = max(may, key=lambda one: _nearness(one.all_free, asks))
        asked, free = _all_of(asks, asks), _all_of(most.all_free, asks)
        return f"room on {_which(row)}: it asks for {asked}, and {most.node_name} has the most free, {free}"
    if place > 1:
        return f"its turn: {place - 1:,} before it in {row.known.queue}"
    return "YARN to give it a place: there is room, and a node that has it says so once a second"


def _holds(has: Amounts, asks: Amounts) -> bool:
    return all(has.get(name, 0) >= count for name, count in asks.items())


def _nearness(has: Amounts, asks: Amounts) -> tuple[float, int]:
    """How near a node comes to what is asked for: by the type of which it has the least part, then by memory."""
    parts = (min(1.0, has.get(name, 0) / count) for name, count in asks.items() if count)
    return min(parts, default=1.0), has.get(MEMORY, 0)


def _all_of(has: Amounts, asks: Amounts) -> str:
    """So much of each type that is asked for."""
    return join_words([say_amount(name, has.get(name, 0)) for name in asks])


def _which(row: Row) -> str:
    """The nodes that it may have."""
    if row.hosts is not None:
        names = sorted(row.hosts)
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        nodes = "node" if len(names) == 1 else "nodes"
        return f"{', '.join(names[:MOST_NAMES])}{more}, the only {nodes} that it may use"
    return f"a node with the label {row.label}" if row.label else "a node"
