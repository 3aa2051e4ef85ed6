"""Nodes that register anew with a ResourceManager: how long they are waited for, and by whom."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hadoop.registration import FIRST_SECONDS, LATE, SETTLE_SECONDS, Registration


class Manager:
    """Knows a node that is decommissioned, and others from their seconds on. Its clock goes on while somebody waits."""

    def __init__(self, *registered_at: float, interval: float = 1.0) -> None:
        self.registered_at = registered_at
        self.now = 0.0
        self.said: list[str] = []
        self.registration = Registration(interval, self.said.append, lambda: self.now, self.pass_seconds)

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds

    def known(self) -> Sequence[str]:
        return ["gone", *(f"n{number}" for number, at in enumerate(self.registered_at) if at <= self.now)]

    def ask(self) -> int:
        """How many have registered, as one is told who may have to wait."""
        return len(self.registration.ask(self.known, lambda one: one != "gone")) - 1


@pytest.mark.parametrize(
    ("registered_at", "found", "after"),
    [
        ([0.0], 1, 0.0),
        ([0.0, 1.0], 1, 0.0),
        ([], 0, FIRST_SECONDS),
        ([0.5], 1, 0.5 + SETTLE_SECONDS),
        ([5.0, 6.0, 8.5], 3, 8.5 + SETTLE_SECONDS),
        ([FIRST_SECONDS, FIRST_SECONDS + 1], 2, FIRST_SECONDS + 1 + SETTLE_SECONDS),
        ([FIRST_SECONDS + 1], 0, FIRST_SECONDS),
        ([2.0, 2.5 + SETTLE_SECONDS], 1, 2.0 + SETTLE_SECONDS),
        ([2.0 * number for number in range(1, 100)], FIRST_SECONDS, 2 * FIRST_SECONDS),
    ],
)
def test_nodes_are_waited_for_where_none_has_registered_and_all_are_there_once_no_more_come(
    registered_at: Sequence[float], found: int, after: float
) -> None:
    manager = Manager(*registered_at)

    assert (manager.ask(), manager.now) == (found, after)
    assert len(manager.said) == bool(after)


def test_who_has_waited_in_vain_waits_again_only_once_a_node_was_there() -> None:
    manager = Manager()
    assert [manager.ask(), manager.ask()] == [0, 0]
    assert manager.now == FIRST_SECONDS

    manager.registered_at = (0.0,)
    assert (manager.ask(), manager.now) == (1, FIRST_SECONDS)
    manager.registered_at = (FIRST_SECONDS + 5.0,)

    assert (manager.ask(), manager.now) == (1, FIRST_SECONDS + 5.0 + SETTLE_SECONDS)


def test_nodes_that_try_seldom_are_waited_for_longer() -> None:
    interval = 30.0
    manager = Manager(80.0, 80.0 + interval, interval=interval)

    assert (manager.ask(), manager.now) == (2, 80.0 + interval + LATE * interval)
