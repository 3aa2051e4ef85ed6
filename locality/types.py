"""Blocks, parts and plans: what the policies read and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from locality.cost import AccessCost

EPSILON = 0.02


class PlanError(ValueError):
    """The input cannot be divided; the text names the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of stored data: `items` items in `size_bytes`, on the nodes `replicas`, the best one first."""

    name: str
    items: int
    size_bytes: int
    replicas: tuple[str, ...]

    @property
    def images(self) -> int:
        """`items`, as policies of before call them."""
        return self.items


class Part(NamedTuple):
    """Items `first` to `first + items - 1` of a block, given to one node."""

    block: Block
    first: int
    items: int

    @property
    def images(self) -> int:
        """`items`, as policies of before call them."""
        return self.items

    @property
    def size_bytes(self) -> float:
        """Bytes of these items, a block's bytes being spread evenly over its items."""
        return self.block.size_bytes * self.items / self.block.items

    def is_local(self, node: str) -> bool:
        """Whether the node holds a replica of the block."""
        return node in self.block.replicas


@dataclass(frozen=True)
class Plan:
    """Who reads what: node name -> its parts, in reading order; every item is in exactly one part."""

    parts: Mapping[str, tuple[Part, ...]]

    def loads(self) -> dict[str, int]:
        """Items per node, nodes with none included."""
        return {node: sum(part.items for part in parts) for node, parts in self.parts.items()}


@dataclass(frozen=True)
class Terms:
    """What a policy may take into account beside blocks and capability.

    `cost` is what reading costs; a plan may end `epsilon` later than the lower bound (0.02: 2 %) if that saves bytes.
    """

    cost: AccessCost = field(default_factory=AccessCost)
    epsilon: float = EPSILON


NO_TERMS = Terms()
"""Nothing known about cost, and the usual epsilon."""
