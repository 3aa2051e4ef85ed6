"""How one job went, whoever did it: when its rows came, how long its slowest node did nothing, and its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from bench.info.errors import BenchError
from locality.bounds import makespan_lower_bound


class Stretch(NamedTuple):
    """A node had these images to do from `begin` to `end`, in seconds."""

    node: str
    begin: float
    end: float
    images: int


@dataclass(frozen=True)
class Course:
    """Seconds since a job was asked for: until its master or its first partition `began`, and its rows came.

    The `whole` time ends when the results are in place and that is told. `idle` are the seconds that the slowest node
    had nothing to do between the first read and the last row anywhere; `bound` is the makespan of a perfect division.
    """

    began: float
    first: float
    last: float
    whole: float
    idle: float
    bound: float


def follow_report(report: Mapping[str, Any], asked_at: float, whole: float, nodes: Sequence[str]) -> Course:
    """A job of nodewise that was asked for at `asked_at`, in seconds since the epoch."""
    began = datetime.fromisoformat(report["started_at"]).timestamp() - asked_at
    last = max(lease["end"] for lease in report["leases"] if lease["outcome"] == "accepted")
    # Who worked in vain had something to do, too.
    stretches = [
        Stretch(
            lease["node_name"],
            lease["begin"],
            min(lease["end"], last),
            lease["images"] if lease["outcome"] == "accepted" else 0,
        )
        for lease in report["leases"]
        if lease["begin"] < last
    ]
    return Course(
        began=began,
        first=began + report["first_result_seconds"],
        last=began + last,
        whole=whole,
        idle=find_idle(stretches, nodes),
        bound=report["lower_bound_seconds"],
    )


def follow_pieces(
    pieces: Sequence[Mapping[str, Any]], asked_at: float, committed_at: float, nodes: Sequence[str]
) -> Course:
    """A job of Spark whose partitions say on which node they began, had their first row, and ended."""
    stretches = [Stretch(one["node"], one["started"], one["ended"], one["images"]) for one in pieces]
    speeds = {node: speed for node, speed in find_speeds(stretches, nodes).items() if speed}
    return Course(
        began=min(one.begin for one in stretches) - asked_at,
        first=min(one["first"] for one in pieces) - asked_at,
        last=max(one.end for one in stretches) - asked_at,
        whole=committed_at - asked_at,
        idle=find_idle(stretches, nodes),
        bound=makespan_lower_bound(sum(one.images for one in stretches), speeds),
    )


def find_idle(stretches: Sequence[Stretch], nodes: Sequence[str]) -> float:
    """Seconds that the node with the lowest speed had nothing to do; one that had nothing at all is the slowest.

    >>> find_idle([Stretch("a", 0, 10, 100), Stretch("b", 1, 4, 3), Stretch("b", 3, 6, 3)], ["a", "b"])
    5.0
    """
    speeds = find_speeds(stretches, nodes)
    slowest = min(nodes, key=speeds.__getitem__)
    whole = max(one.end for one in stretches) - min(one.begin for one in stretches)
    return max(0.0, whole - find_busy([one for one in stretches if one.node == slowest]))


def find_speeds(stretches: Sequence[Stretch], nodes: Sequence[str]) -> dict[str, float]:
    """Images a second of each node while it had something to do; BenchError for a node that is not one of these."""
    if strange := {one.node for one in stretches} - set(nodes):
        raise BenchError(f"{', '.join(sorted(strange))} are no nodes of this cluster: it has {', '.join(nodes)}")
    speeds = {}
    for node in nodes:
        own = [one for one in stretches if one.node == node]
        busy = find_busy(own)
        speeds[node] = sum(one.images for one in own) / busy if busy else 0.0
    return speeds


def find_busy(stretches: Sequence[Stretch]) -> float:
    """Seconds in which at least one of them goes on.

    >>> find_busy([Stretch("a", 0, 2, 1), Stretch("a", 1, 3, 1), Stretch("a", 5, 6, 1)])
    4.0
    """
    seconds, until = 0.0, float("-inf")
    for one in sorted(stretches, key=lambda one: one.begin):
        seconds += max(0.0, one.end - max(one.begin, until))
        until = max(until, one.end)
    return seconds
