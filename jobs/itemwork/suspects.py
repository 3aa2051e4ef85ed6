"""Which items may have ended a process: found again by halves, and convicted when nothing else can have been it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import MappingProxyType

from jobs.itemwork.messages import Group, Item

HALVES, PIECES = 2, 16
"""What a process did is cut into so many groups; a container that ends is dear, so what it did is cut into more."""
ENOUGH_DEATHS = 2
"""An item is convicted when a process died of it alone, and this was at least the so-many-th that died with it."""
ENOUGH_OF_ANY = 3
"""The same for containers, and for both together: others than its items can end a container."""


class Suspects:
    """Groups of names under suspicion, each to be done apart from all other items; not thread-safe.

    A group that was alone when its process died is cut into pieces. A name that was done is cleared.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._group: dict[str, int] = {}
        self._deaths: Counter[str] = Counter()
        self._of_processes: Counter[str] = Counter()
        self._convicted: dict[str, str] = {}

    @property
    def convictions(self) -> Mapping[str, str]:
        """Why an item is not given any more, by name."""
        return MappingProxyType(self._convicted)

    def __contains__(self, name: str) -> bool:
        return name in self._group

    def split(self, items: Sequence[Item]) -> tuple[Group, ...]:
        """The items of one lease without those convicted: first all that nobody suspects, then each suspect group.

        What is suspected comes last, so that the others are done when it ends a process again.
        """
        groups: dict[int | None, list[Item]] = {}
        for item in items:
            if item.name not in self._convicted:
                groups.setdefault(self._group.get(item.name), []).append(item)
        fine = groups.pop(None, None)
        suspect = [Group(tuple(together), suspect=True) for together in groups.values()]
        return (Group(tuple(fine)), *suspect) if fine else tuple(suspect)

    def note_death(self, names: Sequence[str], reason: str, container: bool = False) -> dict[str, str]:
        """A process, or a whole container, died while it did `names` and nothing else; the newly convicted and why."""
        names = [name for name in names if name not in self._convicted]
        self._deaths.update(names)
        self._of_processes.update(() if container else names)
        if len(names) == 1 and self._is_guilty(names[0]):
            return self.convict({names[0]: reason})
        size = -(-len(names) // (PIECES if container else HALVES)) or 1
        for start in range(0, len(names), size):
            self._group |= dict.fromkeys(names[start : start + size], next(self._numbers))
        return {}

    def convict(self, reasons: Mapping[str, str]) -> dict[str, str]:
        """Give these items to nobody any more; those that were not convicted before."""
        new = {name: reason for name, reason in reasons.items() if name not in self._convicted}
        self._convicted |= new
        return new

    def clear(self, names: Iterable[str]) -> None:
        """These were done, or need no suspicion."""
        for name in names:
            self._group.pop(name, None)
            self._deaths.pop(name, None)
            self._of_processes.pop(name, None)

    def _is_guilty(self, name: str) -> bool:
        return self._of_processes[name] >= ENOUGH_DEATHS or self._deaths[name] >= ENOUGH_OF_ANY
