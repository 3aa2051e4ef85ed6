"""What every policy promises, whatever it is asked; and the examples that tell one policy from another."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import deepcopy
from fractions import Fraction
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.balance import whole_targets
from locality.bounds import moved_load
from locality.policies import POLICIES, policy
from locality.types import Block, PlanError, Terms
from tests.locality.instances import KINDS, Size, assert_divides, instance

NODES = ("n1", "n2", "n3", "n4")
HOSTS = (*NODES, "gone")

every_policy = pytest.mark.parametrize("name", sorted(POLICIES))


@st.composite
def block_lists(draw: st.DrawFn) -> list[Block]:
    shapes = draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 10**6), st.lists(st.sampled_from(HOSTS), max_size=4)),
            max_size=12,
        )
    )
    return [Block(f"b{i}", items, size, tuple(replicas)) for i, (items, size, replicas) in enumerate(shapes)]


capabilities = st.dictionaries(
    st.sampled_from(NODES),
    st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e308)),
    min_size=1,
).filter(lambda capability: any(capability.values()))
epsilons = st.sampled_from([0.0, 0.02]) | st.floats(0, 1e308)


def block(name: str, items: int, *replicas: str) -> Block:
    return Block(name, items, 100 * items, replicas)


@every_policy
@given(blocks=block_lists(), capability=capabilities, epsilon=epsilons)
def test_every_item_is_in_exactly_one_part_and_zero_capability_gets_none(
    name: str, blocks: list[Block], capability: dict[str, float], epsilon: float
) -> None:
    assert_divides(policy(name)(blocks, capability, Terms(epsilon=epsilon)), blocks, capability)


@every_policy
@given(blocks=block_lists(), capability=capabilities)
def test_the_same_question_has_the_same_answer_and_is_left_as_it_was(
    name: str, blocks: list[Block], capability: dict[str, float]
) -> None:
    before = deepcopy((blocks, list(capability.items())))
    plan = policy(name)(blocks, capability)
    assert policy(name)(tuple(blocks), MappingProxyType(capability)) == plan
    assert (blocks, list(capability.items())) == before


@every_policy
@given(blocks=block_lists(), capability=capabilities)
def test_the_order_of_the_nodes_does_not_matter(name: str, blocks: list[Block], capability: dict[str, float]) -> None:
    backwards = dict(reversed(capability.items()))
    assert policy(name)(blocks, capability) == policy(name)(blocks, backwards)


OF_FEWEST_BYTES = ("algorithm1_replicas", "local_only", "maxflow")
OF_TARGETS = ("algorithm1", "algorithm1_replicas", "even")


@pytest.mark.parametrize("name", OF_FEWEST_BYTES)
@given(blocks=block_lists(), capability=capabilities, data=st.data())
def test_the_order_of_the_blocks_changes_no_bytes(
    name: str, blocks: list[Block], capability: dict[str, float], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(blocks))
    one, other = (moved_load(policy(name)(these, capability)).size_bytes for these in (blocks, shuffled))
    assert abs(one - other) <= 1  # whole bytes from fractions of them


@pytest.mark.parametrize("name", OF_TARGETS)
@given(blocks=block_lists(), capability=capabilities, data=st.data())
def test_the_order_of_the_blocks_changes_no_load(
    name: str, blocks: list[Block], capability: dict[str, float], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(blocks))
    assert policy(name)(blocks, capability).loads() == policy(name)(shuffled, capability).loads()


DIGEST = """
import hashlib
from locality.policies import POLICIES
from tests.locality.instances import KINDS, Size, instance
digest = hashlib.sha256()
for kind in KINDS:
    what = instance(kind, 7, Size(12, 60, 9), exactly=True)
    for name in sorted(POLICIES):
        digest.update(repr(POLICIES[name](what.blocks, what.capability, what.terms)).encode())
