"""Sums of what applications have used, by user or by queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hadoop.rest.amounts import MEMORY, VCORES, Amounts, add
from hadoop.rest.usage import ApplicationUse
from infosvc.wire.tasks import Task

GPU = "yarn.io/gpu"
HOUR = 3600.0
MB_PER_GB = 1024
_TASK = "task:"


@dataclass(frozen=True)
class Account:
    """All that one user or queue has used: of how many applications, how many of which still run."""

    name: str
    applications: int
    running: int
    seconds: Amounts

    @property
    def core_hours(self) -> float:
        """Hours of one core."""
        return self.hours(VCORES)

    @property
    def memory_gb_hours(self) -> float:
        """Hours of 1,024 MB of memory, as YARN counts them."""
        return self.hours(MEMORY) / MB_PER_GB

    def hours(self, name: str) -> float:
        """Hours of one of a type of resource."""
        return self.seconds.get(name, 0) / HOUR

    def to_json(self, by: str) -> dict[str, Any]:
        """As a program reads it; `by` is what its name is called."""
        others = {name: self.hours(name) for name in sorted(self.seconds) if name not in (MEMORY, VCORES, GPU)}
        return {
            by: self.name,
            "applications": self.applications,
            "running": self.running,
            "core_hours": self.core_hours,
            "memory_gb_hours": self.memory_gb_hours,
            "gpu_hours": self.hours(GPU),
            "other_hours": others,
        }


def accounts(uses: Iterable[ApplicationUse], name_of: Callable[[ApplicationUse], str]) -> list[Account]:
    """The sums by name, the largest in core-hours first."""
    by_name: dict[str, list[ApplicationUse]] = {}
    for use in uses:
        by_name.setdefault(name_of(use), []).append(use)
    found = [
        Account(name, len(own), sum(use.finished_at is None for use in own), add(use.seconds for use in own))
        for name, own in by_name.items()
    ]
    return sorted(found, key=lambda one: (-one.core_hours, one.name))


def ended_since(uses: Iterable[ApplicationUse], since: float) -> list[ApplicationUse]:
    """Those that have ended after a moment, or not at all."""
    return [use for use in uses if use.finished_at is None or use.finished_at > since]


def owner_of(uses: Sequence[ApplicationUse], tasks: Mapping[str, Task]) -> Callable[[ApplicationUse], str]:
    """What tells the user of an application: of a task its owner, of any other YARN's user.

    Anybody may give an application the tag of a task, so it counts as one only for the user as whom that task has run.
    """
    users = {use.application_id: use.user for use in uses}

    def name(use: ApplicationUse) -> str:
        for tag in use.tags:
            task = tasks.get(tag.removeprefix(_TASK)) if tag.startswith(_TASK) else None
            if task and users.get(task.application_id or "") == use.user:
                return task.owner
        return use.user

    return name
