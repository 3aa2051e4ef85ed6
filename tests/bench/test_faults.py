"""The bench of faults: what is drawn where, and how a run is told. The faults: tests/cluster/test_faults.py."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from bench.faults import table, total
from bench.faults.__main__ import PLACES, main
from bench.faults.draw import ENDS_MASTER, MOST_MASTERS, ONCE, draw_faults
from bench.faults.kinds import FAULTS, find_kinds
from bench.faults.trials import Outcome
from bench.faults.trials import run as run_trial
from bench.faults.volumes import Volume, find_obstacle
from bench.info.errors import BenchError
from bench.parts import Part, describe_commit, find_missing_parts, read_parts
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unreachable

RIGHT = {
    "number": 1,
    "faults": ["worker", "master"],
    "missed": [],
    "seconds": 9.0,
    "attempts": 2,
    "writes": 7,
    "wrong": [],
}
WRONG = {
    "number": 2,
    "faults": ["node"],
    "missed": ["client"],
    "seconds": 9.0,
    "attempts": 1,
    "writes": 5,
    "wrong": ["399 rows of 399 pictures"],
}


KINDS = find_kinds("local")


@pytest.mark.parametrize("count", [1, 11, 100, 1000])
def test_every_kind_comes_equally_often_and_no_job_gets_more_than_it_bears(count: int) -> None:
    jobs = draw_faults(count, 7, KINDS, 6)
    times = Counter(kind for job in jobs for kind in job)

    assert sum(times.values()) == count
    assert max(times.values()) - min(times[kind] for kind in KINDS) <= 1
    assert max(len(job) for job in jobs) <= 6
    assert len(jobs) <= count / 6 * 1.2 + 1
    for job in jobs:
        assert all(job.count(kind) <= 1 for kind in ONCE)
        assert sum(kind in ENDS_MASTER for kind in job) <= MOST_MASTERS


def test_the_same_seed_draws_the_same_faults_and_another_one_others() -> None:
    assert draw_faults(100, 1, KINDS, 6) == draw_faults(100, 1, KINDS, 6) != draw_faults(100, 2, KINDS, 6)


def test_each_kind_has_a_place_and_only_the_lab_cuts_networks_and_power() -> None:
    assert {kind for place in PLACES for kind in find_kinds(place)} == set(FAULTS)
    assert set(find_kinds("lab")) - set(find_kinds("local")) == {"partition", "machine"}


def test_where_there_are_two_masters_one_takes_over_and_single_ones_meet_what_they_always_met() -> None:
    failovers = {"namenode_failover", "resourcemanager_failover", "service_failover"}
    single = {"namenode", "resourcemanager", "service", "clock_jump"}

    assert set(find_kinds("ha")) - set(find_kinds("local")) == failovers
    assert set(find_kinds("local")) - set(find_kinds("ha")) == single


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "service_failover"], "service_failover cannot be done with --on local"),
        (["--on", "ha", "--only", "namenode"], "namenode cannot be done with --on ha"),
        (["--on", "lab"], "scripts/lab up"),
        (["--on", "lab", "--only", "clock_jump"], "clock_jump cannot be done with --on lab: name one of full_disk"),
        (["--only", "partition"], "partition cannot be done with --on local"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.lab import lab

    monkeypatch.setitem(lab().machines.__globals__, "MACHINES", tmp_path / "machines.json")

    refused = CliRunner().invoke(main, words)

    assert refused.exit_code == 1
    assert said in refused.output
    assert len(refused.output.splitlines()) == 1


def test_a_volume_is_filled_slowed_and_gives_back_what_it_holds(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can mount a volume")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "before").write_text("kept")

    def run(*words: str) -> str:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    volume = Volume("node", run, str(tmp_path / "volume"), (str(folder),))
    volume.make()
    volume.attach()
    try:
        assert (folder / "before").read_text() == "kept"
        with volume.filled(), pytest.raises(OSError, match="No space left") as full:
            (folder / "more").write_bytes(bytes(4096))
        assert full.value.errno == errno.ENOSPC
        (folder / "later").write_bytes(bytes(200_000))
        if not find_obstacle():
            with volume.slowed(100_000):
                assert seconds_to_store(folder / "slow", 100_000) > 0.5
            # Others may keep the disk busy; what is still held back would take a second each time.
            assert any(seconds_to_store(folder / "quick", 100_000) < 0.5 for _ in range(30))
    finally:
        volume.detach()

    assert not os.path.ismount(folder)
    assert (folder / "before").read_text() == "kept"
    assert (folder / "later").stat().st_size == 200_000
    assert sorted(tmp_path.iterdir()) == [folder]


def seconds_to_store(file: Path, size: int) -> float:
    """How long it takes until so many bytes are on the disk."""
    begun = time.monotonic()
    with file.open("wb") as stream:
        stream.write(os.urandom(size))
        os.fsync(stream.fileno())
    return time.monotonic() - begun


def test_the_table_names_the_jobs_that_went_wrong() -> None:
    record: dict[str, Any] = {
        "date": "2026-01-02T03:04:05+00:00",
        "seed": 1,
        "part": [1, 1],
        "on": "local",
        "pictures": 400,
        "machine": {"cores": 2, "cpu": "some"},
        "trials": [RIGHT, WRONG],
    }

    text = table.markdown(record)

    assert "faults a minute" in text
    assert "all that it acknowledged meanwhile: 12 writes" in text
    assert "1 of 2 jobs were right, 1 of them with more than one application master" in text
    assert "- job 2 (node): 399 rows of 399 pictures" in text
    assert "| 1 | 0 |" in next(line for line in text.splitlines() if line.startswith("| worker"))
    assert "| 1 | 1 |" in next(line for line in text.splitlines() if line.startswith("| node:"))


class Broken:
    """A place whose service is away and whose cluster does not start again."""

    def client(self) -> InfoClient:
        """Nobody answers."""
        raise Unreachable("the service does not answer")

    def mend(self) -> None:
        """Nothing comes back."""
        raise HadoopError("the disk is full")


def test_a_job_after_which_nothing_can_go_on_is_told_and_is_the_last() -> None:
    place: Any = Broken()

    outcome = run_trial(place, 1, ["worker"], random.Random(1), 10)

    assert outcome.is_last
    assert outcome.wrong == [
        "Unreachable: the service does not answer",
        "nothing can go on: HadoopError: the disk is full",
    ]


def test_what_was_done_is_kept_although_the_cluster_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def place(_home: Path | None, _pictures: int) -> Iterator[Any]:
        yield SimpleNamespace(volumes=[])
        raise BenchError("a volume is busy")

    done = {"date": "2026-01-02T03:04:05+00:00", "machine": {"cores": 2, "cpu": "some"}, "pictures": 400}
    monkeypatch.setitem(PLACES, "local", place)
    monkeypatch.setattr("bench.faults.__main__._run", lambda *_: done | {"drawn": 1, "trials": [RIGHT]})

    told = CliRunner().invoke(main, ["--only", "worker", "--faults", "1", "--output", str(tmp_path)])

    assert told.exit_code == 1
    assert "Error: a volume is busy" in told.output
    assert json.loads(next(tmp_path.glob("*.json")).read_text())["trials"] == [RIGHT]


def test_what_was_done_before_it_was_ended_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def place(_home: Path | None, _pictures: int) -> Iterator[Any]:
        yield SimpleNamespace(volumes=[], folder=tmp_path)

    def run(_place: object, number: int, kinds: list[str], *_: object) -> Outcome:
        if number == 2:
            sys.exit(143)  # as SIGTERM does
        return Outcome(number, kinds, seconds=9.0)

    monkeypatch.setitem(PLACES, "local", place)
    monkeypatch.setattr("bench.faults.trials.run", run)
    words = ["--only", "worker", "--faults", "3", "--in-a-job", "1", "--output", str(tmp_path)]

    told = CliRunner().invoke(main, words)

    assert told.exit_code == 1
    kept = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert (kept["drawn"], [one["faults"] for one in kept["trials"]]) == (3, [["worker"]])


def test_parts_hold_every_job_once() -> None:
    jobs = draw_faults(100, 1, KINDS, 6)
    taken = [job for number in (1, 2, 3) for job in Part(number, 3).take(jobs)]

    assert sorted(taken) == sorted(jobs)


def test_the_sum_counts_the_newest_of_each_part_in_a_range_and_names_what_is_missing(tmp_path: Path) -> None:
    commit = describe_commit().removesuffix("-dirty")
    for name, part, known, trials in (
        ("1", [1, 3], commit, [WRONG]),
        ("2", [1, 3], commit, [RIGHT, RIGHT]),
        ("3", [3, 3], commit, [WRONG]),
        ("4", [2, 3], "0" * 40, [RIGHT]),
    ):
        record = {"seed": 1, "on": "local", "part": part, "commit": known, "trials": trials}
        (tmp_path / f"faults-2026-0{name}.json").write_text(json.dumps(record))

    records = read_parts(tmp_path, "faults", "HEAD")
    goals = total.find_missing_goals(records)
    text = total.markdown(records, "HEAD")

    assert find_missing_parts(records) == ["seed 1, local: 2/3"]
    assert total.count(records)["worker"].times == 2
    assert {"not measured: seed 1, local: 2/3", "5 of 1000 faults were done", "1 jobs went wrong"} <= set(goals)
    assert "partition: 0 of 30" in goals
    assert "- seed 1, part 3/3, job 2 (node): 399 rows of 399 pictures" in text
    told = CliRunner().invoke(main, ["--sum", "HEAD", "--json", "--output", str(tmp_path)])
    assert told.exit_code == 1
    assert json.loads(told.output)["worker"] == {"times": 2, "wrong": 0, "on": {"local": 2}}


def test_a_range_that_git_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="no-such-commit"):
        read_parts(tmp_path, "faults", "no-such-commit..HEAD")
