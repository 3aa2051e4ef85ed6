"""Where the items of a job come from, as a kind of job tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jobs.itemwork.messages import Item
from locality.types import Block, Part


class ItemSource(Protocol):
    """Knows what is divided, and what stands in each part of it. `of` is asked by several threads at once."""

    def blocks(self, input_path: str) -> Sequence[Block]:
        """All items of a folder or file, each in one block; JobError when there are none, or they cannot be listed."""

    def of(self, part: Part) -> Sequence[Item]:
        """The items of a part of a block, in their order; JobError when the block does not hold them any more."""
