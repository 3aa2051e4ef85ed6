"""Every policy: each picture exactly once, the targets met, and absurd input refused with the remedy."""

from __future__ import annotations

import math
import time
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.balance import whole_targets
from locality.policies import POLICIES, by_name, policy
from locality.types import Block, Plan, PlanError

NODES = ("n1", "n2", "n3", "n4")
HOSTS = (*NODES, "gone")


@st.composite
def block_lists(draw: st.DrawFn) -> list[Block]:
    shapes = draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 10**6), st.lists(st.sampled_from(HOSTS), unique=True)),
            max_size=12,
        )
    )
    return [Block(f"b{i}", images, size, tuple(replicas)) for i, (images, size, replicas) in enumerate(shapes)]


capabilities = st.dictionaries(
    st.sampled_from(NODES),
    st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e308)),
    min_size=1,
).filter(lambda capability: any(capability.values()))


def block(name: str, images: int, *replicas: str) -> Block:
    return Block(name, images, 100 * images, replicas)


def assert_every_picture_once(plan: Plan, blocks: list[Block]) -> None:
    given_out = Counter(
        (part.block.name, picture)
        for parts in plan.parts.values()
        for part in parts
        for picture in range(part.first, part.first + part.images)
    )
    assert given_out == Counter((b.name, picture) for b in blocks for picture in range(b.images))


@pytest.mark.parametrize("name", sorted(POLICIES))
@given(blocks=block_lists(), capability=capabilities)
def test_every_picture_is_in_exactly_one_part_and_zero_capability_gets_none(
    name: str, blocks: list[Block], capability: dict[str, float]
) -> None:
    plan = POLICIES[name](blocks, capability)
    assert_every_picture_once(plan, blocks)
    assert list(plan.parts) == sorted(capability)
    assert all(not plan.parts[node] for node, value in capability.items() if value == 0)
    assert all(part.images > 0 for parts in plan.parts.values() for part in parts)


@given(blocks=block_lists(), capability=capabilities)
def test_algorithm1_gives_every_node_its_share_within_one_picture(
    blocks: list[Block], capability: dict[str, float]
) -> None:
    loads = policy("algorithm1")(blocks, capability).loads()
    images = sum(b.images for b in blocks)
    total = sum(map(Fraction, capability.values()))
    assert all(abs(loads[n] - Fraction(c) * images / total) < 1 for n, c in capability.items())
    assert loads == whole_targets(images, capability)


@given(blocks=block_lists(), capability=capabilities)
def test_even_differs_by_at_most_one_picture(blocks: list[Block], capability: dict[str, float]) -> None:
    loads = policy("even")(blocks, capability).loads()
    working = [loads[node] for node, value in capability.items() if value > 0]
    assert max(working) - min(working) <= 1


@given(blocks=block_lists(), capability=capabilities)
def test_algorithm1_takes_from_no_node_more_than_its_surplus(blocks: list[Block], capability: dict[str, float]) -> None:
    plan = policy("algorithm1")(blocks, capability)
    stored = {n: {b.name for b in blocks if _first_known(b, capability) == n} for n in capability}
    before = {n: sum(b.images for b in blocks if b.name in stored[n]) for n in capability}
    for node, load in plan.loads().items():
        kept = sum(part.images for part in plan.parts[node] if part.block.name in stored[node])
        assert kept >= min(before[node], load)


def _first_known(b: Block, capability: dict[str, float]) -> str | None:
    return next((node for node in b.replicas if node in capability), None)


def test_algorithm1_splits_a_block_at_the_picture_where_the_move_ends() -> None:
    plan = policy("algorithm1")([block("b", 10, "n1")], {"n1": 3.0, "n2": 1.0, "n3": 1.0})
    spans = {n: [(p.first, p.images) for p in parts] for n, parts in plan.parts.items()}
    assert spans == {"n1": [(0, 6)], "n2": [(8, 2)], "n3": [(6, 2)]}


def test_algorithm1_leaves_a_balanced_distribution_alone() -> None:
    blocks = [block("a", 4, "n2", "n1"), block("b", 2, "n1")]
    plan = policy("algorithm1")(blocks, {"n1": 1.0, "n2": 2.0})
    assert {n: [p.block.name for p in parts] for n, parts in plan.parts.items()} == {"n1": ["b"], "n2": ["a"]}


def test_local_only_moves_nothing_however_uneven() -> None:
    blocks = [block(f"b{i}", 5, "n1", "n2") for i in range(9)]
    assert policy("local_only")(blocks, {"n1": 1.0, "n2": 99.0}).loads() == {"n1": 45, "n2": 0}


