"""Blocks, parts and plans: what the policies read and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class PlanError(ValueError):
    """The input cannot be divided; the text names the value and what is allowed."""


@dataclass(frozen=True)
class Block:
    """A piece of stored data: `images` pictures in `size_bytes`, on the nodes `replicas`, the best one first."""

    name: str
    images: int
    size_bytes: int
    replicas: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """Pictures `first` to `first + images - 1` of a block, given to one node."""

    block: Block
    first: int
    images: int

    @property
    def size_bytes(self) -> float:
        """Bytes of these pictures, a block's bytes being spread evenly over its pictures."""
        return self.block.size_bytes * self.images / self.block.images


@dataclass(frozen=True)
class Plan:
    """Who reads what: node name -> its parts, in reading order; every picture is in exactly one part."""

    parts: Mapping[str, tuple[Part, ...]]

    def loads(self) -> dict[str, int]:
        """Pictures per node, nodes with none included."""
        return {node: sum(part.images for part in parts) for node, parts in self.parts.items()}
