"""Of which generation this process is a member, and the group of that generation."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Set
from threading import Thread

from learning.lead.lead import Lead, Told
from learning.member.group import Broken, Group, Place
from learning.member.links import plain_address
from learning.member.store import Store

GOODBYE_SECONDS = 5.0
"""How long groups that were given up may take to end when the program leaves."""


class Membership:
    """Forms groups as whoever leads the run says; LearningError when this process takes part no more."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._store = Store(lead.host)
        self._group: Group | None = None
        self._abandoned: list[Thread] = []
        self._nodes: Mapping[str, str] = {}
        self.number = 0
        self.members: tuple[str, ...] = ()

    @property
    def process(self) -> str:
        """The name of this member."""
        return self._lead.process

    @property
    def rank(self) -> int:
        """The place of this member among all."""
        return self.members.index(self.process)

    @property
    def is_formed(self) -> bool:
        """Whether there is a group."""
        return self._group is not None

    @property
    def group(self) -> Group:
        """The group of the generation; Broken when it was given up."""
        if self._group is None:
            raise Broken("the group was given up")
        return self._group

    def form(self, steps: int) -> Told | None:
        """Wait for the next generation and form its group; Broken when that fails, None when all steps are done."""
        told = self._lead.next_generation(self.number, steps, self._store.offer)
        if told is None:
            return None
        made = told.generation
        self.number, self.members, self._nodes = made.number, made.members, told.nodes
        self._store.keep(made.number)
        place = Place(made.number, self.rank, len(made.members), made.store, self._lead.host)
        self._group = Group(place, self.is_over, self._complain)
        self._group.form()
        return told

    def is_over(self) -> bool:
        """Whether the generation ends at once."""
        return self._lead.is_over(self.number)

    def decides_to_end(self) -> bool:
        """Whether this member is rank 0, and the generation is to end after a step."""
        return self.rank == 0 and self._lead.is_ending(self.number)

    def look_after_store(self) -> None:
        """Replace a store that has died while nobody needs it."""
        self._store.revive()

    def give_up(self) -> None:
        """Abandon the group."""
        if self._group is not None:
            self._abandoned = [*filter(Thread.is_alive, self._abandoned), self._group.abandon()]
            self._group = None

    def _complain(self, cut: Set[str]) -> None:
        """Tell which members are at these addresses: where several are on a node, all of them but this one."""
        nodes = {self._nodes.get(one, "") for one in self.members} if cut else set()
        cut_off = {node for node in nodes if node and not cut.isdisjoint(_addresses_of(node))}
        others = [one for one in self.members if one != self.process and self._nodes.get(one, "") in cut_off]
        self._lead.complain(self.number, others)

    def leave(self, why: str | None) -> None:
        """Take part no more: the work is done, or what went wrong."""
        self.give_up()
        self._lead.close(why)
        until = time.monotonic() + GOODBYE_SECONDS
        for thread in self._abandoned:
            thread.join(max(0.0, until - time.monotonic()))
        self._store.close()


def _addresses_of(node: str) -> Set[str]:
    """None where nobody knows the node."""
    try:
        return {plain_address(str(found[4][0])) for found in socket.getaddrinfo(node, None)}
    except OSError:
        return frozenset()