def test_local_only_reads_another_replica_when_the_first_has_no_capability() -> None:
    assert policy("local_only")([block("b", 5, "n1", "n2")], {"n1": 0.0, "n2": 1.0}).loads()["n2"] == 5


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_order_of_the_nodes_does_not_matter(name: str) -> None:
    blocks = [block(f"b{i}", 1 + i % 3, NODES[i * i % 4], NODES[i % 4]) for i in range(30)]
    capability = {"n1": 0.3, "n2": 0.1, "n3": 0.3, "n4": 0.3}
    backwards = dict(reversed(capability.items()))
    assert POLICIES[name](blocks, capability) == POLICIES[name](blocks, backwards)


ONE = [block("b", 4, "n1")]
ABSURD_BUT_POSSIBLE = [
    pytest.param([], {"n1": 1.0, "n2": 1.0}, {"n1": 0, "n2": 0}, id="no blocks"),
    pytest.param(ONE, {"n1": 0.001}, {"n1": 4}, id="one node"),
    pytest.param(ONE, dict.fromkeys("abcdefgh", 1.0), dict.fromkeys("abcd", 1), id="more nodes than pictures"),
    pytest.param([block(str(i), 1, "n1") for i in range(8)], {"n1": 1.0, "n2": 3.0}, {"n1": 2, "n2": 6}, id="one home"),
    pytest.param(ONE, {"n1": 1e308, "n2": 1e308}, {"n1": 2, "n2": 2}, id="sum beyond the largest float"),
    pytest.param(ONE, {"n1": 5e-324, "n2": 5e-324}, {"n1": 2, "n2": 2}, id="smallest floats"),
    pytest.param(ONE, {"n1": 1e-300, "n2": 1e300}, {"n2": 4}, id="huge skew"),
    pytest.param([Block("b", 4, 0, ("n1",))], {"n1": 1.0, "n2": 1.0}, {"n1": 2, "n2": 2}, id="zero bytes"),
    pytest.param([block("b", 0, "n1")], {"n1": 1.0}, {"n1": 0}, id="no pictures in the block"),
    pytest.param([block("b", 4, "gone")], {"n1": 1.0, "n2": 1.0}, {"n1": 2, "n2": 2}, id="unknown host"),
    pytest.param([block("b", 4)], {"n1": 0.0, "n2": 1.0}, {"n1": 0, "n2": 4}, id="no replica at all"),
]


@pytest.mark.parametrize(("blocks", "capability", "loads"), ABSURD_BUT_POSSIBLE)
def test_algorithm1_copes_with(blocks: list[Block], capability: dict[str, float], loads: dict[str, int]) -> None:
    plan = policy("algorithm1")(blocks, capability)
    assert plan.loads() == dict.fromkeys(sorted(capability), 0) | loads
    assert_every_picture_once(plan, blocks)


REFUSED = [
    pytest.param(ONE, {}, "no node", id="no nodes"),
    pytest.param(ONE, {"n1": math.nan}, "node n1 is nan: it must be a finite number", id="NaN"),
    pytest.param(ONE, {"n1": 1.0, "n2": -0.5}, "node n2 is -0.5", id="negative"),
    pytest.param(ONE, {"n1": math.inf}, "node n1 is inf", id="infinite"),
    pytest.param(ONE, {"n1": 0.0, "n2": 0.0}, "every node is 0", id="all zero"),
    pytest.param([*ONE, *ONE], {"n1": 1.0}, "block 'b' occurs twice", id="same block twice"),
    pytest.param([block("b", -1, "n1")], {"n1": 1.0}, "-1 pictures", id="negative pictures"),
    pytest.param([Block("b", 1, -1, ("n1",))], {"n1": 1.0}, "-1 bytes", id="negative bytes"),
]


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize(("blocks", "capability", "sentence"), REFUSED)
def test_refuses(name: str, blocks: list[Block], capability: dict[str, float], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        POLICIES[name](blocks, capability)


def test_an_unknown_policy_is_answered_with_the_names_there_are() -> None:
    with pytest.raises(PlanError, match=r"'round_robin': choose one of algorithm1, even, local_only$"):
        policy("round_robin")


def test_two_policies_of_one_name_are_refused() -> None:
    even = policy("even")
    with pytest.raises(PlanError, match="two policies are called 'even'"):
        by_name(("even", even), ("even", even))


def test_a_hundred_thousand_blocks_on_a_hundred_nodes_are_planned_in_seconds() -> None:
    nodes = [f"n{i:03}" for i in range(100)]
    blocks = [block(f"b{i}", 3, nodes[i * 7 % 100], nodes[i * i % 100]) for i in range(100_000)]
    start = time.monotonic()
    policy("algorithm1")(blocks, {node: float(i) for i, node in enumerate(nodes)})
    assert time.monotonic() - start < 10
