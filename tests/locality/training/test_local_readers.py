"""Readers of the samples of a step: shares kept, as many local ones as OR-tools finds, and quickly."""

from __future__ import annotations

import random

import numpy as np
import pytest

from locality.training.local_first import StoredSamples, assign, local_samples
from locality.training.local_readers import Holders, Places
from locality.types import Block, PlanError


def draw(chance: random.Random) -> tuple[list[tuple[str, ...]], list[str], np.ndarray, list[int]]:
    """Places of samples, nodes of ranks, the samples of a step, and shares that fit."""
    nodes = [f"n{number}" for number in range(chance.randint(1, 7))]
    kinds = [tuple(chance.sample(nodes, chance.randint(0, min(3, len(nodes))))) for _ in range(chance.randint(1, 12))]
    places = [chance.choice(kinds) for _ in range(chance.randint(1, 80))]
    some = nodes if chance.random() < 0.7 else [*nodes, nodes[0], "elsewhere", ""]
    of_rank = chance.sample(some, chance.randint(1, len(some)))
    samples = np.array(chance.sample(range(len(places)), chance.randint(1, len(places))), np.int64)
    cuts = sorted(chance.randint(0, len(samples)) for _ in of_rank[1:])
    shares = [end - begin for begin, end in zip([0, *cuts], [*cuts, len(samples)], strict=True)]
    return places, of_rank, samples, shares


@pytest.mark.parametrize("seed", range(150))
def test_as_many_are_local_as_ortools_finds(seed: int) -> None:
    places, of_rank, samples, shares = draw(random.Random(seed))
    holders = Holders.find(Places.collect(places), of_rank)

    readers = holders.choose_readers(samples, shares)

    assert np.bincount(readers, minlength=len(shares)).tolist() == shares
    local = sum(holders.count_local(samples[readers == rank].tolist(), rank) for rank in range(len(shares)))
    assert local == sum(of_rank[rank] in places[at] for rank, at in zip(readers, samples, strict=True))
    stored = StoredSamples([Block(f"b{at}", 1, 1, hosts) for at, hosts in enumerate(places)])
    named = {f"m{rank}": node or "unknown" for rank, node in enumerate(of_rank)}
    best = assign(samples, stored, dict(zip(named, shares, strict=True)), named)
    assert local == local_samples(best, stored, named)


def test_what_was_given_first_is_exchanged_where_that_makes_more_local() -> None:
    holders = Holders.find(Places.collect([("a", "b"), ("a", "b"), ("a", "c"), ("a", "c")]), ["a", "b", "c"])

    readers = holders.choose_readers(np.arange(4), [2, 1, 1])

    assert sum(holders.count_local([at], rank) for at, rank in enumerate(readers.tolist())) == 4


def test_what_was_sent_finds_the_same_readers() -> None:
    places, of_rank, samples, shares = draw(random.Random(7))
    collected = Places.collect(places)

    sent = Places.read([list(one) for one in collected.nodes], collected.of_sample.tobytes())

    first, second = (Holders.find(one, of_rank).choose_readers(samples, shares) for one in (collected, sent))
    assert first.tolist() == second.tolist()


def test_members_of_one_node_share_what_lies_there() -> None:
    holders = Holders.find(Places.collect([("n1",)] * 4 + [("n2",)] * 2), ["n1", "n1", "n2"])

    assert holders.choose_readers(np.arange(6), [3, 1, 2]).tolist() == [0, 0, 0, 1, 2, 2]


def test_shares_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PlanError, match="the shares add up to 3, but the batch has 2 samples"):
        Holders.find(Places.collect([()] * 2), ["n1"]).choose_readers(np.arange(2), [3])
