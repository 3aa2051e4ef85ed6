"""How many samples members read from their own node, beside an even sampler that knows no places.

Blocks have three replicas on eight nodes, placed at random, and shares are uneven. Nothing is trained: who reads what
is found as members find it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from bench.training.bound import Speeds
from bench.training.pieces.place import Found, Place
from learning.member.readers import Readers
from locality.training.sample_order import SampleOrder

NODES = tuple(f"node-{number}" for number in range(8))
UNEVEN = Speeds((1.0, 1.0, 1.5, 4.0) * 2, 0.0)
REPLICAS = 3
BLOCK_SAMPLES = 512
"""Of 256 kB each in a block of 128 MB."""
BATCHES = (1024, 256)
ROUNDS = 5
"""Each places the blocks anew."""

Blocks = Sequence[frozenset[str]]


def put_blocks(count: int, chance: random.Random) -> Blocks:
    """The nodes of each block."""
    return [frozenset(chance.sample(NODES, REPLICAS)) for _ in range(count)]


def place_blocks(blocks: Blocks, samples: Iterable[int]) -> list[frozenset[str]]:
    """The nodes of each of these samples, which fill one block after another."""
    return [blocks[sample // BLOCK_SAMPLES] for sample in samples]


def local_share(blocks: Blocks, order: SampleOrder) -> float:
    """The share of an epoch's reads that are local, as members choose them."""
    rank_of = {node: rank for rank, node in enumerate(NODES)}
    readers = Readers(order.samples, lambda samples: place_blocks(blocks, samples))
    readers.load(readers.pack(NODES, {node: node for node in NODES}))
    local = 0
    for step in range(order.steps):
        numbers = order.of_step(0, step)
        shares = UNEVEN.shares(len(numbers))
        own = {node: readers.own(numbers, shares, rank) for node, rank in rank_of.items()}
        local += sum(_count_local(blocks, samples, node) for node, samples in own.items())
    return local / order.samples


def even_share(blocks: Blocks, order: SampleOrder) -> float:
    """The same where each node takes every eighth sample, as a distributed sampler does."""
    numbers = np.concatenate([order.of_step(0, step) for step in range(order.steps)])
    dealt = {node: numbers[rank :: len(NODES)].tolist() for rank, node in enumerate(NODES)}
    return sum(_count_local(blocks, samples, node) for node, samples in dealt.items()) / order.samples


def _count_local(blocks: Blocks, samples: Sequence[int], node: str) -> int:
    """Not asked of the readers, which could be wrong."""
    return sum(node in nodes for nodes in place_blocks(blocks, samples))


def local_reads(place: Place) -> Found:
    """Both shares for each batch, over an epoch of each placement."""
    found: Found = {}
    for number in range(place.rounds or ROUNDS):
        blocks = put_blocks(-(-place.samples // BLOCK_SAMPLES), place.chance)
        for batch in BATCHES:
            order = SampleOrder(place.samples, batch, place.seed + number)
            ours, even = local_share(blocks, order), even_share(blocks, order)
            place.say(f"local reads, placement {number + 1}, B = {batch}: {ours:.3f}, even sampler {even:.3f}")
            found.setdefault(f"local_reads_{batch}", []).append(ours)
            found.setdefault(f"local_reads_{batch}_even", []).append(even)
    return found


PIECES = {"local-reads": local_reads}
