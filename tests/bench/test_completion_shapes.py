"""The shapes of lab that the bench of completion times knows: what is drawn, held, read and summed up on each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from bench.completion import total
from bench.completion.__main__ import main
from bench.completion.cards import find_cable, hold
from bench.completion.draw import Wish, draw_slices
from bench.completion.model import complete
from bench.completion.scene import SCRIPT, Scene
from bench.completion.shapes import BUSY, UNEVEN, Shape
from bench.completion.simulate import SEEN, compare, simulate
from bench.completion.ways import LEARNED, PRESSURE, STOCK
from bench.info.errors import BenchError
from bench.lab import WORKERS
from bench.parts import describe_commit, read_parts
from tests.bench.test_completion import record

BRIDGE, SOURCE = "nwcards0", "10.99.78.1"
STEPS = 8
SLOW_SECONDS = STEPS * (4 << 20) * 8 / 100e6
"""What so many steps of train.py's `read` take at least behind 100 Mbit/s."""


def of_shape(shape: str, stock: float, learned: float, pressure: float) -> dict[str, Any]:
    return record(0.3, {STOCK: stock, LEARNED: learned, PRESSURE: pressure}, shape=shape)


class Workers:
    """As a stage has them, but they are network namespaces; it remembers their limits."""

    control = SimpleNamespace(address=SOURCE)

    def __init__(self) -> None:
        self.cpus: dict[str, float] = {}

    def limit(self, name: str, cpus: float) -> None:
        self.cpus[name] = cpus

    def run(self, name: str, *argv: str) -> str:
        return run("ip", "netns", "exec", f"nw-{name}", *(word for word in argv if word != "sudo"))


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def workers() -> Iterator[Any]:
    if os.geteuid() or not shutil.which("tc"):
        pytest.skip("only root with tc can limit a network card")
    try:
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{SOURCE}/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for number, name in enumerate(WORKERS, 11):
            run("ip", "netns", "add", f"nw-{name}")
            run("ip", "link", "add", f"nw{name}", "type", "veth", "peer", "name", "eth0", "netns", f"nw-{name}")
            run("ip", "link", "set", f"nw{name}", "master", BRIDGE, "up")
            run("ip", "-n", f"nw-{name}", "addr", "add", f"10.99.78.{number}/24", "dev", "eth0")
            run("ip", "-n", f"nw-{name}", "link", "set", "eth0", "up")
        yield Workers()
    finally:
        for name in WORKERS:  # the link first, which a namespace takes with it only a moment after its end
            subprocess.run(["ip", "link", "delete", f"nw{name}"], capture_output=True, check=False)
            subprocess.run(["ip", "netns", "delete", f"nw-{name}"], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", BRIDGE], capture_output=True, check=False)


def read_seconds(workers: Any, name: str, source: str) -> float:
    begun = time.monotonic()
    workers.run(name, sys.executable, str(SCRIPT), "read", str(STEPS), "1", source)
    return time.monotonic() - begun


def list_limits(workers: Any) -> dict[str, list[str]]:
    """The rate of what comes to each worker, and of what it sends."""
    found = {}
    for name in WORKERS:
        told = run("tc", "qdisc", "show", "dev", find_cable(workers, name)), workers.run(name, "tc", "qdisc", "show")
        found[name] = [text.split("rate ")[1].split()[0] for text in told if "tbf" in text]
    return found


def test_a_task_that_reads_is_bound_by_the_card_of_its_worker_and_limits_go_when_the_bench_fails(workers: Any) -> None:
    with pytest.raises(BenchError, match="on purpose"), hold(workers, UNEVEN) as source:
        assert workers.cpus == dict(zip(WORKERS, (0.25, 0.4, 0.4, 0.7), strict=True))
        assert list_limits(workers) == {name: ["1Gbit"] * 2 for name in WORKERS[:3]} | {WORKERS[3]: ["100Mbit"] * 2}
        slow = read_seconds(workers, WORKERS[3], source)
        assert slow >= 0.95 * SLOW_SECONDS
        # Others may keep the machine busy; what is still held back would take as long each time.
        assert any(read_seconds(workers, WORKERS[0], source) < slow for _ in range(10))
        raise BenchError("on purpose")

    assert list_limits(workers)[WORKERS[3]] == ["100Mbit"], "the stage puts back what the lab has set"
    assert list_limits(workers)[WORKERS[0]] == ["1Gbit"]


def test_busy_workers_keep_their_cards_and_lose_what_a_killed_bench_has_left(workers: Any) -> None:
    limit = ("tbf", "rate", "1mbit", "burst", "9k", "latency", "9ms")
    run("tc", "qdisc", "add", "dev", find_cable(workers, WORKERS[3]), "root", *limit)

    with hold(workers, BUSY) as source:
        assert source == ""
        assert set(workers.cpus.values()) == {0.4}
        assert list_limits(workers) == {name: [] for name in WORKERS}


def test_only_what_reads_is_told_where_its_data_comes_from() -> None:
    nothing: Any = None
    found = Scene(nothing, nothing, Path(), "", UNEVEN, "10.0.0.1:99")

    assert found.words(Wish(0, 0.0, "read", 1.0, 7)) == ("read", "225", "7", "10.0.0.1:99")
    assert found.words(Wish(0, 0.0, "dense", 1.0, 7)) == ("dense", "900", "7")


def test_each_shape_has_its_programs() -> None:
    assert {wish.program for one in draw_slices(1) for wish in one.wishes} == {"conv", "dense"}
    uneven = [wish.program for one in draw_slices(1, UNEVEN.programs) for wish in one.wishes]
    assert 0.4 < uneven.count("read") / len(uneven) < 0.6 and set(uneven) == {"dense", "read"}


def test_a_task_bound_by_the_card_and_one_bound_by_the_cpu_do_not_hear_of_one_another() -> None:
    wishes = [Wish(number, 0.0, program, 1.0, 1) for number, program in enumerate(("dense", "read", "read"))]
    alone = {("one", "dense"): (2.0, 8.0), ("one", "read"): (2.0, 8.0)}

    assert complete(wishes[:2], ["one"] * 2, alone, 5.0) == pytest.approx([10.0, 10.0])
    assert complete(wishes[1:], ["one"] * 2, alone | {("other", "read"): (1.0, 1.0)}, 5.0) == pytest.approx([18.0] * 2)


def test_a_task_that_reads_takes_ten_times_as_long_behind_the_slow_card_but_begins_as_fast() -> None:
    slow = Shape("one", ("read",), (0.4,), (1.0,), (100,))

    assert simulate([Wish(0, 0.0, "read", 1.0, 1)], 15.0, LEARNED, 1, slow) == pytest.approx([5.0 + 150.0])


def test_on_uneven_workers_least_pressure_leads_readers_to_the_slow_card_and_learned_speed_does_not() -> None:
    for ratios in compare(15.0, 20, UNEVEN).values():
        assert ratios[LEARNED] <= ratios[SEEN] < 0.93 * ratios[PRESSURE]
        assert ratios[PRESSURE] > 1


def test_parts_of_two_shapes_are_kept_apart(tmp_path: Path) -> None:
    commit = describe_commit().removesuffix("-dirty")
    for number, one in enumerate((of_shape("busy", 20.0, 10.0, 20.0), of_shape("uneven", 20.0, 30.0, 20.0))):
        (tmp_path / f"completion-{number}.json").write_text(json.dumps(one | {"commit": commit}))

    records = read_parts(tmp_path, "completion", commit)

    text, missing = total.markdown(records, commit), total.find_missing_goals(records)
    busy, uneven = text.split("## Workers: uneven")
    assert "| learned | 0.50 |" in busy and "| learned | 1.50 |" in uneven
    assert "not reached: uneven, load 0.3: learned at most 0.93 of pressure, but 1.50" in missing
    assert "not measured: uneven, load 0.8: learned at most 0.93 of pressure" in missing
    assert not [line for line in missing if "busy, load 0.3: learned" in line and "random" not in line]


def test_a_record_names_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def scene(shape: Shape, *_: object) -> Iterator[tuple[Shape, None]]:
        yield shape, None

    turns = of_shape("uneven", 20.0, 20.0, 20.0)["slices"][0]
    monkeypatch.setattr("bench.completion.__main__.scene", scene)
    monkeypatch.setattr("bench.completion.__main__.teach", lambda *_: {})
    monkeypatch.setattr("bench.completion.__main__._turns", lambda *_: turns)

    done = CliRunner().invoke(main, ["--part", "1/16", "--shape", "uneven", "--tasks", "1", "--json"])

    told = json.loads(done.stdout)
    assert (told["shape"], told["cpus"], told["cards"]) == ("uneven", [0.25, 0.4, 0.4, 0.7], [1000, 1000, 1000, 100])
    assert told["busy"] is None


def test_each_shape_is_simulated_in_the_same_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.completion.__main__.DRAWS", 2)

    argv = ("--simulate", "15", "--shape")
    busy, uneven = (CliRunner().invoke(main, [*argv, shape]).stdout.splitlines() for shape in ("busy", "uneven"))

    assert "busy workers" in busy[0] and "uneven workers" in uneven[0]
    assert busy[2:4] == uneven[2:4] and busy[4:] != uneven[4:]