print(digest.hexdigest())
"""


def test_plans_do_not_depend_on_the_order_in_which_a_process_hashes_names() -> None:
    def digest(seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", DIGEST]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert digest("1") == digest("2") == digest("3")


@every_policy
@pytest.mark.parametrize("kind", KINDS)
def test_many_nodes_and_blocks_are_divided(name: str, kind: str) -> None:
    what = instance(kind, 3, Size(50, 400, 30), exactly=True)
    assert_divides(policy(name)(what.blocks, what.capability, what.terms), what.blocks, what.capability)


@given(blocks=block_lists(), capability=capabilities)
def test_algorithm1_gives_every_node_its_share_within_one_item(
    blocks: list[Block], capability: dict[str, float]
) -> None:
    loads = policy("algorithm1")(blocks, capability).loads()
    items = sum(b.items for b in blocks)
    total = sum(map(Fraction, capability.values()))
    assert all(abs(loads[n] - Fraction(c) * items / total) < 1 for n, c in capability.items())
    assert loads == whole_targets(items, capability)


@given(blocks=block_lists(), capability=capabilities)
def test_even_differs_by_at_most_one_item(blocks: list[Block], capability: dict[str, float]) -> None:
    loads = policy("even")(blocks, capability).loads()
    working = [loads[node] for node, value in capability.items() if value > 0]
    assert max(working) - min(working) <= 1


@given(blocks=block_lists(), capability=capabilities)
def test_algorithm1_takes_from_no_node_more_than_its_surplus(blocks: list[Block], capability: dict[str, float]) -> None:
    plan = policy("algorithm1")(blocks, capability)
    stored = {n: {b.name for b in blocks if _first_known(b, capability) == n} for n in capability}
    before = {n: sum(b.items for b in blocks if b.name in stored[n]) for n in capability}
    for node, load in plan.loads().items():
        kept = sum(part.items for part in plan.parts[node] if part.block.name in stored[node])
        assert kept >= min(before[node], load)


def _first_known(b: Block, capability: dict[str, float]) -> str | None:
    return next((node for node in b.replicas if node in capability), None)


def test_algorithm1_splits_a_block_at_the_item_where_the_move_ends() -> None:
    plan = policy("algorithm1")([block("b", 10, "n1")], {"n1": 3.0, "n2": 1.0, "n3": 1.0})
    spans = {n: [(p.first, p.items) for p in parts] for n, parts in plan.parts.items()}
    assert spans == {"n1": [(0, 6)], "n2": [(8, 2)], "n3": [(6, 2)]}


def test_algorithm1_leaves_a_balanced_distribution_alone() -> None:
    blocks = [block("a", 4, "n2", "n1"), block("b", 2, "n1")]
    plan = policy("algorithm1")(blocks, {"n1": 1.0, "n2": 2.0})
    assert {n: [p.block.name for p in parts] for n, parts in plan.parts.items()} == {"n1": ["b"], "n2": ["a"]}


def test_algorithm1_replicas_starts_from_the_replicas_that_need_the_fewest_moves() -> None:
    blocks, capability = [block("a", 4, "n1", "n2"), block("b", 4, "n1")], {"n1": 1.0, "n2": 1.0}
    assert moved_load(policy("algorithm1")(blocks, capability)).items == 4
    assert moved_load(policy("algorithm1_replicas")(blocks, capability)).items == 0


def test_local_only_moves_nothing_however_uneven() -> None:
    blocks = [block(f"b{i}", 5, "n1", "n2") for i in range(9)]
    assert policy("local_only")(blocks, {"n1": 1.0, "n2": 99.0}).loads() == {"n1": 45, "n2": 0}


def test_local_only_reads_another_replica_when_the_first_has_no_capability() -> None:
    assert policy("local_only")([block("b", 5, "n1", "n2")], {"n1": 0.0, "n2": 1.0}).loads()["n2"] == 5


def test_an_unknown_policy_is_answered_with_the_names_there_are() -> None:
    names = "algorithm1, algorithm1_replicas, even, local_only, maxflow, min_cost"
    with pytest.raises(PlanError, match=f"'round_robin': choose one of {names}$"):
        policy("round_robin")


@every_policy
def test_a_hundred_thousand_blocks_on_a_hundred_nodes_are_divided_to_the_last_item(name: str) -> None:
    nodes = [f"n{i:03}" for i in range(100)]
    blocks = [block(f"b{i}", 3, nodes[i * 7 % 100], nodes[i * i % 100]) for i in range(100_000)]
    capability = {node: float(i) for i, node in enumerate(nodes)}
    assert_divides(policy(name)(blocks, capability), blocks, capability)
