"""Members read what lies on their own nodes, and still find what one process finds."""

from __future__ import annotations

from tests.learning.conftest import Amid, Led, Start, until
from tests.learning.results import EXACT, differ


def test_members_read_their_own_replicas_first(led: Led, start: Start, alone: list[float]) -> None:
    members = [start(name, "--placed", "--pace", "0.001") for name in "abc"]

    found = [one.wait_for_result() for one in members]

    assert max(differ(one, alone) for one in found) < EXACT
    done = [one.done for one in led.leader.members().values()]
    assert sum(one.reads for one in done) == sum(one.samples for one in done) == 4 * 1000
    # Some 16 of 64 samples lie on all nodes, which is more than what shares and batches differ by.
    assert sum(one.local_reads for one in done) > 0.9 * 4 * 1000


def test_a_lost_member_takes_its_replicas_with_it(led: Led, start: Start, amid: Amid, alone: list[float]) -> None:
    members = {name: start(name, "--placed", *amid.words) for name in "abc"}
    until(lambda: led.steps() > 5)
    members.pop("b").process.kill()
    amid.let_end()

    found = [one.wait_for_result() for one in members.values()]

    assert max(differ(one, alone) for one in found) < EXACT
    left = [one.done for name, one in led.leader.members().items() if name != "b"]
    assert all(0 < one.local_reads < one.reads for one in left)


def test_without_places_nobody_counts_reads(led: Led, start: Start, alone: list[float]) -> None:
    found = [one.wait_for_result() for one in [start(name) for name in "abc"]]

    assert max(differ(one, alone) for one in found) < EXACT
    assert {(one.done.reads, one.done.local_reads) for one in led.leader.members().values()} == {(0, 0)}
