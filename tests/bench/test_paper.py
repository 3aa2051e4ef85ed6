"""What the paper's experiment makes of its runs, how it goes on after an interruption, and what it refuses."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from PIL import Image

from bench.info.errors import BenchError
from bench.paper import figures, levels, picture, table
from bench.paper.__main__ import main
from bench.paper.journal import Journal
from bench.paper.methods import TITLES, methods, turns

NODES = ("worker1", "worker2")


def run(method: str, number: int, seconds: float, **more: Any) -> dict[str, Any]:
    """A run of 100 pictures on two nodes, one of which does three times as much."""
    nodes = {
        "worker1": {"seconds": seconds, "images": 75, "speed": 7.5},
        "worker2": {"seconds": seconds / 2, "images": 25, "speed": 2.5},
    }
    measured = {"seconds": seconds, "bound": 10.0, "over_bound": seconds / 10, "nodes": nodes, "images": 100}
    return {"method": method, "round": number, "steal_ratio": 0.0, "wall_seconds": 60.0, **measured, **more}


def moving(moved: int, optimal: int) -> dict[str, Any]:
    return {"bytes_moved": moved, "bytes_moved_optimal": optimal, "locality_ratio": 0.5}


def reached(runs: list[dict[str, Any]]) -> list[bool | None]:
    return [one.reached for one in figures.targets(runs, 100)]


def test_after_a_death_those_that_stay_do_all_that_the_dead_one_had_not_recorded() -> None:
    # Four nodes do a picture a second each, until one of them dies after 10 s: 60 of 100 are left.
    assert figures.killed_bound(100, 10, {"a": 1.0, "b": 1.0, "c": 1.0}) == 10 + (100 - 4 * 10) / 3


@pytest.mark.parametrize("seed", range(20))
def test_the_new_bound_is_reached_by_nodes_that_never_rest(seed: int) -> None:
    dice = random.Random(seed)
    speeds = [dice.uniform(0.1, 5) for _ in range(4)]
    death, left, seconds, dead, step = dice.uniform(1, 5), 200.0, 0.0, 0.0, 0.001
    while left > 0:
        alive = speeds if seconds < death else speeds[1:]
        left -= sum(alive) * step
        dead += speeds[0] * step if seconds < death else 0
        seconds += step

    staying = {str(at): speed for at, speed in enumerate(speeds[1:])}
    assert figures.killed_bound(2000, round(10 * dead), staying) / 10 == pytest.approx(seconds, rel=0.01)


def test_a_run_with_a_death_is_set_beside_the_bound_of_those_that_stayed() -> None:
    found = figures.with_death(run("killed", 0, 12.0), "worker2")

    assert found["bound"] == (100 - 25) / 7.5
    assert found["over_bound"] == pytest.approx(1.2)
    assert (found["dead"], found["recorded"]) == ("worker2", 25)


def test_the_makespan_of_a_job_runs_from_the_first_lease_anywhere_to_the_last_rows_that_counted() -> None:
    leases = [
        {"node_name": "worker1", "begin": 5.0, "end": 20.0, "outcome": "accepted"},
        {"node_name": "worker2", "begin": 15.0, "end": 25.0, "outcome": "accepted"},
        {"node_name": "worker2", "begin": 2.0, "end": 99.0, "outcome": "expired"},
    ]
    nodes = [
        {
            "node_name": "worker1",
            "seconds": 15.0,
            "images": 60,
            "images_per_second": 4.0,
            "known_images_per_second": 0.0,
        },
        {"node_name": "worker2", "seconds": 0.0, "images": 0, "images_per_second": 0.0, "known_images_per_second": 1.0},
    ]
    told = {"images": 60, "errors": 0, "bytes_read": 9, "bytes_moved": 2, "bytes_moved_optimal": 1}
    rest = {"bytes_moved_planned": 1, "locality_ratio": 1.0, "makespan_over_bound": 1.0, "application_id": "a"}

    found = figures.from_report({"leases": leases, "nodes": nodes, "attempts": 1, "failures": [], **told, **rest})

    assert (found["seconds"], found["bound"]) == (20.0, 12.0)
    assert found["nodes"]["worker2"] == {"seconds": 0.0, "images": 0, "speed": 1.0}


def test_a_node_that_got_nothing_of_another_application_counts_with_the_speed_it_had() -> None:
    pieces = [
        {"node": "worker1", "started": 100.0, "ended": 110.0, "images": 30},
        {"node": "worker1", "started": 105.0, "ended": 120.0, "images": 30},
    ]

    found = figures.from_pieces(pieces, {"worker1": 9.0, "worker2": 1.0})

    assert found["nodes"]["worker1"] == {"seconds": 20.0, "images": 60, "speed": 3.0}
    assert (found["images"], found["seconds"], found["bound"]) == (60, 20.0, 15.0)


def test_a_method_is_set_beside_the_best_of_the_same_round() -> None:
    runs = [run("maxflow", 0, 10), run("maxflow", 1, 20), run("even", 0, 30), run("even", 1, 30), run("even", 2, 99)]

    assert figures.beside_best(runs, "even") == (3 + 1.5) / 2
    assert figures.beside_best(runs, "cpu") is None


@pytest.mark.parametrize(
    ("moved", "optimal", "ratio"), [(0, 0, 1.0), (1, 0, math.inf), (21, 20, 1.05)], ids=["none", "needless", "some"]
)
def test_bytes_are_set_beside_an_optimum_that_may_be_nothing(moved: int, optimal: int, ratio: float) -> None:
    assert figures.moved_ratio([run("maxflow", 0, 10, **moving(moved, optimal))], "maxflow") == ratio


def test_targets_are_reached_at_their_bounds_and_not_beyond() -> None:
    rows = {"rows": 100, "paths": 100}
    good = [
        run("maxflow", 0, 11),
        run("single", 0, 11, **moving(105, 100)),
        run("even", 0, 14.4),
        run("killed", 0, 11.5, **rows),
    ]
    bad = [
        run("maxflow", 0, 11.1),
        run("single", 0, 9, **moving(106, 100)),
        run("even", 0, 14.4),
        run("killed", 0, 11.6, **rows),
    ]

    assert reached(good) == [True, True, True, True, True]
    assert reached(bad) == [False, False, False, False, True]
    assert reached([]) == [None] * 5


@pytest.mark.parametrize(
    "wrong",
    [run("killed", 1, 11, rows=99, paths=99), run("killed", 1, 11, rows=101, paths=100), {"failed": "it fell"}],
    ids=["one has no row", "one has two rows", "the job failed"],
)
def test_an_image_without_its_one_row_or_a_job_that_fails_is_a_loss(wrong: dict[str, Any]) -> None:
    good = run("killed", 0, 11, rows=100, paths=100)

    assert reached([good])[-1] is True
    assert reached([good, {"method": "killed", "round": 1, "steal_ratio": 0.0} | wrong])[-1] is False


def test_the_table_has_a_row_for_each_method_that_was_measured_and_tells_what_failed() -> None:
    runs = [
        run("maxflow", 0, 11, **moving(2_000_000, 1_000_000)),
        run("maxflow", 1, 12, **moving(0, 0)),
        run("even", 0, 33, **moving(0, 0)),
        {"method": "spark", "round": 1, "steal_ratio": 0.03, "wall_seconds": 1.0, "failed": "no room"},
    ]

    text = table.markdown(record(runs))

    assert "| history, maxflow, stealing | 11.5 | 1.15 | 1.00 | 1.00 MB | 500 kB | 2.00 | 50.0% |  |" in text
    assert (
        "| even, Algorithm 1 (the paper's) | 33.0 | 3.30 | 3.00 | 0 B | 0 B | 1.00 | 50.0% | balances badly |" in text
    )
    assert "| history, maxflow, stealing | 11.5 (75) | 5.8 (25) |" in text
    assert "| worker2 | 35% | 26 % | 16.0 | 6.0 | 38% | 5.5 |" in text
    assert "at most 3.0% in a run" in text
    assert "1 of 4 runs failed" in text and f"- {TITLES['spark']}, round 2: no room" in text
    assert f"| {TITLES['spark']} |" not in text
    assert "| one of four killed: lost | 0 images, 0 jobs |  | not measured |" in text


def record(runs: list[dict[str, Any]]) -> dict[str, Any]:
    scene = {
        "seed": 7,
        "wanted": {"worker1": 1.0, "worker2": 0.35},
        "percent": {"worker1": 0, "worker2": 26},
        "idle": {"worker1": 17.0, "worker2": 16.0},
        "loaded": {"worker1": 17.0, "worker2": 6.0},
        "taught": {"worker1": 15.0, "worker2": 5.5},
    }
    about = {"date": "2026-01-01", "machine": {"cores": 2, "cpu": "some", "memory_bytes": 2**33}, "steal_ratio": 0.01}
    return {**about, "pictures": 100, "engine": "e", "batch": 32, "cpus": 0.4, "scene": scene, "runs": runs}


def test_the_picture_has_a_bar_for_each_node_as_long_as_it_worked(tmp_path: Path) -> None:
    drawn = picture.draw(tmp_path, [run("even", 0, 40), run("maxflow", 0, 20)], NODES)

    text, image = drawn[0].read_text(), Image.open(drawn[1])
    whole = picture.WIDTH - picture.LEFT - picture.RIGHT
    for seconds in (40, 20, 20, 10):
        assert f'width="{whole * seconds / 40:.1f}"' in text
    x, y = picture.LEFT + whole - 2, picture.TOP + picture.BAR // 2
    assert image.convert("RGB").getpixel((x * picture.SHARPER, y * picture.SHARPER)) == (0x1F, 0x6F, 0x8B)


def test_the_same_seed_draws_the_same_levels_and_another_one_others() -> None:
    nodes = [f"worker{number}" for number in range(1, 5)]

    assert levels.draw_shares(3, nodes) == levels.draw_shares(3, nodes) != levels.draw_shares(4, nodes)
    for share, found in zip(levels.SHARES, sorted(levels.draw_shares(3, nodes).values(), reverse=True), strict=True):
        assert found == pytest.approx(share, rel=levels.SPREAD)


def test_loads_are_mended_until_nodes_keep_what_was_drawn() -> None:
    nodes = [f"worker{number}" for number in range(1, 5)]
    set_now = dict.fromkeys(nodes, 0)

    # A load takes half of what it asks for, and a node alone does 16 pictures a second with its 0.4 CPU.
    found = levels.calibrate(
        1, nodes, 0.4, set_now.__setitem__, lambda: {name: 16 * (1 - set_now[name] / 200 / 0.4) for name in nodes}
    )

    assert found.idle == dict.fromkeys(nodes, 16.0)
    for name, share in found.wanted.items():
        assert found.loaded[name] / 16 == pytest.approx(share, rel=levels.NEAR)
    assert found.percent == set_now


def test_each_round_begins_with_another_method() -> None:
    assert [turns(["a", "b", "c"], number)[0] for number in range(4)] == ["a", "b", "c", "a"]
    assert sorted(turns(["a", "b", "c"], 2)) == ["a", "b", "c"]


def test_spark_at_its_best_comes_before_spark_as_it_comes() -> None:
    assert list(methods(0, 0.4, {})) == list(TITLES), "every method has a title, and they have one order"
    named = [name for name in TITLES if name.startswith("spark")]
    assert named == ["spark_best", "spark_best_dynamic", "spark", "spark_many"]

    text = table.markdown(record([run(name, 0, 20) for name in reversed(named)]))
    rows = [line for line in text.splitlines() if line.startswith("| Spark")]
    assert [row.split(" |")[0].removeprefix("| ") for row in rows] == 2 * [TITLES[name] for name in named]


def test_what_was_measured_before_an_interruption_is_there_afterwards(tmp_path: Path) -> None:
    begun = Journal.begin(tmp_path / "j", {"seed": 1})
    begun.set_scene({"percent": {}})
    begun.add(run("even", 0, 10))

    again = Journal.resume(tmp_path / "j", {"seed": 1})
    again.add(run("cpu", 0, 10))

    assert Journal.resume(tmp_path / "j", {"seed": 1}).runs == [run("even", 0, 10), run("cpu", 0, 10)]
    assert again.scene == {"percent": {}}
    assert [again.has(0, name) for name in ("even", "cpu", "spark")] == [True, True, False]
    assert not again.has(1, "even")


def test_a_journal_is_neither_written_over_nor_mixed_with_other_settings(tmp_path: Path) -> None:
    Journal.begin(tmp_path / "j", {"seed": 1})
    (tmp_path / "other").write_text("no journal")

    with pytest.raises(BenchError, match=r"exists.*--resume"):
        Journal.begin(tmp_path / "j", {"seed": 1})
    with pytest.raises(BenchError, match="seed 1, not 2"):
        Journal.resume(tmp_path / "j", {"seed": 2})
    with pytest.raises(BenchError, match="is not a journal"):
        Journal.resume(tmp_path / "other", {"seed": 1})


def test_a_bench_that_had_ended_is_told_again_without_a_lab(tmp_path: Path) -> None:
    settings = {"pictures": 100, "cpus": 0.4, "seed": 1, "quick": False}
    journal = Journal.begin(tmp_path / "j", settings)
    journal.set_scene(record([])["scene"])
    journal.add(run("even", 0, 30, **moving(0, 0)))

    options = ["--resume", str(tmp_path / "j"), "--pictures", "100", "--rounds", "1", "--only", "even", "--json"]
    told = CliRunner().invoke(main, [*options, "--output", str(tmp_path / "out")])

    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["runs"] == journal.runs
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json", ".md", ".png", ".svg"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--journal", "a", "--resume", "b"], "give one of them"),
        (["--only", "magic"], "'magic' is not one of 'even'"),
        (["--rounds", "0"], "0 is not in the range"),
        (["--cpus", "0"], "is not in the range"),
        (["--resume", "/nowhere/j"], "is not a journal"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_before_anything_starts(options: list[str], said: str) -> None:
    refused = CliRunner().invoke(main, options)

    assert refused.exit_code in (1, 2)
    assert said in refused.output


def test_without_a_lab_that_is_up_it_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.lab import lab

    places = lab().machines.__globals__
    monkeypatch.setitem(places, "MACHINES", tmp_path / "machines.json")

    refused = CliRunner().invoke(main, ["--quick", "--journal", str(tmp_path / "j")])

    assert refused.exit_code == 1
    assert "scripts/lab up" in refused.output
