"""Which member reads which samples of a global batch: each as many as its share says, its own replicas first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from locality.parts import plan_exactly
from locality.types import Block, PlanError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StoredSamples:
    """Where the samples of a run lie: the first block holds the first `items` numbers, the next one those after."""

    blocks: Sequence[Block]

    @cached_property
    def ends(self) -> Ints:
        """The number after the last sample of each block."""
        return np.cumsum([block.items for block in self.blocks], dtype=np.int64)

    def find_blocks(self, samples: Ints) -> Ints:
        """The place in `blocks` of the block of each sample; PlanError for a number that no block holds."""
        total = int(self.ends[-1]) if len(self.ends) else 0
        if len(samples) and not (samples.min() >= 0 and samples.max() < total):
            raise PlanError(f"a batch has samples {samples.min()} to {samples.max()}, but {total} are stored")
        found: Ints = np.searchsorted(self.ends, samples, side="right").astype(np.int64)
        return found


def assign(
    samples: Ints, stored: StoredSamples, shares: Mapping[str, int], node_of: Mapping[str, str]
) -> dict[str, Ints]:
    """The samples of each member, in the order in which they are stored; as many bytes as possible local ones.

    `shares` add up to the number of samples, `node_of` says on which node each member runs. Who computes a sample
    changes nothing of the gradient. This is the division of the policy algorithm1_replicas, with shares as targets; it
    needs OR-tools.
    """
    _check(samples, shares)
    ordered = np.sort(samples)
    place, first, counts = np.unique(stored.find_blocks(ordered), return_index=True, return_counts=True)
    on_node: dict[str, list[str]] = {}
    for member in sorted(shares):
        on_node.setdefault(node_of[member], []).append(member)
    blocks = [
        _part_of(stored.blocks[at], int(count), on_node)
        for at, count in zip(place.tolist(), counts.tolist(), strict=True)
    ]
    start = {block.name: begin for block, begin in zip(blocks, first.tolist(), strict=True)}
    plan = plan_exactly(blocks, {member: share for member, share in shares.items() if share}, shares)
    return {
        member: np.concatenate(
            [ordered[:0], *(ordered[start[b.name] + at : start[b.name] + at + n] for b, at, n in parts)]
        )
        for member, parts in plan.parts.items()
    }


def assign_in_order(samples: Ints, shares: Mapping[str, int]) -> dict[str, Ints]:
    """The same without a look at where samples lie: consecutive ones of the batch for each member in turn.

    Every member can work it out alone, when nobody is there to ask.
    """
    _check(samples, shares)
    ends = list(accumulate(shares.values()))
    return {member: samples[end - share : end] for (member, share), end in zip(shares.items(), ends, strict=True)}


def local_samples(assigned: Mapping[str, Ints], stored: StoredSamples, node_of: Mapping[str, str]) -> int:
    """How many samples their members read from their own nodes."""
    return sum(
        node_of[member] in stored.blocks[at].replicas
        for member, samples in assigned.items()
        for at in stored.find_blocks(samples).tolist()
    )


def _part_of(block: Block, count: int, on_node: Mapping[str, Sequence[str]]) -> Block:
    """What of a block is in the batch, held by members instead of nodes."""
    holders = tuple(member for node in block.replicas for member in on_node.get(node, ()))
    return Block(block.name, count, block.size_bytes * count // max(block.items, 1), holders)


def _check(samples: Ints, shares: Mapping[str, int]) -> None:
    if sum(shares.values()) != len(samples):
        raise PlanError(
            f"the shares add up to {sum(shares.values())}, but the batch has {len(samples)} samples",
            remedy="shrink the shares to a short batch",
        )
