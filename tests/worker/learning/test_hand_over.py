"""What rank 0 hands on arrives as it is, in pieces, and nobody has it in memory many times."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from learning.member.group import Group, Place
from learning.member.store import Store

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[3]
MEBIBYTES = 96
"""Of the state: so that two pieces of it are not much."""


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(HOST)
    yield made
    made.close()


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 2000, 5003])
def test_all_members_get_what_rank_0_gives(store: Store, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("learning.member.group.PIECE_BYTES", 1000)
    content = bytes(number * number % 251 for number in range(size))
    address, found = store.offer(), {}

    def take_part(rank: int) -> None:
        group = Group(Place(1, rank, 3, address, HOST), lambda: False)
        group.form()
        found[rank] = group.spread(None if rank else content)
        group.abandon().join(60)

    members = [threading.Thread(target=take_part, args=(rank,)) for rank in range(3)]
    for one in members:
        one.start()
    for one in members:
        one.join(90)

    assert [found.get(rank) for rank in range(3)] == [content] * 3


def test_a_state_is_handed_on_without_many_copies_of_it(store: Store) -> None:
    words = [sys.executable, "-m", "tests.worker.learning.hand_over"]
    members = [
        subprocess.Popen(
            [*words, str(rank), store.offer(), str(MEBIBYTES)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]

    try:
        giver, taker = [int(one.communicate(timeout=120)[0]) for one in members]
    finally:
        for one in members:
            one.kill()
            one.communicate()

    assert giver < 1.7 * MEBIBYTES
    assert taker < 2.2 * MEBIBYTES
