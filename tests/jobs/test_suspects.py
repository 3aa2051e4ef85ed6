"""An image that ends processes is found by halves; all others get through."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.itemwork.messages import Group, Item
from jobs.itemwork.suspects import Suspects

REASON = "signal 9"


def pictures(*names: str) -> list[Item]:
    return [Item(name, name, None, 10) for name in names]


def names(groups: tuple[Group, ...]) -> list[tuple[list[str], bool]]:
    return [([picture.name for picture in group.items], group.suspect) for group in groups]


def test_what_nobody_suspects_is_one_group() -> None:
    assert names(Suspects().split(pictures("a", "b"))) == [(["a", "b"], False)]
    assert Suspects().split([]) == ()


def test_a_group_that_died_comes_again_in_halves_after_everything_else() -> None:
    suspects = Suspects()

    assert suspects.note_death(["b", "c", "d"], REASON) == {}

    assert names(suspects.split(pictures("a", "b", "c", "d", "e"))) == [
        (["a", "e"], False),
        (["b", "c"], True),
        (["d"], True),
    ]


def test_a_picture_is_convicted_when_it_dies_alone_after_its_group() -> None:
    suspects = Suspects()
    suspects.note_death(["a", "b"], REASON)

    assert suspects.note_death(["a"], "hung") == {"a": "hung"}
    assert suspects.convictions == {"a": "hung"}
    assert names(suspects.split(pictures("a", "b", "c"))) == [(["c"], False), (["b"], True)]


def test_a_picture_that_was_alone_from_the_beginning_has_to_die_twice() -> None:
    suspects = Suspects()

    assert suspects.note_death(["a"], REASON) == {}
    assert suspects.note_death(["a"], REASON) == {"a": REASON}


@pytest.mark.parametrize(
    ("containers", "convicts"),
    [
        ([False, False], True),
        ([True, True], False),
        ([True, True, True], True),
        ([True, False], False),
        ([False, True], False),
        ([True, False, True], True),
        ([True, False, False], True),
    ],
)
def test_containers_have_to_die_once_more_than_processes(containers: list[bool], convicts: bool) -> None:
    suspects = Suspects()
    for container in containers[:-1]:
        assert suspects.note_death(["a"], REASON, container) == {}

    assert bool(suspects.note_death(["a"], REASON, containers[-1])) == convicts


def test_a_picture_that_was_done_starts_anew() -> None:
    suspects = Suspects()
    suspects.note_death(["a", "b"], REASON)

    suspects.clear(["a", "c"])

    assert names(suspects.split(pictures("a", "b"))) == [(["a"], False), (["b"], True)]
    assert suspects.note_death(["a"], REASON) == {}


def test_more_pieces_find_it_with_fewer_deaths() -> None:
    suspects = Suspects()
    suspects.note_death([f"{n:02d}" for n in range(64)], REASON, container=True)

    assert {len(group.items) for group in suspects.split(pictures(*(f"{n:02d}" for n in range(64))))} == {4}


def test_the_convicted_die_no_more() -> None:
    suspects = Suspects()
    suspects.convict({"a": "first"})

    assert suspects.note_death(["a"], "second") == {}
    assert suspects.convict({"a": "third"}) == {}
    assert suspects.convictions == {"a": "first"}


@given(
    poison=st.sets(st.integers(0, 39), max_size=4),
    cuts=st.lists(st.integers(1, 39), max_size=3),
    container=st.booleans(),
)
def test_exactly_the_poison_is_convicted_and_within_few_deaths(
    poison: set[int], cuts: list[int], container: bool
) -> None:
    """Processes die of poison and of nothing else; what is left is given again, cut elsewhere each time."""
    suspects, left, deaths = Suspects(), set(range(40)), 0
    borders = [0, *sorted(set(cuts)), 40]
    while left:
        for begin, end in pairwise(borders):
            lease = pictures(*(str(n) for n in range(begin, end) if n in left))
            for group in suspects.split(lease):
                done = {int(picture.name) for picture in group.items}
                if poison & done:
                    deaths += 1
                    suspects.note_death([picture.name for picture in group.items], REASON, container)
                else:
                    left -= done
                    suspects.clear([picture.name for picture in group.items])
            left -= {int(name) for name in suspects.convictions}
        borders = [0, 40]
        assert deaths <= 8 * len(poison)

    assert {int(name) for name in suspects.convictions} == poison
