"""The bench of completion times, which runs on the lab: what is drawn, the model of the nodes, and the sum of parts."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from bench.completion import total
from bench.completion.__main__ import main
from bench.completion.draw import Wish, draw_slices
from bench.completion.model import complete, find_best
from bench.completion.shapes import Shape
from bench.completion.simulate import MOVED, compare, simulate
from bench.completion.ways import DOCKER, FLOOR, LEARNED, PRESSURE, RANDOM, STOCK, WAYS

ALONE = {("fast", "dense"): (2.0, 8.0), ("slow", "dense"): (4.0, 16.0)}


def wish(number: int, at: float, length: float = 1.0) -> Wish:
    return Wish(number, at, "dense", length, 1)


def record(load: float, means: dict[str, float], best: float = 10.0, shape: str = "busy") -> dict[str, Any]:
    """A part of three tasks, which take 0.5, 1 and 1.5 times a way's mean."""
    shares = (0.5, 1, 1.5)
    ways = {way: [{"waited": 1.0, "completed": mean * share} for share in shares] for way, mean in means.items()}
    one = {"load": load, "ways": ways, "best": [best * share for share in shares]}
    return {"seed": 1, "on": "lab", "shape": shape, "part": [1, 1], "slices": [one]}


def test_the_same_seed_draws_the_same_tasks_and_loads_differ_in_how_close_they_come() -> None:
    assert draw_slices(3) == draw_slices(3) != draw_slices(4)
    span = {one.load: one.wishes[-1].at / len(one.wishes) for one in draw_slices(3)}
    assert span[0.3] > span[0.55] > span[0.8]


def test_tasks_on_one_node_share_it_and_others_do_not_hear_of_them() -> None:
    wishes = [wish(0, 0), wish(1, 1), wish(2, 20)]

    # The first has 3 s of its program left when that of the second begins, 2 s after it came.
    assert complete(wishes, ["fast", "fast", "slow"], ALONE, unit=5.0) == pytest.approx([13.0, 13.0, 20.0])


def test_a_node_takes_two_tasks_and_the_third_waits() -> None:
    wishes = [wish(number, 0) for number in range(3)]

    assert complete(wishes, ["fast"] * 3, ALONE, unit=5.0) == pytest.approx([18.0, 18.0, 28.0])


def test_the_search_finds_the_places_that_every_order_of_choices_would_find() -> None:
    wishes = [wish(0, 0, 2.0), wish(1, 0), wish(2, 0.1, 0.5)]
    every = [[a, b, c] for a in ("fast", "slow") for b in ("fast", "slow") for c in ("fast", "slow")]

    found = find_best(wishes, ALONE, unit=10.0)

    assert sum(found) == pytest.approx(min(sum(complete(wishes, nodes, ALONE, 10.0)) for nodes in every))


def test_a_rule_is_simulated() -> None:
    assert simulate([wish(0, 0)], 10.0, LEARNED, 1) == pytest.approx([15.0]), "5 s to begin and 10 s of the program"


def test_tasks_move_one_at_a_time_once_they_have_run_for_150_seconds_where_they_are_slow() -> None:
    # The two long ones are on the workers with 0.5 and 0.35, and the short ones on the others.
    wishes = [wish(number, number / 10, length) for number, length in enumerate((1, 1, 1, 20, 1, 20))]
    begun = [one.at * 15 / 2.6 for one in wishes]

    stays, moves = (simulate(wishes, 10.0, rule, 1) for rule in (LEARNED, MOVED))

    assert stays[:3] == moves[:3]
    assert stays[3] == pytest.approx(205 / 0.5) and stays[5] == pytest.approx(205 / 0.35)
    slowest, other = 160 - begun[5], 170 - begun[3]
    assert moves[5] == pytest.approx(slowest + (205 - slowest * 0.35 + 15) / 1.0), "at the first look after 150 s"
    assert moves[3] == pytest.approx(other + (205 - other * 0.5 + 15) / 0.75), "at the next look"


def test_no_task_moves_to_a_worker_on_which_another_runs() -> None:
    wishes = [wish(number, number / 10, length) for number, length in enumerate((40, 40, 1, 40))]

    stays, moves = (simulate(wishes, 10.0, rule, 1) for rule in (LEARNED, MOVED))

    assert moves[0] == stays[0] == pytest.approx(405 + 15), "it has its worker for itself"


