"""How leases are given, as whoever runs a job sets it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """How leases are given.

    lease_seconds  a node that is not heard of for so long loses its leases and its queue; one that is heard of but
                   works on nothing and takes nothing for so long loses its queue, within twice that time
    most_items    in one lease
    share          of what a node would still do if all ended together, in one lease: at 1/8 a node that becomes four
                   times slower with a full batch in hand needs half of the time left for it
    at_once        items that a node looks at together: what is more than that in one lease is a multiple of it
    least_seconds  of work in one lease, at most `at_once` items: towards the end shares are so small that giving
                   and taking them would take longer than the work
    wait_seconds   the longest that a node is told to wait
    steal          whether an idle node takes of what others still have; what was given back is for everyone anyway
    """

    lease_seconds: float = 30.0
    most_items: int = 64
    share: float = 1 / 8
    at_once: int = 1
    least_seconds: float = 0.0
    wait_seconds: float = 1.0
    steal: bool = True
