"""Blocks and plans as compact columns: how a decision record holds 100,000 blocks in some megabytes."""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import Mapping, Sequence

import msgspec

from jobs.errors import JobError
from locality.types import Block, Part, Plan

Piece = tuple[int, int, int]
Shares = dict[str, list[int | Piece]]
"""Node -> its parts in reading order: the number of a whole block, or (number, first item, items) of a piece."""


class BlockColumns(msgspec.Struct, frozen=True):
    """Blocks in their order: names without the `prefix` that all share, replicas as places in `hosts`, best first.

    In a file the column of items is called `images`, whatever they are: others read it by this name.
    """

    digest: str
    hosts: tuple[str, ...]
    prefix: str
    names: tuple[str, ...]
    items: tuple[int, ...] = msgspec.field(name="images")
    sizes_bytes: tuple[int, ...]
    replicas: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> BlockColumns:
        """The columns of some blocks."""
        hosts = sorted({host for block in blocks for host in block.replicas})
        place = {host: number for number, host in enumerate(hosts)}
        prefix = os.path.commonprefix([block.name for block in blocks])  # noqa: RUF071 of the text, not of folders
        return cls(
            digest=digest(blocks),
            hosts=tuple(hosts),
            prefix=prefix,
            names=tuple(block.name[len(prefix) :] for block in blocks),
            items=tuple(block.items for block in blocks),
            sizes_bytes=tuple(block.size_bytes for block in blocks),
            replicas=tuple(tuple(place[host] for host in block.replicas) for block in blocks),
        )

    def blocks(self) -> list[Block]:
        """Inverse of `of`; JobError when the columns do not fit each other or their digest."""
        try:
            blocks = [
                Block(self.prefix + name, items, size, tuple(self.hosts[number] for number in replicas))
                for name, items, size, replicas in zip(
                    self.names, self.items, self.sizes_bytes, self.replicas, strict=True
                )
            ]
        except (IndexError, ValueError) as error:
            raise JobError(f"its columns of blocks do not fit each other ({error})") from None
        if digest(blocks) != self.digest:
            raise JobError(f"its blocks are not those of its digest {self.digest:.12}")
        return blocks


def digest(blocks: Sequence[Block]) -> str:
    """SHA-256 over name, items, bytes and replicas of every block, whatever the order of the blocks.

    Nor does the order of replicas count: the NameNode lists those that are equally near in another one each time.
    """
    summed = hashlib.sha256()
    for block in sorted(blocks, key=lambda block: block.name):
        summed.update(repr((block.name, block.items, block.size_bytes, sorted(block.replicas))).encode())
    return summed.hexdigest()


def shares_of(plan: Plan, blocks: Sequence[Block]) -> Shares:
    """The parts of a plan as numbers of `blocks`."""
    number = {block.name: i for i, block in enumerate(blocks)}
    return {node: [_part_number(part, number) for part in parts] for node, parts in plan.parts.items()}


def plan_of(shares: Mapping[str, Sequence[int | Piece]], blocks: Sequence[Block]) -> Plan:
    """Inverse of `shares_of`; JobError when a share names what no block has."""
    return Plan({node: tuple(_part(share, blocks) for share in parts) for node, parts in shares.items()})


def _part_number(part: Part, number: Mapping[str, int]) -> int | Piece:
    i = number[part.block.name]
    return i if part.items == part.block.items else (i, part.first, part.items)


def _part(share: int | Piece, blocks: Sequence[Block]) -> Part:
    number = share if isinstance(share, int) else share[0]
    if not 0 <= number < len(blocks):
        raise JobError(f"its plan names block {number} of {len(blocks)}")
    block = blocks[number]
    first, items = (0, block.items) if isinstance(share, int) else share[1:]
    if first < 0 or items < 1 or first + items > block.items:
        raise JobError(f"its plan gives items {first} to {first + items - 1} of {block.name}, which has {block.items}")
    return Part(block, first, items)
