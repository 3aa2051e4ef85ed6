"""What reading costs: measured pairs as they are, others estimated within bounds, and nothing absurd ever."""

from __future__ import annotations

import json
import math
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locality.cost import (
    ASSUMED_DISK_BYTES_PER_SECOND,
    ASSUMED_NETWORK_BYTES_PER_SECOND,
    ASSUMED_OTHER_RACK_RATIO,
    DEFAULT_RACK,
    LONGEST_VALUE_BYTES,
    AccessCost,
    Basis,
    CostError,
    Figure,
    Rate,
    Side,
)

MB = 1e6
NAMES = [f"n{number}" for number in range(6)]
rates = st.builds(Rate, st.floats(1, 1e15), st.floats(0, 1e6))
names = st.sampled_from(NAMES)
costs = st.builds(
    AccessCost,
    st.dictionaries(names, rates),
    st.dictionaries(st.tuples(names, names).filter(lambda pair: pair[0] != pair[1]), rates),
    st.dictionaries(names, st.sampled_from(["/r1", "/r2", DEFAULT_RACK])),
    st.dictionaries(st.builds(Side, names, st.booleans(), st.booleans()), rates),
)


def known(megabytes: float, age: float = 0.0) -> Rate:
    return Rate(megabytes * MB, age)


@given(costs, names | st.just("stranger"), names | st.just("stranger"))
def test_every_cost_is_positive_and_finite(cost: AccessCost, reader: str, holder: str) -> None:
    entry = cost.entry(reader, holder)

    assert 0 < entry.seconds_per_byte < math.inf
    assert (entry.age is None) == (entry.basis is Basis.ASSUMED) or entry.basis is Basis.ASSUMED
    assert cost.seconds_per_byte(reader, holder) == entry.seconds_per_byte


@given(costs, names, names)
def test_nobody_reads_what_a_node_holds_quicker_than_that_node(cost: AccessCost, reader: str, holder: str) -> None:
    assert cost.seconds_per_byte(holder, holder) <= cost.seconds_per_byte(reader, holder)


@given(costs)
def test_a_pair_that_was_measured_is_used_as_it_is(cost: AccessCost) -> None:
    for (reader, holder), rate in cost.pairs.items():
        assert cost.network(reader, holder) == Figure(rate.bytes_per_second, Basis.MEASURED, rate.age)


@given(costs, st.floats(0, 1e5))
def test_what_was_written_says_the_same_when_it_is_read_later(cost: AccessCost, later: float) -> None:
    read = AccessCost.from_json(cost.to_json(10**9), later)

    assert read.nodes == cost.nodes
    assert read.racks == cost.racks
    assert set(read.pairs) == set(cost.pairs)
    for reader in NAMES:
        for holder in NAMES:
            then, now = cost.entry(reader, holder), read.entry(reader, holder)
            # Ratios of medians are of three rounded numbers.
            assert now.seconds_per_byte == pytest.approx(then.seconds_per_byte, rel=0.02)
            assert now.basis is then.basis
    for pair, rate in cost.pairs.items():
        assert read.pairs[pair].age == pytest.approx(rate.age + later, abs=0.51)


@given(costs)
def test_what_was_read_is_written_alike(cost: AccessCost) -> None:
    once = cost.to_json(10**9)

    assert AccessCost.from_json(once).to_json(10**9) == once


def test_a_rack_that_is_not_known_is_not_known_after_reading_either() -> None:
    cost = AccessCost({"a": known(5), "b": known(5), "c": known(5)}, racks={"b": "/r1", "c": DEFAULT_RACK})

    assert json.loads(cost.to_json())["nodes"][0][:2] == ["a", None]
    assert AccessCost.from_json(cost.to_json()).racks == {"b": "/r1", "c": DEFAULT_RACK}


SAME, OTHER = ("a", "b"), ("a", "c")
RACKS = {"a": "/r1", "b": "/r1", "c": "/r2", "d": "/r2"}


