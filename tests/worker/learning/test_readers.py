"""Who reads what: rank 0 asks once where samples lie, and all members go by what it tells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from learning.errors import LearningError
from learning.member.readers import Readers

NODES = {"a": "n1", "b": "n2", "c": "n3"}
NUMBERS = np.arange(6)


class Asked:
    """Samples lie on n1, n2 and n3 in turn; counts how often that was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, numbers: Sequence[int]) -> list[tuple[str, ...]]:
        self.times += 1
        return [(f"n{number % 3 + 1}",) for number in numbers]


def own(readers: Readers, members: Sequence[str], rank: int) -> list[int]:
    return readers.own(NUMBERS, [len(NUMBERS) // len(members)] * len(members), rank)


def test_each_member_reads_its_own_replicas_and_a_later_rank_0_does_not_ask_again() -> None:
    asked = Asked()
    first, second = Readers(6, asked), Readers(6, asked)
    told = first.pack(("a", "b", "c"), NODES)
    for one in (first, second):
        one.load(told)

    assert [own(first, "abc", rank) for rank in range(3)] == [[0, 3], [1, 4], [2, 5]]
    assert own(second, "abc", 1) == [1, 4]
    assert second.count_local([1, 4, 5], 1) == 2

    second.load(second.pack(("b", "c"), NODES))
    assert {1, 4} < set(own(second, "bc", 0)) and {2, 5} < set(own(second, "bc", 1))
    assert asked.times == 1


def test_what_nobody_knew_is_not_asked_again_while_members_wait_for_each_other() -> None:
    asked = Asked()
    readers = Readers(6, lambda numbers: [()] * len(numbers))
    readers.load(readers.pack(("a",), NODES))
    readers._ask = asked

    readers.load(readers.pack(("a",), NODES))

    assert asked.times == 0 and not readers.count_local([0], 0)


@pytest.mark.parametrize(
    ("readers", "nodes"), [(Readers(6, None), NODES), (Readers(6, Asked()), {})], ids=["data", "node"]
)
def test_without_places_or_nodes_members_read_one_after_another(readers: Readers, nodes: dict[str, str]) -> None:
    readers.load(readers.pack(("a", "b"), nodes))

    assert not readers.know_places
    assert [own(readers, "ab", rank) for rank in range(2)] == [[0, 1, 2], [3, 4, 5]]


def test_places_of_too_few_samples_are_refused() -> None:
    with pytest.raises(LearningError, match="the data tells the places of 1 of 6 samples: places_of must return"):
        Readers(6, lambda _: [("n1",)]).pack(("a",), NODES)
