"""Instances to divide, of many kinds and from fixed seeds, and what must hold for the plan of any of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from locality.cost import AccessCost, Rate
from locality.types import Block, Part, Plan, Terms


@dataclass(frozen=True)
class Instance:
    """What a policy is asked, and where it came from; `str` names it in a failing assertion."""

    origin: str
    blocks: list[Block]
    capability: dict[str, float]
    terms: Terms

    def __str__(self) -> str:
        return self.origin

    @property
    def items(self) -> int:
        """All items."""
        return sum(block.items for block in self.blocks)


@dataclass(frozen=True)
class Size:
    """How large an instance may become: nodes and blocks at most, items in a block at most."""

    nodes: int
    blocks: int
    items: int

    def draw(self, rng: Random) -> Size:
        """A size between one node, no block, and this one."""
        return Size(rng.randint(1, self.nodes), rng.randint(0, self.blocks), rng.randint(1, self.items))


Recipe = Callable[[Random, Size], tuple[list[Block], dict[str, float]]]


def names(count: int) -> list[str]:
    """Node names whose order by name is their order by number."""
    return [f"n{i:03}" for i in range(count)]


def _speeds(rng: Random, nodes: Sequence[str], sigma: float = 0.5) -> dict[str, float]:
    return {node: rng.lognormvariate(0, sigma) for node in nodes}


def _homes(rng: Random, nodes: Sequence[str], copies: int = 3) -> tuple[str, ...]:
    return tuple(rng.sample(nodes, min(copies, len(nodes))))


def uniform(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """Three replicas anywhere, equal blocks."""
    nodes = names(size.nodes)
    blocks = [Block(f"b{i}", size.items, 1000 * size.items, _homes(rng, nodes)) for i in range(size.blocks)]
    return blocks, _speeds(rng, nodes)


def skewed(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """A few nodes hold nearly everything, one or two replicas a block."""
    nodes = names(size.nodes)
    crowd = nodes[: 1 + len(nodes) // 5]
    blocks = []
    for i in range(size.blocks):
        among = crowd if rng.random() < 0.9 else nodes
        blocks.append(_some(rng, i, size, _homes(rng, among, rng.randint(1, 2))))
    return blocks, _speeds(rng, nodes)


def racks(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """HDFS's placement: the first replica anywhere, the other two together in another rack; racks differ in speed."""
    nodes = names(size.nodes)
    rack = {node: i % 3 for i, node in enumerate(nodes)}
    blocks = []
    for i in range(size.blocks):
        first = rng.choice(nodes)
        others = [node for node in nodes if rack[node] != rack[first]]
        blocks.append(_some(rng, i, size, (first, *_homes(rng, others, 2))))
    return blocks, {node: speed * (1 + 4 * (rack[node] == 0)) for node, speed in _speeds(rng, nodes).items()}


