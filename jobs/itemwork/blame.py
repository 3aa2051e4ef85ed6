"""Which container works for which node, and which items are to blame when it, or a process of it, ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.application.journal import Record
from jobs.itemwork.messages import Group, Item
from jobs.itemwork.suspects import Suspects

DIED = "died"


@dataclass
class _Site:
    """A node's container: the group that it announced, and the last group that it reported as deadly."""

    container_id: str
    announced: tuple[str, ...] = ()
    reported: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Death:
    """A process or a container ended during this group of items; `convicted` are those now known to be the reason."""

    names: Sequence[str]
    reason: str
    container: bool
    convicted: Mapping[str, str] = field(default_factory=dict)

    def to_record(self) -> Record:
        """The death as a record of the journal."""
        body = {"names": list(self.names), "reason": self.reason, "container": self.container}
        return Record(DIED, {**body, "convicted": dict(self.convicted)})


class Blame:
    """Not thread-safe; the names given here are those of items that the node's container holds."""

    def __init__(self) -> None:
        self._sites: dict[str, _Site] = {}
        self._unexplained: dict[str, set[str]] = {}
        """By container that ended while nothing was suspected, what it may have ended by."""
        self._suspects = Suspects()

    def container(self, node: str) -> str | None:
        """The container that works for a node now."""
        site = self._sites.get(node)
        return site.container_id if site else None

    def set_container(self, node: str, container: str) -> None:
        """Note that a container works for a node from now on."""
        self._sites[node] = _Site(container)

    def forget_container(self, node: str) -> None:
        """Note that no container works for a node."""
        self._sites.pop(node, None)

    def announce(self, node: str, names: Sequence[str]) -> None:
        """Note which suspected items a node's container does now, apart from others; empty when it has done them."""
        site = self._sites[node]
        site.announced, site.reported = tuple(names), frozenset()

    def has_announced(self, node: str, container: str) -> bool:
        """Whether this container has begun with items that are suspected, and is not done with them."""
        site = self._sites.get(node)
        return site is not None and site.container_id == container and bool(site.announced)

    def note_process_death(self, node: str, names: Sequence[str], reason: str) -> Death | None:
        """Note that a process ended during these items; None if a container repeats that because an answer was lost."""
        site = self._sites[node]
        if site.reported == frozenset(names):
            return None
        site.announced, site.reported = (), frozenset(names)
        return self._death(names, reason, container=False)

    def note_container_death(self, node: str, held: Iterable[Sequence[str]], reason: str) -> list[Death]:
        """Note that a container ended during the items that it announced, else during any that need no announcement."""
        site = self._sites[node]
        announced = site.announced
        groups = [announced] if announced else [[n for n in names if n not in self._suspects] for names in held]
        if not announced:
            self._unexplained[site.container_id] = {name for names in groups for name in names}
        return [self._death(names, reason, container=True) for names in groups if names]

    def pop_excused(self) -> list[str]:
        """The containers that ended by what is convicted now, and not by their nodes; each is told once."""
        guilty = self._suspects.convictions.keys()
        found = [container for container, names in self._unexplained.items() if names & guilty]
        for container in found:
            del self._unexplained[container]
        return found

    def clear(self, node: str, names: Sequence[str]) -> None:
        """Note that these items have their rows: no node gets them again."""
        site, done = self._sites[node], set(names)
        site.announced = tuple(name for name in site.announced if name not in done)
        self._suspects.clear(names)

    def restore(self, records: Iterable[Record]) -> None:
        """Take over the deaths that an earlier attempt recorded."""
        for record in records:
            if record.kind == DIED:
                death = Death(**record.body)
                self._suspects.note_death(death.names, death.reason, death.container)
                self._suspects.convict(death.convicted)

    def split(self, items: Sequence[Item]) -> tuple[Group, ...]:
        """Divide items into groups to be done apart; convicted items are left out."""
        return self._suspects.split(items)

    def convictions(self, names: Iterable[str]) -> dict[str, str]:
        """The convicted ones of these items, which no node gets again, with the reasons."""
        reasons = self._suspects.convictions
        return {name: reasons[name] for name in names if name in reasons}

    def _death(self, names: Sequence[str], reason: str, container: bool) -> Death:
        return Death(names, reason, container, self._suspects.note_death(names, reason, container))
