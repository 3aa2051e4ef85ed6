"""Blocks, parts and plans: what the policies read and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from locality.cost import AccessCost

EPSILON = 0.02
NO_STARTS: Mapping[str, float] = MappingProxyType({})
"""All nodes begin at once."""


class PlanError(ValueError):
    """The input cannot be divided; `message` names the value, `remedy` says what is allowed or what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


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
    `starts` is when each node can begin, whatever it waits for, in the unit of items / capability: seconds where the
    capability is in items per second. A node that is not named begins at 0.
    """

    cost: AccessCost = field(default_factory=AccessCost)
    epsilon: float = EPSILON
    starts: Mapping[str, float] = field(default_factory=dict)


NO_TERMS = Terms()
"""Nothing known about cost, the usual epsilon, and all nodes begin at once."""