@pytest.mark.parametrize(
    ("pairs", "asked", "megabytes", "basis", "age"),
    [
        # The best that b received and the best that a sent within the rack bound the way from a to b.
        ({("b", "e"): 50, ("e", "a"): 80, ("f", "a"): 20}, ("b", "a"), 50, Basis.ESTIMATED, 3),
        ({("b", "e"): 90, ("e", "a"): 80}, ("b", "a"), 80, Basis.ESTIMATED, 3),
        # a sent nothing in its rack: half of what it sent to others, since the racks' medians are 40 and 80.
        ({("b", "e"): 80, ("e", "f"): 80, ("c", "a"): 20, ("d", "b"): 60}, ("b", "a"), 40, Basis.ESTIMATED, 3),
        # A node that measured nothing is like the median of the others.
        ({("b", "e"): 80, ("e", "f"): 60, ("f", "b"): 40}, ("g", "h"), 60, Basis.ESTIMATED, 3),
        # Nothing within a rack was measured: it is no slower there than to others.
        ({("a", "c"): 30, ("b", "d"): 30}, ("b", "a"), 30, Basis.ESTIMATED, 3),
        # Nothing beyond racks was measured: a share of what there is within.
        ({("a", "b"): 30, ("b", "a"): 30}, ("c", "a"), 30 * ASSUMED_OTHER_RACK_RATIO, Basis.ESTIMATED, 3),
        ({}, ("b", "a"), ASSUMED_NETWORK_BYTES_PER_SECOND / MB, Basis.ASSUMED, None),
        ({}, ("c", "a"), ASSUMED_NETWORK_BYTES_PER_SECOND / MB * ASSUMED_OTHER_RACK_RATIO, Basis.ASSUMED, None),
    ],
)
def test_a_pair_that_was_not_measured_is_estimated_from_its_two_sides(
    pairs: dict[tuple[str, str], float], asked: tuple[str, str], megabytes: float, basis: Basis, age: float | None
) -> None:
    racks = RACKS | dict.fromkeys("efgh", "/r1")
    cost = AccessCost(pairs={pair: known(rate, 3.0) for pair, rate in pairs.items()}, racks=racks)

    found = cost.network(*asked)
    assert found.bytes_per_second == pytest.approx(megabytes * MB)
    assert (found.basis, found.age) == (basis, age)


def test_a_remote_read_is_as_quick_as_the_slower_of_disk_and_network() -> None:
    cost = AccessCost({"a": known(20, 5), "b": known(200, 60)}, {("a", "b"): known(100, 7), ("b", "a"): known(100, 7)})

    assert cost.entry("a", "b") == Figure(100 * MB, Basis.MEASURED, 60)
    assert cost.entry("b", "a") == Figure(20 * MB, Basis.MEASURED, 7)
    assert cost.entry("b", "b") == Figure(200 * MB, Basis.MEASURED, 60)
    assert cost.seconds_per_byte("b", "a") == pytest.approx(5e-8)


def test_a_disk_that_was_not_measured_is_like_the_others_and_the_entry_says_so() -> None:
    cost = AccessCost({"a": known(20, 1), "b": known(200, 9)}, {("a", "c"): known(500)})

    assert cost.disk("c") == Figure(110 * MB, Basis.ESTIMATED, 9)
    assert cost.entry("a", "c").basis is Basis.ESTIMATED
    assert AccessCost().disk("c") == Figure(ASSUMED_DISK_BYTES_PER_SECOND, Basis.ASSUMED, None)
    assert AccessCost({}, {("a", "c"): known(500)}).entry("a", "c").basis is Basis.ASSUMED


def test_nothing_known_can_be_told_from_something_known() -> None:
    assert AccessCost().is_empty
    assert AccessCost(racks={"a": "/r1"}).is_empty
    assert not AccessCost({"a": known(1)}).is_empty
    assert AccessCost({"a": known(1)}, {("b", "c"): known(1)}, {"d": "/r1"}).nodes == ("a", "b", "c", "d")


@pytest.mark.parametrize("number", [0.0, -1.0, 0.5, 1e16, math.nan, math.inf, -math.inf])
def test_what_is_no_rate_is_refused_by_its_value(number: float) -> None:
    with pytest.raises(CostError, match=re.escape(f"{number!r} is not a rate")):
        Rate(number, 0.0)


@pytest.mark.parametrize("age", [-0.1, math.nan, math.inf])
def test_what_is_no_age_is_refused_by_its_value(age: float) -> None:
    with pytest.raises(CostError, match=f"{age!r} is not an age"):
        Rate(1e6, age)


def test_a_node_paired_with_itself_and_a_rack_without_a_name_are_refused_by_name() -> None:
    with pytest.raises(CostError, match="worker7 is paired with itself"):
        AccessCost(pairs={("worker7", "worker7"): known(1)})
    with pytest.raises(CostError, match="the rack of worker7"):
        AccessCost(racks={"worker7": ""})


GOOD = json.loads(AccessCost({"a": known(20)}, {("a", "b"): known(30)}, {"a": "/r1"}).to_json())


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": None},
        {"nodes": [[]]},
        {"nodes": [["a", 0, "fast", 1]]},
        {"nodes": [["a", 0, 0, 1]]},
        {"nodes": [["a", 0, -5, 1]]},
        {"nodes": [["a", 0, math.nan, 1]]},
        {"nodes": [["a", 0, 5, -1]]},
        {"nodes": [["a", 0, 5, None]]},
        {"nodes": [["a", 7, 5, 1]]},
        {"nodes": [["a", 0, 10**400, 1]]},
        {"nodes": [["a", 0, 5, 10**400]]},
        {"racks": {}},
        {"pairs": [[0, 9, 5, 1]]},
        {"pairs": [[0, -1, 5, 1]]},
        {"pairs": [[0, 0, 5, 1]]},
        {"pairs": [[0, 1, 0, 1]]},
        {"pairs": [[0, 1]]},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_a_text_that_is_no_access_cost_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(CostError, match="not an access cost"):
        AccessCost.from_json(json.dumps(GOOD | changed))


