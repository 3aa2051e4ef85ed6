"""Expected starts hold as often as they say, on a cluster that is played second by second, and cost little."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadoop.rest.amounts import MEMORY, VCORES, Amounts, add, subtract
from jobs.queueing.estimate import NEVER, TOO_LARGE, TOO_MANY_BEFORE, Interval, estimate
from jobs.queueing.replay import play
from jobs.queueing.run_times import ENOUGH, Experience, Lasted, RunTimes
from jobs.queueing.scene import Hold, Node, Queue, Running, Scene, Waiting
from jobs.queueing.stage import Stage
from tests.jobs.played_queue import PlayedCluster

SETTLED_SECONDS, EVERY_SECONDS, MOST_SECONDS = 6_000, 500, 80_000
WAITS = 30
GPU = "yarn.io/gpu"
STAGES: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "a light load": ((11, 111), {"load": 0.6}),
    "a heavy load": ((12, 112), {"load": 0.9}),
    "half for masters": ((13, 113), {"load": 0.4, "masters": 0.5}),
    "too few cores": ((15, 115), {"load": 0.55, "cores": 1}),
    "too few GPUs": ((16, 116), {"load": 0.6, "gpus": {"d": 2, "e": 2}}),
    "two queues": ((14, 114), {"load": 0.8, "shares": {"production": 0.7, "trial": 0.3}}),
}
"""Seeds and settings of the clusters that are played."""
MINUTE = RunTimes([60.0] * 50)


@dataclass(frozen=True)
class Expected:
    """What was said of one that waited, when, and what came of it."""

    said: Interval
    seconds: float

    @property
    def holds(self) -> bool:
        return self.said.earliest <= self.seconds <= self.said.latest


def watch(cluster: PlayedCluster) -> list[Expected]:
    """Ask now and then for any of those that wait, and wait until all of them have begun."""
    dice, said = random.Random(cluster.seed), list[tuple[float, int, Interval]]()
    while len(said) < WAITS and cluster.now < MOST_SECONDS:
        cluster.step()
        if cluster.now > SETTLED_SECONDS and cluster.now % EVERY_SECONDS == 0 and cluster.waiting:
            found = estimate(cluster.scene())
            known = [(key, one) for key, one in found.items() if isinstance(one, Interval)]
            if known:
                key, interval = dice.choice(known)
                said.append((cluster.now, int(key), interval))
    while any(cluster.tasks[number].started_at is None for _, number, _ in said):
        cluster.step()
    return [Expected(interval, (cluster.tasks[number].started_at or 0.0) - at) for at, number, interval in said]


@pytest.mark.timeout(1200)
def test_most_actual_starts_lie_within_what_was_expected() -> None:
    by_stage = {
        name: [one for seed in seeds for one in watch(PlayedCluster(seed, **settings))]
        for name, (seeds, settings) in STAGES.items()
    }
    everything = [one for found in by_stage.values() for one in found]
    parts = {name: sum(one.holds for one in found) / len(found) for name, found in by_stage.items()}
    part = sum(one.holds for one in everything) / len(everything)
    widths = sorted(one.said.latest - one.said.earliest for one in everything)
    print(
        f"{part:.1%} of {len(everything)} starts; {parts}; half of the intervals below {widths[len(widths) // 2]:.0f} s"
    )

    assert len(everything) > 200
    assert 0.7 <= part <= 0.9, parts
    assert all(one > 0.5 for one in parts.values()), parts


def size(mb: int, vcores: int) -> Amounts:
    return {MEMORY: mb, VCORES: vcores}


def full(count: int, **also: object) -> Scene:
    """One node with room for four, all of which have run for 30 of exactly 60 s, and some that wait."""
    node = Node("a", size(4096, 4), size(0, 0))
    running = [Running("q", "u", [Hold("a", size(1024, 1))], size(1024, 1), 30.0, MINUTE) for _ in range(4)]
    waiting = [Waiting(str(number), "q", "u", size(1024, 1), MINUTE, is_active=True) for number in range(count)]
    given = {"nodes": [node], "queues": [Queue("q")], "running": running, "waiting": waiting, **also}
    return Scene(**given)  # type: ignore[arg-type]


def replayed(scene: Scene, left: list[float], lasts: list[float]) -> list[float]:
    return play(Stage(scene), left, lasts, random.Random(1))


def test_places_are_given_in_order_as_others_end() -> None:
    assert replayed(full(6), [40.0, 10.0, 30.0, 20.0], [100.0] * 6) == [10.0, 20.0, 30.0, 40.0, 110.0, 120.0]


def test_masters_beyond_their_limit_wait_although_there_is_room_and_smaller_ones_pass() -> None:
    node = Node("a", size(8192, 8), size(7168, 7))
    running = [Running("q", "u", [Hold("a", size(1024, 1))], size(1024, 1), 0.0, MINUTE)]
    waiting = [Waiting(key, "q", "u", size(mb, 1), MINUTE) for key, mb in (("large", 2048), ("small", 512))]
    scene = Scene([node], [Queue("q", masters_most=size(2048, 8))], running, waiting)

    assert replayed(scene, [50.0], [9.0, 9.0]) == [50.0, 0.0]


@pytest.mark.parametrize(
    ("most", "starts"),
    [
        (size(4096, 4), [0.0, 50.0]),  # all three have 5 vcores
        (size(4096, 8), [0.0, 0.0]),
        (size(2048, 8), [0.0, 50.0]),  # and 2,560 MB
        ({}, [0.0, 0.0]),
    ],
)
@pytest.mark.parametrize("limited", ["masters_most", "user_masters_most"])
def test_masters_have_neither_more_memory_nor_more_vcores_than_they_may(
    limited: str, most: Amounts, starts: list[float]
) -> None:
    waiting = [Waiting(key, "q", "u", size(768, 2), MINUTE) for key in ("first", "second")]

    assert replayed(roomy(waiting, **{limited: most}), [50.0], [90.0, 90.0]) == starts


def roomy(waiting: list[Waiting], **limits: Amounts) -> Scene:
    """A node with room for all, on which one of one vcore runs."""
    running = [Running("q", "u", [Hold("a", size(1024, 1))], size(1024, 1), 0.0, MINUTE)]
    return Scene([Node("a", size(16384, 16), size(15360, 15))], [Queue("q", **limits)], running, waiting)  # type: ignore[arg-type]


def test_vcores_of_masters_are_not_counted_where_yarn_goes_by_memory() -> None:
    scene = roomy([Waiting("first", "q", "u", size(768, 9), MINUTE)], masters_most=size(4096, 4))

    assert replayed(replace(scene, counts_all=False), [50.0], [9.0]) == [0.0]


def test_the_first_master_of_a_queue_is_let_in_whatever_its_size_and_the_first_of_a_user_is_not() -> None:
    alone = Waiting("alone", "other", "you", size(4096, 1), MINUTE)
    scene = roomy([Waiting("first", "q", "you", size(4096, 1), MINUTE), alone], user_masters_most=size(2048, 8))
    small = Queue("other", masters_most=size(2048, 8), user_masters_most=size(2048, 8))

    assert replayed(replace(scene, queues=[*scene.queues, small]), [50.0], [9.0, 9.0]) == [50.0, 0.0]


def test_what_needs_a_whole_node_reserves_it_before_smaller_ones_behind_it() -> None:
    waiting = [
        Waiting(key, "q", "u", size(mb, 1), MINUTE, is_active=True) for key, mb in (("all", 4096), ("one", 1024))
    ]

    assert replayed(full(0, waiting=waiting), [10.0, 20.0, 30.0, 40.0], [5.0, 5.0]) == [40.0, 45.0]


def test_a_queue_at_its_most_waits_for_its_own_while_another_goes_on() -> None:
    node = Node("a", size(4096, 4), size(2048, 2))
    running = [Running(name, "u", [Hold("a", size(1024, 1))], {}, 0.0, MINUTE) for name in ("full", "other")]
    waiting = [Waiting(name, name, "u", size(1024, 1), MINUTE, is_active=True) for name in ("full", "other")]
    queues = [Queue("full", {MEMORY: 1024}, {MEMORY: 1024}), Queue("other", {MEMORY: 3072})]

    assert replayed(Scene([node], queues, running, waiting), [20.0, 70.0], [9.0, 9.0]) == [20.0, 0.0]


def test_only_nodes_that_it_may_use_and_of_its_label_count() -> None:
    whole, nothing = size(4096, 4), size(0, 0)
    nodes = [Node("a", whole, whole), Node("b", whole, nothing), Node("c", whole, nothing, "gpu")]
    running = [Running("q", "u", [Hold(name, size(4096, 4))], {}, 0.0, MINUTE) for name in ("b", "c")]
    waiting = [
        Waiting("named", "q", "u", size(1024, 1), MINUTE, nodes=frozenset("b"), is_active=True),
        Waiting("labelled", "q", "u", size(1024, 1), MINUTE, label="gpu", is_active=True),
    ]

    assert replayed(Scene(nodes, [Queue("q")], running, waiting), [30.0, 40.0], [9.0, 9.0]) == [30.0, 40.0]


def with_gpus(vcores: int, gpus: int, mb: int = 1024) -> Amounts:
    return {**size(mb, vcores), GPU: gpus}


def test_a_gpu_is_waited_for_while_memory_and_cores_are_free_and_those_that_ask_for_none_pass() -> None:
    nodes = [Node("a", size(4096, 4), size(4096, 4)), Node("b", with_gpus(4, 2, 4096), with_gpus(3, 0, 3072))]
    running = [Running("q", "u", [Hold("b", with_gpus(1, 2))], with_gpus(1, 2), 0.0, MINUTE)]
    waiting = [
        Waiting("gpu", "q", "u", with_gpus(1, 1), MINUTE, is_active=True),
        Waiting("another", "q", "u", with_gpus(1, 2), MINUTE, is_active=True),
        Waiting("plain", "q", "u", size(1024, 1), MINUTE, is_active=True),
    ]

    assert replayed(Scene(nodes, [Queue("q")], running, waiting), [40.0], [9.0] * 3) == [40.0, 49.0, 0.0]


@pytest.mark.parametrize(
    ("limit", "second"),
    [
        (with_gpus(8, 4, 8192), 0.0),
        (with_gpus(8, 2, 8192), 20.0),
        (size(8192, 8), 0.0),
        (size(8192, 1), 20.0),  # cores alone are short, memory is not
        (size(2048, 8), 20.0),
        ({}, 0.0),
    ],
)
@pytest.mark.parametrize("of_user", [False, True])
def test_a_queue_and_a_user_have_no_more_of_any_type_than_they_may(
    limit: Amounts, second: float, of_user: bool
) -> None:
    node = Node("a", with_gpus(8, 8, 8192), with_gpus(8, 8, 7168))
    running = [Running("q", "u", [Hold("a", size(1024, 0))], {}, 0.0, MINUTE)]
    waiting = [Waiting(str(gpus), "q", "u", with_gpus(1, gpus), MINUTE, is_active=True) for gpus in (1, 2)]
    queue = Queue("q", user_most={"u": limit}) if of_user else Queue("q", most=limit)

    assert replayed(Scene([node], [queue], running, waiting), [90.0], [20.0] * 2) == [0.0, second]


def test_limits_are_of_nodes_without_a_label() -> None:
    nodes = [Node("a", size(4096, 4), size(4096, 4)), Node("c", with_gpus(4, 2), with_gpus(4, 2), "gpu")]
    queue = Queue("q", most=with_gpus(4, 0), masters_most=with_gpus(4, 0))
    running = [Running("q", "u", [Hold("a", size(1024, 1))], size(1024, 1), 0.0, MINUTE)]
    waiting = [Waiting(label or "none", "q", "u", with_gpus(1, 1), MINUTE, label=label) for label in ("", "gpu")]

    assert replayed(Scene(nodes, [queue], running, waiting), [60.0], [9.0, 9.0]) == [inf, 0.0]


def test_the_queue_with_the_least_of_its_share_comes_first_by_the_type_of_which_it_has_most() -> None:
    whole, shares = with_gpus(8, 4, 8192), with_gpus(4, 2, 4096)
    running = [
        Running("gpus", "u", [Hold("a", with_gpus(1, 3))], {}, 0.0, MINUTE),  # three quarters of the GPUs
        Running("memory", "u", [Hold("a", size(2048, 1))], {}, 0.0, MINUTE),
        Running("third", "u", [Hold("a", size(5120, 1))], {}, 0.0, MINUTE),
    ]
    waiting = [Waiting(name, name, "u", size(4096, 1), MINUTE, is_active=True) for name in ("gpus", "memory")]
    queues = [Queue("gpus", shares), Queue("memory", shares)]
    scene = Scene([Node("a", whole, with_gpus(5, 1, 0))], queues, running, waiting)

    assert replayed(scene, [90.0, 80.0, 7.0], [50.0, 50.0]) == [57.0, 7.0]


KINDS = st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(0, 2))
MOMENTS = st.lists(st.integers(1, 60), min_size=6, max_size=6)


@given(running=st.lists(KINDS, max_size=3), waiting=st.lists(KINDS, max_size=6), left=MOMENTS, lasts=MOMENTS)
def test_at_no_moment_a_node_gives_more_of_any_type_than_it_has(
    running: list[tuple[int, int, int]], waiting: list[tuple[int, int, int]], left: list[int], lasts: list[int]
) -> None:
    had, asked = ([dict(zip((MEMORY, VCORES, GPU), one, strict=True)) for one in found] for found in (running, waiting))
    total = add([with_gpus(4, 2, 8), *had])  # so that those that run have room
    runs = [Running("q", "u", [Hold("a", one)], one, 0.0, MINUTE) for one in had]
    waits = [Waiting(str(number), "q", "u", one, MINUTE, is_active=True) for number, one in enumerate(asked)]
    scene = Scene([Node("a", total, subtract(total, add(had)))], [Queue("q")], runs, waits)

    starts = replayed(scene, [float(one) for one in left[: len(had)]], [float(one) for one in lasts[: len(asked)]])

    assert inf not in starts
    for moment in starts:
        there = [one for one, end in zip(had, left, strict=False) if end > moment]
        there += [one for one, at, last in zip(asked, starts, lasts, strict=False) if at <= moment < at + last]
        assert all(count <= total[kind] for kind, count in add(there).items())


def test_what_no_node_can_hold_never_begins_and_is_said_to() -> None:
    found = estimate(full(0, waiting=[Waiting("huge", "q", "u", size(9000, 1), MINUTE, is_active=True)]))

    assert found == {"huge": NEVER}


def test_so_many_are_looked_at_and_no_more() -> None:
    found = estimate(full(101))
    nodes = [Node(str(number), size(1, 1), size(1, 1)) for number in range(1001)]

    assert isinstance(found["99"], Interval)
    assert found["100"] == TOO_MANY_BEFORE
    assert estimate(full(1, nodes=nodes)) == {"0": TOO_LARGE}


def test_the_same_is_expected_of_the_same() -> None:
    assert estimate(full(5)) == estimate(full(5))


def test_a_limit_on_its_time_ends_what_runs() -> None:
    long = RunTimes([10_000.0] * 50)
    running = [Running("q", "u", [Hold("a", size(4096, 4))], size(4096, 4), 30.0, long, at_most=50.0)]
    found = estimate(full(1, running=running))["0"]

    assert isinstance(found, Interval)
    assert found.latest <= 20.0 + 3.0


@pytest.mark.parametrize("most_mb", [0, 65_536])
def test_a_hundred_that_wait_cost_less_than_half_a_second(most_mb: int) -> None:
    dice = random.Random(1)
    runs = RunTimes(dice.lognormvariate(4.0, 1.2) for _ in range(500))
    nodes = [Node(str(number), size(8192, 8), size(0, 4)) for number in range(8)]
    running = [
        Running("q", "u", [Hold(node.name, size(2048, 1))], size(2048, 1), 100 * dice.random(), runs)
        for node in nodes
        for _ in "1234"
    ]
    waiting = [Waiting(str(number), "q", "u", size(dice.choice([1024, 3072]), 1), runs) for number in range(100)]
    spare = [Node(f"spare {number}", size(8192, 8), size(8192, 8)) for number in range(200 if most_mb else 0)]
    limits = {MEMORY: most_mb} if most_mb else {}
    scene = Scene([*nodes, *spare], [Queue("q", {MEMORY: 65_536}, limits)], running, waiting)

    took = []
    for _ in range(5):
        began = time.process_time()
        estimate(scene)
        took.append(time.process_time() - began)
    print(f"{min(took) * 1000:.1f} ms")
    assert min(took) < 0.5


def test_what_is_left_of_a_run_is_taken_from_those_that_ran_longer() -> None:
    runs = RunTimes([10.0] * 50 + [100.0] * 50)
    chances = np.linspace(0.01, 0.99, 99)

    assert np.quantile(runs.left(0.0, chances), 0.25) == pytest.approx(10.0, abs=0.5)
    assert np.quantile(runs.left(20.0, chances), 0.5) == pytest.approx(80.0, abs=1.0)
    assert np.median(RunTimes([1.0] * 10).left(50.0, chances)) == pytest.approx(50.0)


def test_runs_that_go_on_count_for_as_long_as_they_did() -> None:
    chances = np.linspace(0.01, 0.99, 99)
    ended, going = [10.0] * 20, [500.0] * 20

    assert np.mean(RunTimes(ended).left(0.0, chances) > 11.0) < 0.1
    assert np.mean(RunTimes(ended, going).left(0.0, chances) > 11.0) > 0.4


def test_the_most_alike_of_which_enough_ended_tell_the_run_time() -> None:
    def ended(count: int, seconds: float, queue: str = "q", program: str = "", name: str = "") -> list[Lasted]:
        return [Lasted(seconds, queue, program, "maria", name) for _ in range(count)]

    known = Experience(
        [
            *ended(ENOUGH, 1.0, program="p", name="mnist"),
            *ended(ENOUGH, 5.0, program="p"),
            *ended(ENOUGH - 1, 9.0, queue="other"),
        ]
    )

    def longest(**of: str) -> float:
        found = known.of(**{"queue": "q", **of})
        assert found
        return float(found.left(0.0, np.array([0.85]))[0])

    assert longest(program="p", owner="maria", name="mnist") < 1.5
    assert 4.0 < longest(program="p", owner="maria", name="other") < 6.0
    assert known.of("nowhere") is known.of("other")
    assert Experience(ended(ENOUGH - 1, 1.0)).of("q") is None
