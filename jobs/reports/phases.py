"""What a job spends its time with before the first row and after the last one, in words."""

from __future__ import annotations

from jobs.reports.report import CONTAINER, NETWORK, PLAN, JobReport, LeaseReport, Phase

QUEUE, MASTER = "queue", "master"
LIBRARIES, STORE = "libraries", "store"
WORDS = {
    QUEUE: "waits for its application master",
    MASTER: "the application master starts",
    PLAN: "images are listed and divided",
    CONTAINER: "waits for its container",
    LIBRARIES: "the worker imports its libraries",
    NETWORK: "the worker loads its network",
    STORE: "results are stored",
}
"""The names of phases, in their order, and what they are called."""


def tell_phases(report: JobReport) -> str:
    """How long each phase lasted until the first row, and the last one, in a sentence; "" where nothing is known."""
    accepted = [lease for lease in report.leases if lease.is_accepted]
    if not (report.phases and accepted):
        return ""
    first = min(accepted, key=_end)
    own = [one for one in report.phases if one.node_name in ("", first.node_name)]
    before = [one for one in own if one.name != STORE]
    if not before:
        return ""
    waited = first.end - min(one.begin for one in before)
    said = ", ".join(f"{one.name} {one.seconds:.1f} s" for one in sorted(before, key=_order))
    stored = "".join(f"; storing {one.seconds:.1f} s" for one in own if one.name == STORE)
    return f"first row on {first.node_name} after {waited:.1f} s: {said}{stored}"


def _end(lease: LeaseReport) -> float:
    return lease.end


def _order(phase: Phase) -> int:
    return list(WORDS).index(phase.name) if phase.name in WORDS else len(WORDS)
