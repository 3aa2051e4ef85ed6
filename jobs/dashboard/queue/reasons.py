"""What an application waits for, in words: made of what YARN says of it, and of the figures of queue and nodes."""

from __future__ import annotations

from collections.abc import Sequence

from hadoop.rest.resourcemanager import NodeRoom
from hadoop.rest.scheduler import LeafQueue, Size
from jobs.dashboard.queue.line import Row

MOST_NAMES = 5
"""Of nodes in one sentence."""
_USERS_MASTERS = "User's AM resource limit exceeded"
_NO_CLUSTER = "cluster resource is empty"


def waits_for(row: Row, place: int, queue: LeafQueue | None, rooms: Sequence[NodeRoom], *, counts_vcores: bool) -> str:
    """What stands in its way now, as "it waits for ..." goes on; `place` counts from 1 in its queue."""
    if row.known.application.state != "ACCEPTED":
        return "YARN to take it in"
    if not rooms or _NO_CLUSTER in row.known.application.diagnostics:
        return "nodes: none takes work"
    if not row.is_active:
        return _inactive(row, queue, counts_vcores)
    if row.mb is None:
        return "a place: YARN does not tell this user how much it asks for"
    return _full_queue(row, row.mb, queue) or _nodes(row, row.mb, place, rooms)


def _inactive(row: Row, queue: LeafQueue | None, counts_vcores: bool) -> str:
    said = row.known.application.diagnostics
    if queue is None or "AM resource limit exceeded" not in said:
        return "YARN to make it active: the queue or its user has as many applications as may run at once"
    if _USERS_MASTERS in said:
        user = row.known.user
        has = next((one.masters for one in queue.users if one.name == user), Size(0, 0))
        figures = _masters(row, has, queue.user_masters_most, counts_vcores)
        return f"room for the application masters of {user} in {queue.name}, tasks included: {figures}"
    figures = _masters(row, queue.masters, queue.masters_most, counts_vcores)
    return f"room for application masters in {queue.name}, tasks included: {figures}"


def _masters(row: Row, has: Size, most: Size, counts_vcores: bool) -> str:
    """What masters have of at most how much: of memory, of vcores or of both, whichever leaves no room for it."""
    asks = Size(row.mb or 0, row.vcores or 1)
    lacks_vcores = counts_vcores and has.vcores + asks.vcores > most.vcores
    lacks_mb = has.mb + asks.mb > most.mb or not lacks_vcores
    figures, asked = [], []
    if lacks_mb:
        figures.append(f"{has.mb:,} of at most {_mb(most.mb)}")
        asked.append(_mb(asks.mb))
    if lacks_vcores:
        figures.append(f"{has.vcores:,} of at most {_cores(most.vcores)}")
        asked.append(_cores(asks.vcores))
    asks_for = "" if row.mb is None else f", and it asks for {' and '.join(asked)}"
    return f"they have {' and '.join(figures)}{asks_for}"


def _full_queue(row: Row, mb: int, queue: LeafQueue | None) -> str:
    if queue is None:
        return ""
    used_mb = queue.used_mb - row.reserved_mb  # YARN counts that as used
    if queue.most_mb and used_mb + mb > queue.most_mb:
        return (
            f"room in the queue {queue.name}: it has {_mb(used_mb)} of at most {_mb(queue.most_mb)}, and this "
            f"asks for {_mb(mb)}"
        )
    user = next((one for one in queue.users if one.name == row.known.user), None)
    has_mb = user.used_mb - row.reserved_mb if user else 0
    if user and user.most_mb and has_mb + mb > user.most_mb:
        return (
            f"what {user.name} runs in {queue.name} to end: it has {_mb(has_mb)} of at most {_mb(user.most_mb)} "
            f"there, and this asks for {_mb(mb)}"
        )
    return ""


def _nodes(row: Row, mb: int, place: int, rooms: Sequence[NodeRoom]) -> str:
    vcores = row.vcores or 0
    may = [one for one in rooms if one.label == row.label and (row.hosts is None or one.node_name in row.hosts)]
    asks = f"it asks for {_mb(mb)} and {_cores(vcores)}"
    if not may:
        return f"{_which(row)}: none of them takes work"
    if not any(one.total_mb >= mb and one.total_vcores >= vcores for one in may):
        largest = max(may, key=lambda one: (one.total_mb, one.total_vcores))
        return (
            f"a node that is large enough: {asks}, and the largest that it may use, {largest.node_name}, has "
            f"{_mb(largest.total_mb)} and {_cores(largest.total_vcores)}"
        )
    if not any(one.free_mb >= mb and one.free_vcores >= vcores for one in may):
        most = max(may, key=lambda one: (one.free_mb, one.free_vcores))
        return (
            f"room on {_which(row)}: {asks}, and {most.node_name} has the most free, {_mb(most.free_mb)} and "
            f"{_cores(most.free_vcores)}"
        )
    if place > 1:
        return f"its turn: {place - 1:,} before it in {row.known.queue}"
    return "YARN to give it a place: there is room, and a node that has it says so once a second"


def _which(row: Row) -> str:
    """The nodes that it may have."""
    if row.hosts is not None:
        names = sorted(row.hosts)
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        nodes = "node" if len(names) == 1 else "nodes"
        return f"{', '.join(names[:MOST_NAMES])}{more}, the only {nodes} that it may use"
    return f"a node with the label {row.label}" if row.label else "a node"


def _mb(number: int | None) -> str:
    return f"{number or 0:,} MB"


def _cores(number: int) -> str:
    return f"{number:,} {'vcore' if number == 1 else 'vcores'}"