def unknown_hosts(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """Replicas on hosts that no capability names, and blocks with no replica at all."""
    nodes = names(size.nodes)
    hosts = [*nodes, "gone", "elsewhere"]
    blocks = [_some(rng, i, size, _homes(rng, hosts, rng.randint(0, 2))) for i in range(size.blocks)]
    return blocks, _speeds(rng, nodes)


def empty_blocks(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """Blocks of no items, of no bytes, of neither."""
    nodes = names(size.nodes)
    shapes = [(0, 0), (0, 777), (size.items, 0), (size.items, 100)]
    blocks = [Block(f"b{i}", *rng.choice(shapes), _homes(rng, nodes, 2)) for i in range(size.blocks)]
    return blocks, _speeds(rng, nodes)


def wild_sizes(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """Bytes per item from less than one to hundreds of millions; one or two replicas, so that much must move."""
    nodes = names(size.nodes)
    blocks = []
    for i in range(size.blocks):
        size_bytes = round(10 ** rng.uniform(0, 8))
        blocks.append(Block(f"b{i}", rng.randint(1, size.items), size_bytes, _homes(rng, nodes, rng.randint(1, 2))))
    return blocks, _speeds(rng, nodes, 1.0)


def one_dear(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """A crowd holds items of a few bytes, more than it can read, and beside them one of ten billion bytes."""
    nodes = names(size.nodes)
    crowd = nodes[: 1 + len(nodes) // 4]
    blocks = []
    for i in range(size.blocks):
        items = rng.randint(1, size.items)
        blocks.append(Block(f"b{i}", items, rng.randint(1, 99) * items, _homes(rng, crowd, rng.randint(1, 2))))
    blocks.insert(rng.randint(0, len(blocks)), Block("dear", 1, 10**10, (rng.choice(crowd),)))
    return blocks, _speeds(rng, nodes)


def dominating(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """One node a hundred times faster than the others together, whose data lies elsewhere."""
    nodes = names(size.nodes)
    holders = nodes[1:] or nodes
    blocks = [_some(rng, i, size, _homes(rng, holders, 2)) for i in range(size.blocks)]
    return blocks, _speeds(rng, nodes) | {nodes[0]: 100.0 * len(nodes)}


def few_blocks(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """More nodes than blocks, often more nodes than items."""
    nodes = names(size.nodes)
    count = rng.randint(0, max(1, size.nodes // 3))
    return [_some(rng, i, size, _homes(rng, nodes, 2)) for i in range(count)], _speeds(rng, nodes)


def some_idle(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """A third of the nodes hold data but take no work."""
    nodes = names(size.nodes)
    blocks = [_some(rng, i, size, _homes(rng, nodes, rng.randint(1, 3))) for i in range(size.blocks)]
    speeds = {node: 0.0 if rng.random() < 1 / 3 else speed for node, speed in _speeds(rng, nodes).items()}
    return blocks, speeds | {nodes[-1]: 1.0}


def tiny(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """One or two items a block and nearly equal nodes: whole numbers decide everything."""
    nodes = names(size.nodes)
    shapes = [(rng.randint(1, 2), rng.randint(1, 3), _homes(rng, nodes, rng.randint(1, 2))) for _ in range(size.blocks)]
    blocks = [Block(f"b{i}", items, weight * items, homes) for i, (items, weight, homes) in enumerate(shapes)]
    return blocks, {node: rng.choice([0.9, 1.0, 1.1, 2.0]) for node in nodes}


def chain(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """Block i lies on nodes i and i + 1, and the surplus sits at one end: room is found only along the whole chain."""
    nodes = names(size.nodes)
    items, size_bytes = size.items, rng.randint(1, 50) * size.items
    pairs = pairwise(nodes)
    blocks = [Block(f"b{i}", items, size_bytes, rng.choice([(a, b), (b, a)])) for i, (a, b) in enumerate(pairs)]
    blocks.append(Block("end", items, size_bytes * 2, (rng.choice([nodes[0], nodes[-1]]),)))
    rng.shuffle(blocks)
    return blocks, dict.fromkeys(nodes, 1.0)


def alike(rng: Random, size: Size) -> tuple[list[Block], dict[str, float]]:
    """Few sets of homes, in any order, and few weights, some of no bytes: many blocks that a planner may merge."""
    nodes = names(size.nodes)
    sets = [_homes(rng, nodes, rng.randint(1, 3)) for _ in range(3)]
    blocks = []
    for i in range(size.blocks):
        homes, items = list(rng.choice(sets)), rng.randint(1, size.items)
        rng.shuffle(homes)
        blocks.append(Block(f"b{i}", items, rng.choice([0, 1, 10]) * items, tuple(homes)))
    return blocks, _speeds(rng, nodes)


def _some(rng: Random, number: int, size: Size, homes: tuple[str, ...]) -> Block:
    return Block(f"b{number}", rng.randint(1, size.items), rng.randint(1, 100_000), homes)


KINDS: dict[str, Recipe] = {
    recipe.__name__: recipe
    for recipe in (
        uniform, skewed, racks, unknown_hosts, empty_blocks, wild_sizes, one_dear,
        dominating, few_blocks, some_idle, tiny, chain, alike,
    )
}  # fmt: skip

EPSILONS = (0.0, 0.02, 0.02, 0.1, 1.0)


def instance(kind: str, seed: int, size: Size, exactly: bool = False) -> Instance:
    """The instance of `kind` from `seed`: at most of `size`, or just of it; measured costs and racks included."""
    rng = Random(f"{kind} {seed}")
    blocks, capability = KINDS[kind](rng, size if exactly else size.draw(rng))
    epsilon = rng.choice(EPSILONS[:2] if exactly else EPSILONS)
    terms = Terms(access_cost(rng, capability), epsilon)
    return Instance(f"{kind} seed {seed} epsilon {epsilon}", blocks, capability, terms)


def access_cost(rng: Random, nodes: Mapping[str, float]) -> AccessCost:
    """Every disk and a third of the pairs (at most 500) measured, from 1 MB/s to 1 GB/s; three racks."""
    pairs = [(reader, holder) for reader in nodes for holder in nodes if reader != holder]
    measured = rng.sample(pairs, min(500, (len(pairs) + 2) // 3))
    return AccessCost(
        disks={node: _rate(rng) for node in nodes},
        pairs={pair: _rate(rng) for pair in measured},
        racks={node: f"/rack{i % 3}" for i, node in enumerate(nodes)},
    )


def _rate(rng: Random) -> Rate:
    return Rate(10 ** rng.uniform(6, 9), rng.uniform(0, 100))


def assert_divides(plan: Plan, blocks: Sequence[Block], capability: Mapping[str, float]) -> None:
    """Every item is in exactly one part, none is invented, every node is in the plan, and 0 gets nothing.

    Ranges are compared, not items, so a block may have any number of them.
    """
    assert list(plan.parts) == sorted(capability)
    assert all(not plan.parts[node] for node, value in capability.items() if value == 0)
    spans = defaultdict[str, list[Part]](list)
    for part in (part for parts in plan.parts.values() for part in parts):
        spans[part.block.name].append(part)
    assert set(spans) == {block.name for block in blocks if block.items}
    for block in blocks:
        end = 0
        for part in sorted(spans.get(block.name, ()), key=lambda part: part.first):
            assert part.block == block
            assert (type(part.first), type(part.items)) == (int, int)
            assert part.first == end, f"items {end} to {part.first} of {block.name} are missing or given out twice"
            assert part.items > 0
            end += part.items
        assert end == block.items
