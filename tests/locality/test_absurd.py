"""Absurd input, by name: every policy divides it with sense, or refuses it in a sentence with the remedy."""

from __future__ import annotations

import math

import pytest

from locality.bounds import fewest_bytes_moved, moved_load, rooms
from locality.policies import POLICIES, policy
from locality.types import Block, PlanError, Terms
from tests.locality.instances import assert_divides

every_policy = pytest.mark.parametrize("name", sorted(POLICIES))
of_fewest_bytes = pytest.mark.parametrize("name", ["maxflow", "min_cost"])
of_targets = pytest.mark.parametrize("name", ["algorithm1", "algorithm1_replicas"])


def block(name: str, items: int, *replicas: str) -> Block:
    return Block(name, items, 100 * items, replicas)


ONE = [block("b", 4, "n1")]
EQUAL = {"n1": 1.0, "n2": 1.0}
# blocks, capability, the loads of Algorithm 1 (nodes left out: 0), the fewest bytes that must move at epsilon 0.02
POSSIBLE = [
    pytest.param([], EQUAL, {}, 0, id="no blocks"),
    pytest.param([block("b", 0, "n1"), Block("c", 0, 777, ())], EQUAL, {}, 0, id="blocks of no items"),
    pytest.param(ONE, {"n1": 0.001}, {"n1": 4}, 0, id="one node"),
    pytest.param(ONE, dict.fromkeys("abcdefgh", 1.0), dict.fromkeys("abcd", 1), 400, id="more nodes than items"),
    pytest.param(
        [block(str(i), 1, "n1") for i in range(8)], {"n1": 1.0, "n2": 3.0}, {"n1": 2, "n2": 6}, 600, id="one home"
    ),
    pytest.param(ONE, {"n1": 1e308, "n2": 1e308}, {"n1": 2, "n2": 2}, 200, id="sum beyond the largest float"),
    pytest.param(ONE, {"n1": 5e-324, "n2": 5e-324}, {"n1": 2, "n2": 2}, 200, id="smallest floats"),
    pytest.param(ONE, {"n1": 1e-300, "n2": 1e300}, {"n2": 4}, 400, id="huge skew"),
    pytest.param([Block("b", 4, 0, ("n1",))], EQUAL, {"n1": 2, "n2": 2}, 0, id="zero bytes"),
    pytest.param([block("b", 4, "gone")], EQUAL, {"n1": 2, "n2": 2}, 400, id="replica on an unknown host"),
    pytest.param(ONE, {"n1": 0.0, "n2": 1.0}, {"n2": 4}, 400, id="a node that holds data but takes no work"),
    pytest.param([block("b", 4)], {"n1": 0.0, "n2": 1.0}, {"n2": 4}, 400, id="no replica at all"),
    pytest.param([block("b", 4, "n1", "n1")], EQUAL, {"n1": 2, "n2": 2}, 200, id="a replica named twice"),
    pytest.param([Block("b", 4, 10**12, ("n1",))], EQUAL, {"n1": 2, "n2": 2}, 5 * 10**11, id="10**12 bytes"),
    pytest.param(
        [Block("huge", 2, 2 * 10**19, ("n1",)), Block("small", 2, 2, ("n1",))],
        EQUAL, {"n1": 2, "n2": 2}, 2, id="bytes beyond 64 bits beside single ones",
    ),
    pytest.param(
        [Block("b", 10**6, 3, ("n1",))], EQUAL, dict.fromkeys(EQUAL, 500_000), 1, id="fewer bytes than items"
    ),
    pytest.param(
        [Block("b", 10**9, 10**12, ("n1",))],
        {"n1": 1.0, "n2": 3.0}, {"n1": 250_000_000, "n2": 750_000_000}, 745 * 10**9, id="10**9 items in one block",
    ),
    pytest.param(
        [Block(f"b{i}", 10**9, 10**12, ("n1",)) for i in range(5)],
        EQUAL, dict.fromkeys(EQUAL, 25 * 10**8), 245 * 10**10, id="items beyond 32 bits",
    ),
    pytest.param(
        [Block("b", 10**15, 10**18, ("n2", "n1"))], EQUAL, dict.fromkeys(EQUAL, 5 * 10**14), 0, id="10**15 items"
    ),
    pytest.param(
        [block("a file\n/of lines", 2, "node one", "节点"), block("é", 2, "🐘")],
        {"🐘": 1.0, "node one": 1.0, "节点": 1.0, "": 1.0}, {"": 1, "node one": 1, "节点": 1, "🐘": 1}, 100,
        id="names of spaces and of every script",
    ),
]  # fmt: skip
possible = pytest.mark.parametrize(("blocks", "capability", "loads", "fewest"), POSSIBLE)


