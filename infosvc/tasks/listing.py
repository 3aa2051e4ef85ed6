"""Finding tasks, of which each caller sees its own: `owners` are whose it may see, None for everybody's."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from infosvc.state.configuration import Configuration, StoredTask
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.tasks import Task, TaskState

Owners = frozenset[str] | None

_PLACE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?):(task_[0-9a-f]{16})")


@dataclass(frozen=True)
class Wanted:
    """Which tasks are asked for; what is empty asks for all. `text` stands in the name, the id or the program."""

    states: Collection[TaskState] = ()
    owner: str = ""
    text: str = ""

    def takes(self, task: Task) -> bool:
        """Whether a task is one of them."""
        return (
            (not self.states or task.state in self.states)
            and (not self.owner or task.owner == self.owner)
            and (not self.text or self._says(task))
        )

    def _says(self, task: Task) -> bool:
        text = self.text.lower()
        return text in task.name.lower() or text in task.task_id or text in (task.spec.program or "")


def find(configuration: Configuration, owners: Owners, task_id: str) -> StoredTask:
    """One task; NotFound when there is none that the caller may see."""
    stored = configuration.tasks.get(task_id)
    if stored is None or (owners is not None and stored.task.owner not in owners):
        raise NotFound(
            f"no task has the id {task_id!r}",
            "task_id",
            remedy="`nodewise task list` shows those that there are",
        )
    return stored


def select(tasks: Mapping[str, StoredTask], owners: Owners, wanted: Wanted, after: str = "") -> list[Task]:
    """The tasks that are asked for, newest first, those up to the place `after` left out."""
    seen = (stored.task for stored in tasks.values() if owners is None or stored.task.owner in owners)
    found = [task for task in seen if wanted.takes(task)]
    if after:
        place = _read_place(after)
        found = [task for task in found if _order(task) > place]
    return sorted(found, key=_order)


def count_starting_in(tasks: Mapping[str, StoredTask], environments: Collection[str]) -> int:
    """How many tasks shall still start in one of these environments, whosever they are."""
    return sum(one.task.has_to_start and one.task.spec.env in environments for one in tasks.values())


def place_of(task: Task) -> str:
    """Where a task stands in a list, wherever it goes: it may be asked for what comes after it."""
    return f"{task.created_at!r}:{task.task_id}"


def _order(task: Task) -> tuple[float, str]:
    return -task.created_at, task.task_id


def _read_place(text: str) -> tuple[float, str]:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise InvalidInput(f"after={text[:80]!r} is not allowed: a place in the list, as Link has it", "after")
    return -float(found[1]), found[2]
