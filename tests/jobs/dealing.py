"""A job for the dealer, without HDFS and without a worker: images, a clock, a journal, rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hadoop.errors import HadoopError
from jobs.application.calls import Request
from jobs.application.coordinator import Hearing
from jobs.application.journal import Record
from jobs.images.rows import SCHEMA, find_flaw
from jobs.itemwork.calls import CALLS, LARGEST
from jobs.itemwork.commits import commits
from jobs.itemwork.dealer import Dealer, remaining
from jobs.itemwork.messages import Item
from locality.leases import Leases
from locality.rules import Rules
from locality.types import Block, Part, Plan

LEASE_SECONDS = 10.0
PICTURE_BYTES = 100


def block(name: str, images: int, *replicas: str) -> Block:
    return Block(name, images, images * PICTURE_BYTES, replicas)


def pictures_of(part: Part) -> tuple[Item, ...]:
    """A block of one image is a file, others are packed."""
    name = part.block.name
    if part.block.items == 1:
        return (Item(name, name, None, PICTURE_BYTES),)
    numbers = range(part.first, part.first + part.items)
    return tuple(Item(f"{name}#{n}", name, n * PICTURE_BYTES, PICTURE_BYTES) for n in numbers)


def rows(node: str, names: Iterable[str], errors: Mapping[str, str] | None = None) -> bytes:
    """An Arrow stream as a worker sends it."""
    wrong = errors or {}
    told = [{"path": name, "node_name": node, "engine": "e", "error": wrong.get(name)} for name in names]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(pa.Table.from_pylist(told, schema=SCHEMA))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def stored_rows(records: Iterable[Record]) -> list[tuple[str, str | None]]:
    """Name and error of every row that the journal has."""
    found = []
    for commit in commits(records):
        table = pa.ipc.open_stream(commit.rows).read_all()
        found += [(row["path"], row["error"]) for row in table.to_pylist()]
    return found


@dataclass
class Paper:
    """A journal in memory; `fails` makes it refuse what comes, `keeps` whether it has it nevertheless."""

    records: list[Record] = field(default_factory=list)
    fails: bool = False
    keeps: bool = False

    def append(self, record: Record) -> None:
        if not self.fails or self.keeps:
            self.records.append(record)
        if self.fails:
            raise HadoopError("HDFS is away")


class Answering(Hearing):
    """A dealer behind an application master's address, as a coordinator puts it there."""

    calls = LARGEST

    def __init__(self, dealer: Dealer) -> None:
        self._dealer = dealer

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        return CALLS[call](self._dealer, request)


@dataclass
class Job:
    """An application master of which one attempt follows the other."""

    plan: Plan
    capability: Mapping[str, float]
    rules: Rules
    now: float = 0.0
    attempt: int = 0
    paper: Paper = field(default_factory=Paper)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """The next attempt, from what the journal has."""
        self.attempt += 1
        self.paper.fails = self.paper.keeps = False
        earlier = list(self.paper.records)
        leases = Leases(remaining(self.plan, earlier), self.capability, self.now, self.rules)
        self.dealer = Dealer(leases, pictures_of, find_flaw, self.paper, self.attempt, lambda: self.now)
        self.dealer.restore(earlier)

    def names(self) -> list[str]:
        """Of all pictures."""
        parts = [part for parts in self.plan.parts.values() for part in parts]
        return [picture.name for part in parts for picture in pictures_of(part)]


def one_node(*blocks: Block, most_images: int = 8, share: float = 1.0) -> Job:
    """Everything on node a."""
    plan = Plan({"a": tuple(Part(one, 0, one.items) for one in blocks)})
    return Job(plan, {"a": 1.0}, Rules(lease_seconds=LEASE_SECONDS, most_items=most_images, share=share))


def two_nodes(first: Sequence[Block], second: Sequence[Block], most_images: int = 8, steal: bool = True) -> Job:
    """The first blocks on node a, the others on node b."""
    shares = {"a": first, "b": second}
    plan = Plan({node: tuple(Part(one, 0, one.items) for one in blocks) for node, blocks in shares.items()})
    rules = Rules(lease_seconds=LEASE_SECONDS, most_items=most_images, share=1.0, steal=steal)
    return Job(plan, {"a": 1.0, "b": 1.0}, rules)
