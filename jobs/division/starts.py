"""When nodes can begin, as a plan counts it: in items / capability, which are seconds if nodes do items per second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median


def in_plan_time(
    start_seconds: Mapping[str, float], speeds: Mapping[str, float], capability: Mapping[str, float]
) -> dict[str, float]:
    """The starts of a plan by this capability, of nodes that can begin after so many seconds.

    start_i = seconds_i * median(speed_k / C_k) over the nodes k with a known speed, in items per second: so much is one
    unit of the capability worth. Without any such node nothing tells, and all count as if they began at once.

    >>> in_plan_time({"n2": 20.0}, {"n1": 5.0, "n3": 40.0}, {"n1": 1.0, "n2": 2.0, "n3": 8.0})
    {'n2': 100.0}
    """
    worth = [speeds[node] / value for node, value in capability.items() if value > 0 and speeds.get(node, 0) > 0]
    scale = median(worth) if worth else 0.0
    starts = {node: seconds * scale for node, seconds in start_seconds.items() if node in capability}
    return {node: start for node, start in starts.items() if 0 < start < math.inf}
