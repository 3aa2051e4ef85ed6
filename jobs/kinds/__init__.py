"""The kinds of job: a folder and a line each.

    NAME  ->  module:class; the class is a Coordinator or a Runner (jobs.application.coordinator), made with an Attempt

To add one: a folder here with such a class, and a line below. `Submitter.submit` takes an Order that names the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from jobs.errors import JobError

if TYPE_CHECKING:  # whoever reads a kind's settings needs nothing of an application master
    from jobs.application.coordinator import Attempt, Coordinator, Runner

KINDS: Mapping[str, str] = {
    "classify": "jobs.kinds.classify.coordinator:Classify",
    "command": "jobs.kinds.command.coordinator:Command",
    "pool": "jobs.kinds.pool.coordinator:Pool",
    "task": "jobs.kinds.task.runner:Task",
    "train": "jobs.kinds.train.coordinator:Train",
    "warm": "jobs.kinds.warm.coordinator:Warm",
}


def find_kind(name: str) -> Callable[[Attempt], Coordinator | Runner]:
    """What makes the work of a kind of job; only that kind is imported. JobError when there is none of this name."""
    if name not in KINDS:
        raise JobError(f"there is no kind of job called {name!r}: there are {', '.join(sorted(KINDS))}")
    module, _, made = KINDS[name].partition(":")
    kind: Callable[[Attempt], Coordinator | Runner] = getattr(import_module(module), made)
    return kind
