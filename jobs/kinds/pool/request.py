"""A pool as users ask for it, and what a job must not ask of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from jobs.application.submit import MASTER_MEMORY_MB, MasterNeeds, Order
from jobs.errors import JobError
from jobs.kinds.pool.client import KIND, Pool, pool_tag
from jobs.kinds.pool.settings import PoolSettings

MASTER_MB = MASTER_MEMORY_MB + 384
"""Of a pool's master: what one needs, and the plans of 384,000 files."""
TOKEN_SECONDS = 30 * 86_400.0
OF_JOBS = ("input", "output", "capability", "cold_start", "policy", "fallback", "steal")
"""The settings that each job of a pool has of its own."""


def order(settings: PoolSettings, job: Order) -> Order:
    """A pool for jobs as `job` is one: its workers are this one's."""
    settings.check()
    return replace(
        job,
        kind=KIND,
        name=f"nodewise pool {settings.name}",
        settings=asdict(replace(settings, of=job.kind, job=job.settings, parts=job.settings.get("parts", {}))),
        tags=[pool_tag(settings.name)],
        needs_service=False,
        token_seconds=TOKEN_SECONDS,
        master=MasterNeeds(MASTER_MB),
    )


def check_fits(name: str, pool: Pool, wanted: Mapping[str, Any]) -> None:
    """JobError names what a job wants to be otherwise than all jobs of the pool are."""
    had = pool.settings.job
    for what, value in wanted.items():
        if value != had.get(what):
            raise JobError(
                f"the pool {name} has {_called(what)} {had.get(what) or 'of its own'}, and the job wants {value}",
                remedy="leave that option out, or bring up another pool: `nodewise pool list` shows which there are",
            )


def _called(what: str) -> str:
    return {"model": "the model", "engine": "the engine"}.get(what, f"--{what}")
