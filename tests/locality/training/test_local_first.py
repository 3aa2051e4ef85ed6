"""Who reads what of a batch: every sample once, by the shares, and as many bytes local as a linear program finds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locality.training.local_first import StoredSamples, assign, assign_in_order, local_samples
from locality.training.sample_order import SampleOrder
from locality.training.shares import shrink
from locality.types import Block, PlanError
from tests.locality.linear_programs import fewest_bytes


def draw_stored(draw: Random, nodes: list[str], blocks: int, alike: bool = False) -> StoredSamples:
    made = []
    for number in range(blocks):
        items, bytes_each = draw.randint(0, 20), 10 if alike else draw.choice([1, 10, 100])
        made.append(
            Block(f"b{number}", items, items * bytes_each, tuple(draw.sample([*nodes, "gone"], draw.randint(0, 2))))
        )
    return StoredSamples([*made, Block("last", 5, 50, (nodes[0],))])


def draw_shares(draw: Random, members: list[str], batch: int) -> dict[str, int]:
    """Some members stand by."""
    cuts = sorted(draw.randint(0, batch) for _ in members[1:])
    return {member: end - begin for member, begin, end in zip(members, [0, *cuts], [*cuts, batch], strict=True)}


@settings(max_examples=80)
@given(st.integers(0, 2**32))
def test_every_sample_is_read_once_by_the_shares_with_the_fewest_bytes_moved(seed: int) -> None:
    draw = Random(seed)
    nodes = [f"n{number}" for number in range(draw.randint(1, 5))]
    stored = draw_stored(draw, nodes, draw.randint(0, 8))
    order = SampleOrder(int(stored.ends[-1]), draw.randint(1, 60), seed)
    samples = order.of_step(0, 0)
    shares = draw_shares(draw, nodes, len(samples))

    assigned = assign(samples, stored, shares, {node: node for node in nodes})

    assert {node: len(mine) for node, mine in assigned.items()} == shares
    assert sorted(np.concatenate(list(assigned.values())).tolist()) == sorted(samples.tolist())
    assert all(mine.dtype == np.int64 for mine in assigned.values())
    in_batch = np.bincount(stored.find_blocks(samples), minlength=len(stored.blocks)).tolist()
    parts = [
        Block(b.name, count, b.size_bytes // max(b.items, 1) * count, b.replicas)
        for b, count in zip(stored.blocks, in_batch, strict=True)
    ]
    moved = sum(
        stored.blocks[at].size_bytes / stored.blocks[at].items
        for node, mine in assigned.items()
        for at in stored.find_blocks(mine)
        if node not in stored.blocks[at].replicas
    )
    assert moved == pytest.approx(fewest_bytes(parts, shares), rel=1e-9, abs=1)


def test_members_of_one_node_share_its_replicas() -> None:
    stored = StoredSamples([Block("x", 6, 60, ("n1",)), Block("y", 6, 60, ("n2",))])
    node_of = {"a": "n1", "b": "n1", "c": "n2"}

    assigned = assign(np.arange(12), stored, {"a": 2, "b": 4, "c": 6}, node_of)

    assert sorted([*assigned["a"], *assigned["b"]]) == [0, 1, 2, 3, 4, 5]
    assert assigned["c"].tolist() == [6, 7, 8, 9, 10, 11]
    assert local_samples(assigned, stored, node_of) == 12


def test_with_three_replicas_and_even_data_nearly_all_reads_are_local() -> None:
    """Where samples of a batch are given out in order, about 3 of 8 are."""
    draw = Random(3)
    nodes = [f"n{number}" for number in range(8)]
    stored = StoredSamples([Block(f"b{number}", 60, 6000, tuple(draw.sample(nodes, 3))) for number in range(300)])
    order, node_of = SampleOrder(18_000, 1024, 1), {node: node for node in nodes}
    shares = shrink(dict.fromkeys(nodes, 200) | {"n0": 500}, 1024)

    for step in range(3):
        samples = order.of_step(0, step)
        assert local_samples(assign(samples, stored, shares, node_of), stored, node_of) >= 0.95 * 1024
        assert local_samples(assign_in_order(samples, shares), stored, node_of) < 0.6 * 1024


@given(st.integers(0, 2**32))
def test_in_order_each_sample_is_given_once_by_the_shares(seed: int) -> None:
    draw = Random(seed)
    samples = SampleOrder(500, draw.randint(1, 80), seed).of_step(0, 1)
    shares = draw_shares(draw, ["c", "a", "b"], len(samples))

    assigned = assign_in_order(samples, shares)

    assert {member: len(mine) for member, mine in assigned.items()} == shares
    assert np.concatenate(list(assigned.values())).tolist() == samples.tolist()


def test_what_does_not_fit_together_is_named() -> None:
    stored = StoredSamples([Block("x", 6, 60, ("a",))])
    with pytest.raises(PlanError, match="the shares add up to 5, but the batch has 6 samples"):
        assign(np.arange(6), stored, {"a": 5}, {"a": "a"})
    with pytest.raises(PlanError, match="the shares add up to 5"):
        assign_in_order(np.arange(6), {"a": 5})
    with pytest.raises(PlanError, match="a batch has samples 1 to 6, but 6 are stored"):
        assign(np.arange(1, 7), stored, {"a": 6}, {"a": "a"})
