"""The order of samples: each once in an epoch, the same for ever, and like one drawn by chance."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from locality.training.sample_order import ROUNDS, SampleOrder
from locality.types import PlanError

WORD = 2**64 - 1
GOLDEN_FIRST = [25563, 54472, 41950, 41468, 8886, 60569, 61415, 34399]
GOLDEN_LAST = [8742, 54418, 24609, 7757, 29032, 57491, 29417, 43224]
GOLDEN_SMALL = [0, 4, 6, 1, 8, 2, 7, 3, 5, 9]
GOLDEN_LARGE = [618549924808864, 312978871447027, 687433837938783]
GOLDEN_DIGEST = "61cf480513fbf05f"


def reference(samples: int, seed: int, epoch: int) -> list[int]:
    """The same permutation in whole numbers of Python, written from the description alone."""
    half = 1
    while 4**half < samples:
        half += 1
    digest = blake2b(f"{seed}/{epoch}".encode(), digest_size=8 * ROUNDS).digest()
    keys = [int.from_bytes(digest[at : at + 8], "little") for at in range(0, 8 * ROUNDS, 8)]

    def permute(value: int) -> int:
        left, right = divmod(value, 2**half)
        for key in keys:
            mixed = (right + key) & WORD
            mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & WORD
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & WORD
            mixed ^= mixed >> 31
            left, right = right, left ^ (mixed % 2**half)
        return int(left * 2**half + right)

    found = []
    for place in range(samples):
        value = permute(place)
        while value >= samples:
            value = permute(value)
        found.append(value)
    return found


def whole(order: SampleOrder, epoch: int = 0) -> list[int]:
    return [int(sample) for step in range(order.steps) for sample in order.of_step(epoch, step)]


def test_the_order_is_what_it_always_was() -> None:
    """A run that goes on under a later version must not change its order: never change these numbers."""
    order = SampleOrder(samples=61_440, batch=1024, seed=7)

    assert order.of_step(0, 0)[:8].tolist() == GOLDEN_FIRST
    assert order.of_step(3, 59)[-8:].tolist() == GOLDEN_LAST
    assert whole(SampleOrder(10, 4, seed=1)) == GOLDEN_SMALL
    assert SampleOrder(10**15, 3, seed=-5).of_step(2, 10**14).tolist() == GOLDEN_LARGE
    digest = blake2b(np.array(whole(order, 1), dtype="<i8").tobytes(), digest_size=8).hexdigest()
    assert digest == GOLDEN_DIGEST


@given(st.integers(1, 300), st.integers(1, 40), st.integers(-(2**70), 2**70), st.integers(0, 9))
def test_each_sample_is_in_an_epoch_once_in_the_order_of_the_reference(
    samples: int, batch: int, seed: int, epoch: int
) -> None:
    order = SampleOrder(samples, batch, seed)
    found = whole(order, epoch)

    assert sorted(found) == list(range(samples))
    assert found == reference(samples, seed, epoch)


def test_the_batch_size_cuts_the_order_but_does_not_change_it() -> None:
    assert whole(SampleOrder(1000, 64, 3)) == whole(SampleOrder(1000, 7, 3))


def test_the_last_batch_of_an_epoch_is_short() -> None:
    order = SampleOrder(10, 4)

    assert [len(order.of_step(0, step)) for step in range(order.steps)] == [4, 4, 2]
    assert [order.locate(step) for step in (0, 2, 3, 7)] == [(0, 0), (0, 2), (1, 0), (2, 1)]


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = [whole(SampleOrder(500, 100, seed), epoch) for seed in range(3) for epoch in range(3)]

    assert all(sum(a == b for a, b in zip(one, two, strict=True)) < 15 for one, two in permutations(orders, 2))


@pytest.mark.parametrize("samples", [3, 4, 5])
def test_every_order_of_a_few_samples_is_as_frequent_as_any_other(samples: int) -> None:
    found = Counter(tuple(whole(SampleOrder(samples, samples, seed))) for seed in range(3000))
    expected = len(list(permutations(range(samples))))

    assert len(found) == expected
    assert chisquare(list(found.values())).pvalue > 1e-3


def test_neighbours_are_not_drawn_together() -> None:
    order = np.array(whole(SampleOrder(10_000, 1000, 5)))

    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.04
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.04
    assert np.isclose((order[:1000] < 5000).mean(), 0.5, atol=0.06)


def test_what_is_out_of_range_is_named() -> None:
    with pytest.raises(PlanError, match="0 samples cannot be put in order"):
        SampleOrder(0, 1)
    with pytest.raises(PlanError, match="a batch of 0 samples is no batch"):
        SampleOrder(1, 0)
    with pytest.raises(PlanError, match="there is no step 3 in epoch 0: an epoch has 3 steps"):
        SampleOrder(10, 4).of_step(0, 3)
