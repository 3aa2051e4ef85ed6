"""A pool as users ask for it, and what a job must not ask of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jobs.application.submit import MASTER_MEMORY_MB, MasterNeeds, Order
from jobs.engines.network import digits_of
from jobs.errors import JobError
from jobs.kinds.pool.client import KIND, Pool, pool_tag
from jobs.kinds.pool.settings import PoolSettings

MASTER_MB = MASTER_MEMORY_MB + 384
"""Of a pool's master: what one needs, and the plans of 384,000 files."""
TOKEN_SECONDS = 30 * 86_400.0
OF_JOBS = ("input", "output", "capability", "cold_start", "policy", "fallback", "steal")
"""The settings that each job of a pool has of its own."""
FILES = ("weights", "preparation", "labels")
"""The settings of a pool's jobs that name files of their network, a model aside, whose name has its content."""
OTHERWISE = "leave that option out, or bring up another pool: `nodewise pool list` shows which there are"


def order(settings: PoolSettings, job: Order) -> Order:
    """A pool for jobs as `job` is one: its workers are this one's."""
    staged = {what: job.settings[what] for what in FILES if job.settings.get(what)}
    told = replace(
        settings,
        of=job.kind,
        job=job.settings,
        digits={what: digits_of(job.uploads[name]) for what, name in staged.items()},
        parts=job.settings.get("parts", {}),
    )
    return replace(
        job,
        kind=KIND,
        name=f"nodewise pool {settings.name}",
        settings=asdict(told),
        tags=[pool_tag(settings.name)],
        needs_service=False,
        token_seconds=TOKEN_SECONDS,
        master=MasterNeeds(MASTER_MB),
        stands=True,
    )


def check_fits(name: str, pool: Pool, wanted: Mapping[str, Any]) -> None:
    """JobError names what a job wants to be otherwise than all jobs of the pool are."""
    had = pool.settings.job
    for what, value in wanted.items():
        if value != had.get(what):
            raise JobError(
                f"the pool {name} has {_called(what)} {had.get(what) or 'of its own'}, and the job wants {value}",
                remedy=OTHERWISE,
            )


def check_files(name: str, pool: Pool, wanted: Mapping[str, Path | None]) -> None:
    """JobError names the file of a job's network, None for none, that has another content than the pool's has."""
    for what, file in wanted.items():
        had, digits = pool.settings.digits.get(what), digits_of(file) if file else None
        if had == digits:
            continue
        if file is None:
            raise JobError(f"the pool {name} has a file of {what}, and the job has none", remedy=OTHERWISE)
        says = f"other {what} than {file}" if had else f"no {what}, and the job has {file}"
        raise JobError(f"the pool {name} has {says}", remedy=OTHERWISE)


def _called(what: str) -> str:
    return {"model": "the model", "engine": "the engine"}.get(what, f"--{what}")
