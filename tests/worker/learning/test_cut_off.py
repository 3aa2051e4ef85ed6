"""A member whose packets to another are lost says so while it waits, and stops when the generation is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch

from learning.lead.lead import Alone, Told
from learning.member.group import Broken
from learning.member.membership import Membership
from locality.training.generation_events import Generation
from tests.dropped_packets import dropping, heal

NODES = {"a": "127.0.0.2", "b": "127.0.0.3", "c": "127.0.0.3"}
SECONDS = 50.0


class Together(Alone):
    """Leads a member of a generation of two, and keeps what it complains of."""

    def __init__(self, process: str, members: Sequence[str], store: str) -> None:
        super().__init__()
        self.process, self.host = process, NODES[process]
        self.complaints: list[Sequence[str]] = []
        self.is_ended = False
        self._made = Generation(1, 1, tuple(members), 0, True, (), store)

    def next_generation(self, after: int, steps: int, store: Callable[[], str]) -> Told:
        return Told(self._made, nodes=NODES)

    def is_over(self, number: int) -> bool:
        return self.is_ended

    def complain(self, number: int, members: Sequence[str]) -> None:
        assert number == 1
        self.complaints.append(members)


@pytest.fixture
def drop() -> Iterator[Callable[..., None]]:
    """Drops packets of a hook of the kernel, until the end of the test."""
    yield from dropping()


def test_members_that_are_cut_from_each_other_say_so_and_stop_when_they_shall(drop: Callable[..., None]) -> None:
    place = Membership(Together("a", "a", ""))
    store = place._store.offer()
    leads = [Together(name, "ab", store) for name in "ab"]
    members = [Membership(lead) for lead in leads]
    said: list[str] = []

    def take_part(one: Membership) -> None:
        one.form(0)
        formed.wait(SECONDS)
        try:
            while True:
                one.group.add_up(torch.ones(1 << 10))
        except Broken as error:
            said.append(str(error))

    formed = threading.Barrier(3)
    threads = [threading.Thread(target=take_part, args=(one,), daemon=True) for one in members]
    for thread in threads:
        thread.start()
    formed.wait(SECONDS)
    drop("input", *(f"ip {end} {node}" for end in ("saddr", "daddr") for node in (NODES["a"], NODES["b"])))
    _await(lambda: any(any(lead.complaints) for lead in leads))
    for lead in leads:
        lead.is_ended = True
    for thread in threads:
        thread.join(SECONDS)

    assert said == ["the generation is over"] * 2
    for lead, others in zip(leads, (["b"], ["a"]), strict=True):
        assert all(found in ([], others) for found in lead.complaints)
    heal()
    for one in (*members, place):
        one.leave(None)  # which waits for what goes on in the group


def test_a_member_that_hears_nothing_of_the_store_complains_and_waits(drop: Callable[..., None]) -> None:
    """What it asks comes there; who waits for others must not be taken for one whose group broke."""
    place = Membership(Together("a", "a", ""))
    store = place._store.offer()
    lead = Together("b", "ab", store)
    member = Membership(lead)
    said: list[str] = []

    def take_part() -> None:
        try:
            member.form(0)
        except Broken as error:
            said.append(str(error))

    thread = threading.Thread(target=take_part, daemon=True)
    thread.start()
    _await(lambda: member.is_formed and any(member.group._links._open()))
    drop("input", f"tcp sport {store.split(':')[1]}")

    _await(lambda: any(lead.complaints) or said)
    assert (lead.complaints, said) == ([["a"]], [])
    lead.is_ended = True
    thread.join(SECONDS)
    assert said == ["the generation is over"]
    heal()
    for each in (member, place):
        each.leave(None)


def test_all_members_on_a_node_that_does_not_answer_are_complained_of() -> None:
    lead = Together("a", "abc", "")
    member = Membership(lead)
    member.number, member.members, member._nodes = 1, ("a", "b", "c"), NODES

    for cut_off in (["127.0.0.3"], ["127.0.0.2"], ["127.0.0.9"], []):
        member._complain(frozenset(cut_off))

    assert lead.complaints == [["b", "c"], [], [], []]


def _await(holds: Callable[[], object]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.05)
