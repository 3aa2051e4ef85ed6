"""The arithmetic of the bench of training: bounds, what follows from the logs of runs, and the sum of parts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bench.training import total
from bench.training.__main__ import PIECES, main
from bench.training.bound import Speeds, epoch_seconds, mean_speeds, most_steps
from bench.training.digits import shift
from bench.training.figures import ASKED, derive
from bench.training.nodes import LEAST_QUOTA_MICROSECONDS, nodes, period_and_quota
from bench.training.pieces import local_reads
from bench.training.pieces.coordinator import Costs, Crowd, seconds_between_calls
from bench.training.pieces.thin import seconds_until
from bench.training.progress import (
    Piece,
    Row,
    advances,
    count_wrong_samples,
    longest_gap,
    lost_seconds,
    pause_seconds,
    read_rows,
    speeds_of_last_steps,
    steps_again,
    steps_between,
    steps_until_fit,
)
from bench.training.settings import Settings
from bench.training.thin_link import Link
from learning.lead.calls import Answer, Doing
from learning.lead.master import Master
from locality.training.generation_events import Generation
from locality.training.sample_order import SampleOrder

ROOT = Path(__file__).resolve().parents[2]


def test_the_bound_of_an_epoch_has_all_speeds_and_the_fixed_cost_of_each_step() -> None:
    speeds = Speeds((1000.0, 3000.0), 0.05)

    assert epoch_seconds(speeds, samples=8000, batch=1000) == pytest.approx(8000 / 4000 + 8 * 0.05)
    assert epoch_seconds(speeds, samples=8001, batch=1000) == pytest.approx(8001 / 4000 + 9 * 0.05)
    mean = mean_speeds([speeds, Speeds((2000.0, 1000.0), 0.07)])
    assert mean.samples_per_second == (1500.0, 2000.0)
    assert mean.fixed_seconds == pytest.approx(0.06)


def test_the_bound_under_a_load_that_changes_is_the_sum_of_its_phases() -> None:
    phases = [(30.0, Speeds((100.0, 100.0), 0.5)), (10.0, Speeds((50.0, 50.0), 1.0))]

    assert most_steps(phases, batch=100) == pytest.approx(30 / 1.0 + 10 / 2.0)


def test_shares_in_the_ratio_of_speeds_are_a_whole_batch() -> None:
    assert Speeds((1.0, 1.0, 1.0), 0.0).shares(100) == [33, 34, 33]
    assert sum(Speeds((0.3, 0.1, 1.7, 0.9), 0.0).shares(1024)) == 1024


def rows(*told: tuple[int, float], pid: int = 1, node: int = 0) -> list[Row]:
    """Of one process: steps that are done, and when."""
    return [Row(node, pid, steps, at, 0) for steps, at in told]


SMOOTH = [(step, step / 10) for step in range(41)]


def test_a_pause_lasts_until_the_next_step_even_if_one_was_about_to_end() -> None:
    hit_at = 2.02
    told = rows(*SMOOTH[:21], (21, 2.03), (22, 2.90), (23, 3.00))

    assert pause_seconds(told, hit_at) == pytest.approx(0.88)


def test_work_is_lost_by_pausing_and_by_doing_steps_again() -> None:
    before = rows(*SMOOTH[:31])
    paused = before + rows((31, 4.0), (32, 4.1), pid=1)
    from_checkpoint = before + rows(*((step, 5.0 + (step - 20) / 10) for step in range(20, 40)), pid=2)

    assert lost_seconds(paused, 3.01) == pytest.approx(4.1 - 3.01 - 0.2)
    assert lost_seconds(from_checkpoint, 3.01) == pytest.approx(6.2 - 3.21)
    assert steps_again(from_checkpoint, 3.01) == 10
    assert steps_again(paused, 3.01) == 0


def test_steps_in_a_time_and_gaps_count_what_is_at_the_edges() -> None:
    done = advances(rows((0, 0.0), (1, 1.0), (2, 4.0)))

    assert steps_between(done, 0.5, 2.5) == pytest.approx(1.0)
    assert longest_gap(rows((0, 0.0), (1, 1.0), (2, 4.0)), 0.5, 9.0) == pytest.approx(5.0)


def test_shares_fit_when_nobody_needs_much_longer_than_the_best_shares_do() -> None:
    shares = [(50, 50)] * 10 + [(40, 60)] + [(22, 78)] * 5
    told = [
        Row(node, node, step, step + node / 100, share)
        for step, both in enumerate(shares, start=1)
        for node, share in enumerate(both)
    ]
    speeds = {0: 1.0, 1: 4.0}

    assert steps_until_fit(told, 5.5, speeds, 100, 1.2) == 5  # the 7th to the 11th
    assert steps_until_fit(told, 5.5, speeds, 100, 1.05) is None


def test_speeds_are_those_of_computing_in_the_last_steps() -> None:
    told = [
        Row(0, 1, 1, 1.0, 10, 10.0),
        Row(0, 1, 2, 2.0, 30, 0.5),
        Row(1, 2, 2, 2.0, 10, 1.0),
        Row(0, 1, 3, 3.0, 10, 0.5),
    ]

    assert speeds_of_last_steps(told, 2) == {0: 40.0, 1: 10.0}


ORDER = SampleOrder(12, 4, 5)


def used(step: int, begin: int, end: int, pid: int, generation: int = 1) -> Piece:
    """A part of the samples of a step."""
    return Piece(pid, step, generation, ORDER.of_step(*ORDER.locate(step)).tolist()[begin:end])


def test_samples_of_a_step_that_was_done_again_count_once() -> None:
    redone = [used(0, 0, 2, 1), used(0, 2, 4, 2), used(1, 0, 2, 1), used(1, 2, 4, 2), used(1, 0, 4, 1, generation=2)]

    assert count_wrong_samples(redone, {1: 2, 2: 1}, ORDER, 2) == 0


def test_samples_of_who_died_after_the_sum_of_a_step_count_and_others_do_not() -> None:
    both = [used(0, 0, 2, 1), used(0, 2, 4, 2)]

    assert count_wrong_samples(both, {1: 1}, ORDER, 1) == 0
    assert count_wrong_samples([used(0, 0, 4, 1), used(0, 2, 4, 2)], {1: 1}, ORDER, 1) == 0


def test_samples_that_are_missed_or_doubled_are_found() -> None:
    assert count_wrong_samples([used(0, 0, 3, 1)], {1: 1}, ORDER, 1) == 1
    assert count_wrong_samples([used(0, 0, 4, 1), used(0, 3, 4, 2)], {1: 1, 2: 1}, ORDER, 1) == 1
    assert count_wrong_samples([used(0, 0, 4, 1)], {1: 2}, ORDER, 2) == 4


def test_rows_are_read_in_the_order_of_time_without_the_line_that_is_being_written(tmp_path: Path) -> None:
    (tmp_path / "steps-0-11.jsonl").write_text("[1, 2.0, 5]\n[2, 4.0, 5]\n[3, 5")
    (tmp_path / "steps-1-12.jsonl").write_text("[1, 3.0, 7]\n")

    assert read_rows(tmp_path) == [Row(0, 11, 1, 2.0, 5), Row(1, 12, 1, 3.0, 7), Row(0, 11, 2, 4.0, 5)]


def test_digits_move_right_and_down_and_leave_nothing_behind() -> None:
    image = np.zeros((2, 3, 3), dtype=np.uint8)
    image[:, 0, 2] = 9
    moved = shift(image, np.array([[1, -1], [0, 1]]))

    assert np.argwhere(moved).tolist() == [[0, 1, 1]]
    assert moved.max() == 9


def test_no_quota_is_smaller_than_the_kernel_takes() -> None:
    for cpus in (0.05, 0.0875, 0.2, 0.8):
        period, quota = period_and_quota(cpus)
        assert quota >= LEAST_QUOTA_MICROSECONDS
        assert quota / period == pytest.approx(cpus, rel=0.01)


def test_a_node_holds_who_enters_it_and_is_gone_in_the_end(tmp_path: Path) -> None:
    with nodes([0.5, 0.5]) as made:
        settings = Settings(str(tmp_path), str(tmp_path / "run"), made.names, 8)
        entered = f"Settings.read({str(settings.write())!r}).enter(1)"
        shown = "import os; print(open('/proc/self/cgroup').read(), os.sched_getaffinity(0))"
        script = f"from bench.training.settings import Settings\n{entered}\n{shown}"
        said = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        assert ("/node-1" if made.is_limited else "{1}") in said
    assert not any(Path(name).exists() for name in made.names if made.is_limited)


def test_members_that_are_led_call_once_a_step_and_the_leader_ticks_meanwhile() -> None:
    costs = Crowd(8).run(steps=5)

    assert costs.seconds == pytest.approx(1.0)
    assert len(costs.calls) == 8 * 5
    assert len(costs.ticks) == 4
    assert len(Crowd(256).run(steps=5).ticks) == 16


@pytest.mark.parametrize("members", [8, 64, 256])
def test_members_that_are_led_pause_as_real_ones(members: int) -> None:
    names = tuple(map(str, range(members)))
    real = Master(lambda: None, "token", "0", "host")
    real._note(Answer(Generation(1, 1, names, 0, False, (), "store")))

    assert seconds_between_calls(members) == real._pause(Doing.COMPUTES)


def test_a_step_costs_all_its_calls_and_ticks() -> None:
    costs = Costs(steps=2, seconds=0.5, calls=[0.001, 0.002, 0.001, 0.002], ticks=[0.004], longest_tick=0.007)

    found = costs.to_milliseconds()

    assert found == pytest.approx({"step": 5.0, "call": 1.5, "second": 20.0, "tick": 7.0})


def test_reads_are_local_on_nodes_with_a_replica_and_an_even_sampler_knows_none() -> None:
    everywhere, nowhere = frozenset(local_reads.NODES), frozenset({"another"})
    half = [everywhere, nowhere]
    order = SampleOrder(2 * local_reads.BLOCK_SAMPLES, 100, 3)

    assert local_reads.local_share(half, order) == local_reads.even_share(half, order) == 0.5
    fast_and_slow = [frozenset({"node-3"}), frozenset({"node-0"})]
    assert local_reads.local_share(fast_and_slow, order) == pytest.approx(4 / 15 + 1 / 15, abs=0.02)  # their shares
    assert local_reads.even_share(fast_and_slow, order) == pytest.approx(0.125, abs=0.03)


def test_a_loss_is_reached_between_two_looks_or_not_in_time() -> None:
    looks = [(0.0, 2.0), (8.0, 1.0), (9.0, 0.9), (20.0, 0.5)]

    assert seconds_until(looks, 1.5, 90.0) == pytest.approx(4.0)
    assert seconds_until(looks, 0.7, 90.0) == pytest.approx(14.5)
    assert seconds_until(looks, 0.7, 10.0) == 10.0
    assert seconds_until(looks, 0.1, 90.0) == 90.0
    assert seconds_until([(3.0, 0.1)], 0.5, 90.0) == 3.0


def test_packets_on_a_thin_link_wait_for_those_before_them_and_then_for_the_way() -> None:
    link = Link(rate=1000.0, delay=0.5)
    link.send(0, b"x" * 1000, now=10.0)
    link.send(0, b"y" * 500, now=10.2)
    link.send(1, b"z" * 100, now=10.2)

    assert link.take(10.7) is None
    assert link.take(10.81) == (0, b"z" * 100)
    assert link.take(11.49) is None
    assert link.take(11.51) == (1, b"x" * 1000)
    assert link.take(11.99) is None
    assert link.take(12.01) == (1, b"y" * 500)
    assert link.wait(12.01) > 0


def record(part: int, **readings: list[float]) -> dict[str, Any]:
    """What a part keeps."""
    return {
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cores": 2, "cpu": "a CPU"},
        "versions": {"PyTorch": "1.13"},
        "steal_ratio": 0.0,
        "load_before": 0.1,
        "commit": "c",
        "seed": 1,
        "part": [part, 2],
        "on": "local",
        "pieces": ["killed"],
        "is_limited": True,
        "throttled": 0.5,
        "seconds": 60.0,
        "readings": readings,
        "failed": {},
    }


def test_the_sum_puts_readings_of_all_parts_together_each_by_its_rule() -> None:
    parts = [
        record(1, killed_pause=[0.1] * 19, slower_steps=[2, 3], steady_1024_of_bound=[1.0, 1.3]),
        record(2, killed_pause=[9.0], slower_steps=[7], steady_1024_of_bound=[1.05]),
    ]
    found = total.values(parts)

    assert found["slower_steps"] == 7
    assert found["steady_1024_of_bound"] == 1.05
    assert 0.1 <= found["killed_pause"] < 9.0
    assert total.find_missing_goals(parts)[0] == "not measured: steady-1024"
    assert "| yes |" in total.markdown(parts, "two parts")


def test_each_goal_that_was_not_measured_or_not_reached_is_named() -> None:
    asked = [one.figure for one in ASKED if one.figure.most is not None or one.figure.least is not None]

    nothing = total.find_missing_goals([])
    assert [line for line in nothing if line.startswith("not measured: ")] == nothing
    assert sorted(nothing) == sorted(f"not measured: {piece}" for piece in PIECES)
    assert len(asked) == 26
    assert "not measured: frozen" in total.find_missing_goals([record(1)])
    assert "not measured: killed: worker killed: until the next step, p95" in total.find_missing_goals([record(1)])
    assert "failed: killed: no" in total.find_missing_goals([record(1) | {"failed": {"killed": "no"}}])
    assert "not reached: slower: a node becomes 4 x slower: whole steps until shares fit, most: 7.00" in (
        total.find_missing_goals([record(1, slower_steps=[7.0])])
    )


def test_ratios_of_lost_work_and_accuracies_outside_the_range_follow_from_others() -> None:
    found = derive(
        {
            "killed_lost": [0.5, 0.7, 0.6],
            "killed_torchrun_50": [12.0],
            "accuracy": [0.95, 0.98, 0.99],
            "accuracy_alone": [0.96, 0.99],
        }
    )

    assert list(found["killed_ratio_50"]) == pytest.approx([20.0])
    assert "killed_ratio_epoch" not in found
    assert list(found["accuracy_outside"]) == [1]


def test_every_figure_belongs_to_a_piece_and_has_a_name_of_its_own() -> None:
    assert {one.figure.part for one in ASKED} == set(PIECES)
    assert len({one.figure.key for one in ASKED}) == len(ASKED)


def test_the_sum_of_kept_parts_is_told_as_json(tmp_path: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    kept = record(1, slower_steps=[3.0]) | {"commit": commit.stdout.strip()}
    (tmp_path / "training-2026-01-01-000000.json").write_text(json.dumps(kept))

    done = CliRunner().invoke(main, ["--sum", "HEAD", "--json", "--output", str(tmp_path)])

    assert done.exit_code == 1
    assert json.loads(done.output)["values"] == {"slower_steps": 3.0}


def test_a_piece_that_was_measured_again_counts_once_also_where_there_are_more_parts_by_then(tmp_path: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    for day, part, lost in ((1, [1, 2], 3.0), (2, [2, 3], 1.0)):
        kept = record(1, killed_lost=[lost]) | {"commit": commit.stdout.strip(), "part": part}
        (tmp_path / f"training-2026-01-0{day}-000000.json").write_text(json.dumps(kept))

    done = CliRunner().invoke(main, ["--sum", "HEAD", "--json", "--output", str(tmp_path)])

    assert json.loads(done.output)["values"] == {"killed_lost": 1.0}
