"""Every figure of the bench: what it says, what it must reach, and how it is shown."""

from __future__ import annotations

from bench.info.figures import MB, Figure
from bench.placement.instances import KINDS
from bench.placement.scale import Scale

TIMES = {(4, 400): 10e-3, (1_000, 100_000): 0.5, (10_000, 1_000_000): 6.0}
BYTES = {(10_000, 1_000_000): 1e9}
OVER, LOCAL = 1.05, 0.98


def makespan_figures() -> list[Figure]:
    """Simulated: what stealing makes of each plan, and what the plan would have come to."""
    found = []
    for fault, what in (("none", "nothing else goes wrong"), ("slower", "one 4x straggler"), ("lost", "one node lost")):
        most = OVER if fault == "slower" else None
        text = f"makespan / bound, sigma 0.3, {what}"
        found.append(Figure(f"stealing_{fault}", "makespan", f"{text}, with stealing", most=most))
        found.append(Figure(f"stealing_{fault}_p95", "makespan", "the same, 95th percentile"))
        found.append(Figure(f"alone_{fault}", "makespan", "the same, the plan alone, median"))
    text = "bytes read from other nodes / all, sigma 0.3, one 4x straggler, with stealing"
    return [*found, Figure("stealing_slower_moved", "makespan", text, "%", 100)]


def bytes_figures() -> list[Figure]:
    """Of the plans, without a simulation."""
    found = []
    for kind, about in KINDS.items():
        text = f"bytes moved / optimum, {kind}: {about.text}"
        found.append(Figure(f"over_{kind}", "bytes", text, most=OVER))
        found.append(Figure(f"over_{kind}_worst", "bytes", "the same, worst", most=OVER))
        least = LOCAL if kind == "uniform" else None
        found.append(Figure(f"local_{kind}", "bytes", "the same: bytes that stay", "%", 100, least=least))
        found.append(Figure(f"best_local_{kind}", "bytes", "the same, of the optimum", "%", 100))
        found.append(Figure(f"plan_{kind}", "bytes", "the same: planned makespan / bound, worst"))
    return found


def time_figures(scale: Scale) -> list[Figure]:
    """On the clock, each plan in a process of its own."""
    found = []
    for kind, sizes in (("uniform", scale.sizes), ("skewed", scale.hard)):
        for size in sizes:
            key, text = time_key(kind, *size), f"planning {size[0]:,} nodes x {size[1]:,} blocks, {kind}"
            unit = ("ms", 1e3) if size[0] < 1000 else ("s", 1.0)
            found.append(Figure(f"{key}_seconds", "time", text, *unit, most=TIMES.get(size)))
            if size[0] < 1000:
                found.append(Figure(f"{key}_again_seconds", "time", "the same, once more in the same process", *unit))
            found.append(Figure(f"{key}_peak_bytes", "time", "the same: memory at most", *MB, most=BYTES.get(size)))
            found.append(Figure(f"{key}_input_bytes", "time", "the same: of it before planning", *MB))
    return found


def time_key(kind: str, nodes: int, blocks: int) -> str:
    """How the names of the figures of one size begin."""
    return f"{kind}_{nodes}x{blocks}"


def figures(scale: Scale) -> list[Figure]:
    """All of them, in the order of the table."""
    return [*makespan_figures(), *bytes_figures(), *time_figures(scale)]