def test_a_task_that_has_moved_runs_twice_as_long_before_it_moves_again() -> None:
    shape = Shape("three", ("dense",), (0.4,) * 3, (1.0, 0.6, 0.35))  # those of the lab allow one move each
    wishes = [wish(number, number / 10, length) for number, length in enumerate((10, 1, 10, 40))]

    moves = simulate(wishes, 10.0, MOVED, 1, shape)

    first = 160 - wishes[3].at * 15 / 1.95
    assert moves[3] == pytest.approx(first + 300 + (405 - first * 0.35 + 15 - 300 * 0.6 + 15) / 1.0)


def test_what_is_simulated_is_told_as_shares_of_stock() -> None:
    ratios = compare(10.0, seeds=20)[0.3]

    assert ratios[LEARNED] < 0.9 < 1.1 < ratios[RANDOM]


def test_a_way_is_compared_over_the_tasks_that_both_have_done() -> None:
    found = total.compare([record(0.3, {STOCK: 20.0, LEARNED: 16.0})], 0.3, LEARNED, STOCK)

    assert found is not None
    assert (found.mean, found.p95) == pytest.approx((0.8, 0.8))
    assert found.tasks == 3
    assert found.low == found.high == pytest.approx(0.8), "each task is as much faster"
    assert found.running == pytest.approx(15 / 19)
    assert total.compare([record(0.3, {STOCK: 20.0})], 0.3, LEARNED, STOCK) is None


def test_the_interval_is_as_wide_as_the_slices_differ() -> None:
    ratios = (0.5, 0.9, 1.1, 0.7)
    records = [record(0.3, {STOCK: 20.0, LEARNED: 20.0 * ratio}) for ratio in ratios]

    found = total.compare(records, 0.3, LEARNED, STOCK)

    assert found is not None
    assert found.mean == pytest.approx(0.8)
    assert 0.5 < found.low < 0.7 and 0.9 < found.high < 1.1


def test_goals_that_are_not_reached_or_not_measured_are_named() -> None:
    good = {STOCK: 20.0, FLOOR: 20.2, RANDOM: 24.0, PRESSURE: 17.0, LEARNED: 10.5, DOCKER: 18.0}
    records = [record(load, good) for load in (0.3, 0.55, 0.8)]
    uneven = [record(load, good | {LEARNED: 15.0}, shape="uneven") for load in (0.3, 0.55, 0.8)]
    assert total.find_missing_goals(records + uneven) == [f"not measured: {what}" for what in total.NOT_MEASURED]

    slow = [record(0.3, good), record(0.55, good | {LEARNED: 21.0})]
    missing = total.find_missing_goals(slow)

    assert "not reached: busy, load 0.55: learned at most 0.92 of stock, but 1.05" in missing
    assert "not reached: busy, load 0.55: learned at most 1.03 of stock, but 1.05" in missing
    assert "not reached: busy, load 0.55: p95 of learned at most stock's, but 1.05" in missing
    assert "not reached: busy, load 0.55: learned at most 1.10 of clairvoyant, but 2.10" in missing
    assert "not measured: busy, load 0.8: learned at most 1.10 of clairvoyant" in missing
    assert not [one for one in missing if "busy, load 0.3" in one]
    assert "not measured: uneven, load 0.3: learned at most 0.93 of pressure" in missing


def test_the_table_has_a_line_for_each_way() -> None:
    text = total.markdown([record(0.3, dict.fromkeys(WAYS, 20.0))], "HEAD")

    assert [line.split(" |")[0] for line in text.splitlines() if "1.00 to 1.00" in line] == [
        f"| {way}" for way in total.AGAINST_STOCK
    ]


def test_without_a_lab_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.completion.__main__.scene", _no_lab)

    refused = CliRunner().invoke(main, ["--part", "1/16"])

    assert refused.exit_code == 1
    assert "Error: run scripts/lab up" in refused.output


def _no_lab(*_: object) -> object:
    from bench.info.errors import BenchError

    raise BenchError("run scripts/lab up")