@pytest.mark.parametrize("text", ["", "null", "[]", "3", '"x"', "{}", "not json", "[" * 60000])
def test_whatever_is_not_json_of_ours_is_refused(text: str) -> None:
    with pytest.raises(CostError, match="not an access cost"):
        AccessCost.from_json(text)


def cluster(nodes: int, racks: int, peers: int, seed: int = 5) -> tuple[AccessCost, dict[tuple[str, str], float]]:
    """A cluster whose sides have known rates, of which each node has measured a few; and the truth of all pairs."""
    rng = Random(seed)
    named = [f"worker-{number:04}.cluster" for number in range(nodes)]
    rack = {node: f"/rack-{number % racks}" for number, node in enumerate(named)}
    receive, send = ({node: rng.choice([12, 110, 110, 110, 1100]) * MB for node in named} for _ in range(2))
    uplink = {name: rng.uniform(40, 100) * MB for name in set(rack.values())}

    def truth(reader: str, holder: str) -> float:
        ends = min(receive[reader], send[holder])
        return ends if rack[reader] == rack[holder] else min(ends, uplink[rack[reader]], uplink[rack[holder]])

    asked = {
        (node, other)
        for node in named
        for group in ([n for n in named if rack[n] == rack[node]], [n for n in named if rack[n] != rack[node]])
        for other in rng.sample(group, min(peers // 2, len(group)))
        if other != node
    }
    pairs = {pair: Rate(truth(*pair), rng.uniform(0, 1900)) for pair in asked}
    disks = {node: Rate(rng.uniform(80, 2000) * MB, 30) for node in named}
    return AccessCost(disks, pairs, rack), {(i, j): truth(i, j) for i in named for j in named if i != j}


@pytest.mark.parametrize(("nodes", "racks"), [(40, 1), (60, 3), (120, 6)])
def test_estimates_of_a_cluster_whose_truth_is_known_are_never_too_high_and_seldom_too_low(
    nodes: int, racks: int
) -> None:
    cost, truth = cluster(nodes, racks, peers=16)
    shares = sorted(cost.network(*pair).bytes_per_second / rate for pair, rate in truth.items())

    # Each end was only ever seen to do what it can, so the slower of two ends is no more than the truth.
    assert shares[-1] <= 1 + 1e-9
    assert shares[len(shares) // 20] > 0.95


def test_a_thousand_nodes_in_racks_fit_into_one_value_with_their_newest_pairs() -> None:
    cost, _ = cluster(1000, 25, peers=32)
    text = cost.to_json()
    read = AccessCost.from_json(text)

    assert len(text.encode()) <= LONGEST_VALUE_BYTES
    assert "\n" not in text
    assert json.loads(text)["left_out"] == 0
    assert read.nodes == cost.nodes
    assert len(read.pairs) > 100
    assert all(rate.age == round(cost.pairs[pair].age) for pair, rate in read.pairs.items())
    oldest = max(rate.age for rate in read.pairs.values())
    assert all(round(rate.age) >= oldest for pair, rate in cost.pairs.items() if pair not in read.pairs)
    # What is known of the ends does not depend on the pairs that had no room.
    for reader, holder in [cost.nodes[3:5], cost.nodes[500:502], (cost.nodes[0], cost.nodes[25])]:
        if (reader, holder) not in cost.pairs:
            was, now = cost.network(reader, holder), read.network(reader, holder)
            assert now.bytes_per_second == pytest.approx(was.bytes_per_second, rel=0.006)


def test_a_small_cluster_loses_nothing_and_a_short_limit_is_held() -> None:
    cost, _ = cluster(20, 2, peers=16)

    assert set(AccessCost.from_json(cost.to_json()).pairs) == set(cost.pairs)
    for most in (200, 700, 1500, 3000):
        text = cost.to_json(most)
        read = AccessCost.from_json(text)
        assert len(text) <= most
        assert json.loads(text)["left_out"] == 20 - len(read.nodes)
        assert set(read.disks) <= set(cost.disks)


def test_racks_are_told_only_with_nodes_that_fit_and_the_limit_is_held() -> None:
    cost, _ = cluster(60, 60, peers=4)
    for most in (200, 900, 3000):
        text = cost.to_json(most)
        read = AccessCost.from_json(text)
        assert len(text) <= most
        assert sorted(json.loads(text)["racks"]) == sorted(set(read.racks.values()))
        assert read.racks == {node: cost.racks[node] for node in read.nodes}
    many = AccessCost(racks={f"worker-{number:04}.cluster": f"/row-7/rack-{number:04}" for number in range(4000)})
    assert LONGEST_VALUE_BYTES - 100 < len(many.to_json()) <= LONGEST_VALUE_BYTES
