"""What is said of a plan can be computed again from the plan itself, without any of the planner's code."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from locality.access import ASSUMED_SECONDS_PER_BYTE
from locality.balance import quickest_shares
from locality.bounds import rooms
from locality.explain import Reason, moves
from locality.policies import POLICIES, policy
from locality.quality import measure_quality
from locality.types import Block, Part, Plan, PlanError, Terms
from tests.locality.instances import KINDS, Instance, Size, instance
from tests.locality.linear_programs import access_seconds, fewest_bytes

SMALL, SEEDS = Size(8, 20, 12), range(1000, 1010)
EQUAL = {"n1": 1.0, "n2": 1.0}
STORED = [Block("a", 4, 400, ("n1", "n2")), Block("b", 4, 400, ("n1",))]

every_policy = pytest.mark.parametrize("name", sorted(POLICIES))


def planned(name: str) -> Iterator[tuple[Instance, Plan]]:
    for kind in KINDS:
        for seed in SEEDS:
            what = instance(kind, seed, SMALL)
            yield what, policy(name)(what.blocks, what.capability, what.terms)


def given_out(plan: Plan) -> list[tuple[str, Part]]:
    return [(node, part) for node, parts in plan.parts.items() for part in parts]


def part_bytes(part: Part) -> float:
    return part.block.size_bytes / part.block.items * part.items


@every_policy
def test_loads_and_makespan_are_those_of_the_plan(name: str) -> None:
    for what, plan in planned(name):
        quality = measure_quality(plan, what.blocks, what.capability, what.terms)
        loads: Counter[str] = Counter()
        for node, part in given_out(plan):
            loads[node] += part.items
        assert quality.loads == {node: loads[node] for node in what.capability}, str(what)
        makespan = max((load / what.capability[node] for node, load in loads.items()), default=0.0)
        bound = what.items / math.fsum(what.capability.values())
        assert quality.makespan_seconds == pytest.approx(makespan, rel=1e-9), str(what)
        assert quality.lower_bound_seconds == pytest.approx(bound, rel=1e-9), str(what)
        assert quality.makespan_over_bound == pytest.approx(makespan / bound if bound else 1.0, rel=1e-9), str(what)


@every_policy
def test_bytes_and_seconds_of_reading_are_those_of_the_plan(name: str) -> None:
    for what, plan in planned(name):
        quality = measure_quality(plan, what.blocks, what.capability, what.terms)
        parts = given_out(plan)
        foreign = [part for node, part in parts if node not in part.block.replicas]
        went = math.fsum(map(part_bytes, foreign))
        assert quality.bytes_moved == pytest.approx(went, rel=1e-9, abs=1), str(what)
        away = sum(part.items for part in foreign)
        assert quality.locality_ratio == pytest.approx(1 - away / what.items if what.items else 1.0), str(what)
        lost = math.fsum(part_bytes(part) for _, part in parts if not part.block.replicas)
        seconds = access_seconds(plan, what.terms.cost) + lost * ASSUMED_SECONDS_PER_BYTE
        assert quality.access_seconds == pytest.approx(seconds, rel=1e-9), str(what)


@every_policy
def test_the_optimum_beside_the_bytes_is_that_of_the_linear_program(name: str) -> None:
    for what, plan in planned(name):
        quality = measure_quality(plan, what.blocks, what.capability, what.terms)
        room = rooms(what.items, what.capability, what.terms.epsilon)
        assert quality.bytes_moved_optimal == pytest.approx(fewest_bytes(what.blocks, room), rel=1e-9, abs=1), str(what)
        if quality.bytes_moved_optimal:
            ratio = quality.bytes_moved / quality.bytes_moved_optimal
            assert quality.bytes_moved_over_optimal == pytest.approx(ratio), str(what)
        else:
            assert quality.bytes_moved_over_optimal == (None if quality.bytes_moved else 1.0), str(what)


def test_bytes_that_need_not_move_have_no_ratio_to_the_optimum() -> None:
    wasteful = measure_quality(policy("algorithm1")(STORED, EQUAL), STORED, EQUAL)
    assert (wasteful.bytes_moved, wasteful.bytes_moved_optimal, wasteful.bytes_moved_over_optimal) == (400, 0, None)
    best = measure_quality(policy("maxflow")(STORED, EQUAL), STORED, EQUAL)
    assert (best.bytes_moved, best.bytes_moved_over_optimal, best.locality_ratio) == (0, 1.0, 1.0)


def test_a_plan_that_ends_late_may_move_less_than_the_optimum() -> None:
    blocks = [Block("b", 4, 400, ("n1",))]
    quality = measure_quality(policy("local_only")(blocks, EQUAL), blocks, EQUAL)
    assert (quality.makespan_over_bound, quality.bytes_moved, quality.bytes_moved_optimal) == (2.0, 0, 200)
    assert quality.bytes_moved_over_optimal == 0.0


FAR = [
    pytest.param([], EQUAL, Terms(), id="no blocks"),
    pytest.param([Block("b", 0, 777, ())], EQUAL, Terms(), id="no items"),
    pytest.param([Block("b", 4, 0, ("n1",))], EQUAL, Terms(), id="zero bytes"),
    pytest.param([Block("b", 4, 400, ())], {"n1": 1e-300, "n2": 1e300}, Terms(), id="huge skew"),
    pytest.param([Block("b", 4, 400, ("n1",))], {"n1": 5e-324, "n2": 5e-324}, Terms(), id="smallest floats"),
    pytest.param([Block("b", 4, 400, ("n1",))], {"n1": 1e308, "n2": 1e308}, Terms(), id="sum beyond floats"),
    pytest.param([Block("b", 10**12, 10**18, ("n1",))], EQUAL, Terms(epsilon=1e300), id="huge epsilon"),
]


@every_policy
@pytest.mark.parametrize(("blocks", "capability", "terms"), FAR)
def test_every_number_is_one_that_json_can_say(
    name: str, blocks: list[Block], capability: dict[str, float], terms: Terms
) -> None:
    quality = measure_quality(policy(name)(blocks, capability, terms), blocks, capability, terms)
    json.dumps(asdict(quality), allow_nan=False)
    assert 0 <= quality.locality_ratio <= 1
    assert quality.makespan_over_bound >= 1 - 1e-9


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        pytest.param(Plan({"n1": (Part(STORED[0], 0, 4),)}), "not one of these blocks", id="a block is missing"),
        pytest.param(Plan({"n9": (Part(STORED[0], 0, 8),)}), "not one of these", id="another node"),
        pytest.param(Plan({"n0": (Part(STORED[0], 0, 8),)}), "n0 has 8 items and the capability 0", id="idle node"),
    ],
)
def test_a_plan_of_something_else_is_refused(plan: Plan, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        measure_quality(plan, STORED, EQUAL | {"n0": 0.0})


@every_policy
def test_the_moves_are_just_the_parts_that_are_not_local(name: str) -> None:
    for what, plan in planned(name):
        found = [(move.node, move.part) for move in moves(plan, what.capability)]
        assert found == [(node, part) for node, part in given_out(plan) if node not in part.block.replicas], str(what)


@every_policy
def test_a_move_is_explained_by_what_its_holders_do(name: str) -> None:
    for what, plan in planned(name):
        loads, shares = plan.loads(), quickest_shares(what.items, what.capability)
        strangers = {node for node, part in given_out(plan) if node not in part.block.replicas}
        short = {node for node, load in loads.items() if load < shares[node]} | strangers
        for move in moves(plan, what.capability):
            holders = set(move.part.block.replicas)
            working = {holder for holder in holders if what.capability.get(holder)}
            assert (move.reason is Reason.NO_REPLICA) == (not holders), str(what)
            assert (move.reason is Reason.HOLDERS_IDLE) == bool(holders and not working), str(what)
            assert (move.reason is Reason.AVOIDABLE) == bool(working & short), str(what)
            assert all(holder in move.text for holder in working & short or working or holders), str(what)
            assert "\n" not in move.text


def test_maxflow_makes_no_move_of_bytes_that_its_explanation_calls_avoidable() -> None:
    avoidable = [
        (what.origin, move)
        for what, plan in planned("maxflow")
        for move in moves(plan, what.capability)
        if move.reason is Reason.AVOIDABLE and move.part.block.size_bytes
    ]
    assert avoidable == []
