"""A training run that is invented: what its members and the service told, put into the status by the run's own code."""

from __future__ import annotations

import math
from typing import Any

from jobs.application.status import JobStatus, NodeStatus
from jobs.kinds.train.page_section import change_of, find_largest, generation_of, nodes_of

ODD = "<b>n1</b>"
WHY = "cpu_free_ratio of n2 <i>fell</i> from 0.98 to 0.21"


def training(steps: int, names: list[str]) -> dict[str, Any]:
    """What a run of so many steps tells that lost the last of these nodes at step 600, and whose second slowed down."""
    alike = {name: 120 // len(names) or 1 for name in names}
    left = {name: 120 // (len(names) - 1) or 1 for name in names[:-1]}
    slow = left | {names[1]: max(1, left[names[1]] // 4), names[0]: left[names[0]] + left[names[1]] * 3 // 4}
    seconds = {name: round(0.05 + 0.002 * at, 6) for at, name in enumerate(names)}
    changes = [
        change(0, 2.0, alike, "the first shares, all nodes alike", None, seconds),
        change(600, 71.0, left, f"{names[-1]} left", None, {name: seconds[name] for name in names[:-1]}),
        change(1200, 140.0, slow, WHY, 1.62, {name: seconds[name] for name in names[:-1]}),
    ]
    work = {
        name: {"samples": steps * share, "compute_seconds": 60.5, "wait_seconds": 3.25} for name, share in slow.items()
    }
    work[names[-1]] = {"samples": 600 * alike[names[-1]], "compute_seconds": 30.0, "wait_seconds": 1.0}
    lost = {"node": names[-1], "at_seconds": 68.0, "why": "silent for 5.0 s", "cost_seconds": 3.0}
    generations = [
        generation(1, 2.0, 0, names, f"lost {names[-1]}"),
        generation(2, 71.0, 600, names[:-1], ""),
    ]
    largest = find_largest(work, slow)
    return {
        "steps": steps,
        "steps_in_all": 2000,
        "nodes": nodes_of(work, largest),
        "shares": [change_of(one, largest) for one in changes],
        "generations": [generation_of(one, largest) for one in generations],
        "generations_in_all": len(generations),
        "losses": [lost],
        "losses_in_all": 1,
        "cost_seconds": 3.0,
        "loss": [[step, round(2 * math.exp(-step / 500) + 0.1, 6)] for step in range(1, steps, max(1, steps // 400))],
    }


def change(
    step: int, at: float, shares: dict[str, int], why: str, gain: float | None, seconds: dict[str, float]
) -> dict[str, Any]:
    """As the report has it."""
    return {"step": step, "at_seconds": at, "shares": shares, "gain": gain, "why": why, "step_seconds": seconds}


def generation(number: int, at: float, first_step: int, nodes: list[str], ended: str) -> dict[str, Any]:
    """As the report has it."""
    told = {"number": number, "at_seconds": at, "first_step": first_step, "from_checkpoint": False}
    return told | {"nodes": nodes, "ended": ended}


def status(job_id: str, steps: int, names: list[str], state: str = "running") -> JobStatus:
    """The status of such a run."""
    nodes = tuple(NodeStatus(name, "working", 2000, steps, 0, 0, 1, 0.0, said="a sample") for name in names)
    section = {"Program": "python", "Output": "/out/<u>run1</u>", "training": training(steps, names)}
    return JobStatus(
        *(job_id, state, 1, 2000, steps, 0, 200.0, None), nodes, kind="train", unit="steps", section=section
    )
