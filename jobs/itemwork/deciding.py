"""Divides the items of a job between the nodes, and says how leases on them are given."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

from jobs.division.decision import Decision
from jobs.division.starts import in_plan_time
from jobs.itemwork.calls import LARGEST_COMMIT
from jobs.itemwork.settings import ItemSettings
from jobs.itemwork.snapshot import Snapshot
from locality.policies import policy
from locality.quality import measure_quality
from locality.rules import Rules

FULL_BATCHES = 2
"""The most items of a lease, in full batches of each process: one is computed while the other waits."""
LEAST_SECONDS = 0.25
"""Of work in a lease, where a full batch takes longer; giving and taking one costs some hundredths of a second."""


def decide(job_id: str, settings: ItemSettings, known: Snapshot, unit: str) -> Decision:
    """Whatever the named policy makes of it, with what it was made from; `unit` is what an item is called."""
    program = settings.program
    numbers = known.capabilities[settings.capability].numbers()
    terms = replace(known.terms, starts=in_plan_time(known.start_seconds, known.speeds, numbers))
    started = time.monotonic()
    plan = policy(known.policy)(known.blocks, numbers, terms)
    planning_seconds = time.monotonic() - started
    return Decision(
        job_id=job_id,
        made_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        input=settings.input,
        engine=program.name,
        batch=program.batch,
        policy=known.policy,
        capability=settings.capability,
        capabilities=known.capabilities,
        speeds=known.speeds,
        terms=terms,
        blocks=known.blocks,
        plan=plan,
        quality=measure_quality(plan, known.blocks, numbers, terms),
        planning_seconds=planning_seconds,
        unit=unit,
        start_seconds=known.start_seconds,
    )


def rules_of(settings: ItemSettings) -> Rules:
    """How the leases of a job are given; however large batches are, one commit has to hold the rows of a lease."""
    return Rules(
        lease_seconds=settings.lease_seconds,
        most_items=min(FULL_BATCHES * settings.at_once, max(1, LARGEST_COMMIT // settings.row_bytes)),
        at_once=settings.at_once,
        least_seconds=LEAST_SECONDS,
        steal=settings.steal,
    )


def largest_row_of(settings: ItemSettings) -> int:
    """The most bytes of a row with which one commit holds those of any lease."""
    return LARGEST_COMMIT // rules_of(settings).most_items