@possible
@every_policy
def test_divides(name: str, blocks: list[Block], capability: dict[str, float], loads: object, fewest: object) -> None:
    assert_divides(policy(name)(blocks, capability), blocks, capability)


@possible
@of_targets
def test_meets_the_targets_of_algorithm1(
    name: str, blocks: list[Block], capability: dict[str, float], loads: dict[str, int], fewest: object
) -> None:
    assert policy(name)(blocks, capability).loads() == dict.fromkeys(sorted(capability), 0) | loads


@possible
@of_fewest_bytes
def test_moves_the_fewest_bytes_where_all_access_costs_the_same(
    name: str, blocks: list[Block], capability: dict[str, float], loads: object, fewest: int
) -> None:
    room = rooms(sum(b.items for b in blocks), capability, Terms().epsilon)
    assert fewest_bytes_moved(blocks, room) == fewest
    assert moved_load(policy(name)(blocks, capability)).size_bytes == fewest


REFUSED = [
    pytest.param(ONE, {}, "no node", id="no nodes"),
    pytest.param([], {}, "no node", id="nothing at all"),
    pytest.param(ONE, {"n1": math.nan}, "node n1 is nan: it must be a finite number", id="NaN"),
    pytest.param(ONE, {"n1": 1.0, "n2": -0.5}, "node n2 is -0.5", id="negative"),
    pytest.param(ONE, {"n1": math.inf}, "node n1 is inf", id="infinite"),
    pytest.param(ONE, {"n1": 0.0, "n2": 0.0}, "every node is 0", id="all zero"),
    pytest.param([*ONE, *ONE], {"n1": 1.0}, "block 'b' occurs twice", id="same block twice"),
    pytest.param([block("b", -1, "n1")], {"n1": 1.0}, "-1 items", id="negative items"),
    pytest.param([Block("b", 1, -1, ("n1",))], {"n1": 1.0}, "-1 bytes", id="negative bytes"),
]


@every_policy
@pytest.mark.parametrize(("blocks", "capability", "sentence"), REFUSED)
def test_refuses(name: str, blocks: list[Block], capability: dict[str, float], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence) as refusal:
        policy(name)(blocks, capability)
    assert "\n" not in str(refusal.value)


@of_fewest_bytes
@pytest.mark.parametrize("epsilon", [-0.01, -math.inf, math.nan, math.inf])
def test_refuses_an_epsilon_that_is_no_ratio(name: str, epsilon: float) -> None:
    with pytest.raises(PlanError, match=f"epsilon is {epsilon}"):
        policy(name)(ONE, EQUAL, Terms(epsilon=epsilon))


@of_fewest_bytes
@pytest.mark.parametrize(
    ("epsilon", "left_at_home"),
    [pytest.param(0.0, 2, id="none"), pytest.param(0.5, 3, id="half"), pytest.param(1e300, 4, id="huge")],
)
def test_a_larger_epsilon_leaves_more_where_it_lies(name: str, epsilon: float, left_at_home: int) -> None:
    assert policy(name)(ONE, EQUAL, Terms(epsilon=epsilon)).loads()["n1"] == left_at_home


@of_fewest_bytes
def test_an_epsilon_without_end_never_lets_a_node_of_no_capability_work(name: str) -> None:
    assert policy(name)(ONE, {"n1": 0.0, "n2": 1e-9}, Terms(epsilon=1e300)).loads() == {"n1": 0, "n2": 4}
