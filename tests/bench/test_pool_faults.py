"""The bench of faults on a pool: what is drawn, what counts as right, and how it is told. The run itself is by hand."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from bench.faults import table, total, trials
from bench.faults.__main__ import PLACES, main
from bench.faults.draw import ENDS_MASTER, MOST_MASTERS, draw_faults
from bench.faults.kinds import find_kinds
from bench.faults.place import Trial
from bench.faults.pool.asker import Asker
from bench.faults.pool.givers import AT_ONCE, Givers
from bench.faults.pool.standing import FROZEN_SECONDS, LEASE_SECONDS
from bench.faults.pool.three_jobs import UP, ThreeJobs, find_flaws
from bench.faults.trials import Outcome
from bench.parts import Part, describe_commit
from bench.stage import until
from hadoop.errors import HadoopError
from jobs.errors import JobError
from jobs.itemwork.coordinator import SILENCES
from jobs.kinds.pool.client import Ended, NotNow

KINDS = ["frozen", "master", "node", "nodemanager", "worker"]
CLASSES = {"/a": 1, "/b": 2, "/c": 3}
DEADLINE = 120.0


def row(path: str, class_id: int, error: str | None = None) -> dict[str, Any]:
    """As a job stores it."""
    return {"path": path, "class_id": class_id, "error": error}


RIGHT = [row("/a", 1), row("/b", 2), row("/c", 3)]


def record(on: str, part: list[int], *trials_of_it: list[str], wrong: int = 0, commit: str = "c") -> dict[str, Any]:
    """A part whose first trials went wrong."""
    usual = {"missed": [], "seconds": 60.0, "attempts": 1, "writes": 7}
    usual |= {"jobs": 9, "answered": 50, "refused": {"the pool bench is full": 2, "no worker is ready": 1}}
    made = [
        usual | {"number": number, "faults": faults, "wrong": ["/out/1/003 is not there"] if number <= wrong else []}
        for number, faults in enumerate(trials_of_it, 1)
    ]
    heading = {"date": "2026-01-02T03:04:05+00:00", "machine": {"cores": 2, "cpu": "some"}, "pictures": 600}
    return heading | {"seed": 1, "on": on, "part": part, "commit": commit, "trials": made}


def test_a_hundred_faults_come_equally_often_in_pools_that_bear_them() -> None:
    assert find_kinds("pool") == KINDS
    pools = draw_faults(100, 1, KINDS, 6)

    assert Counter(kind for one in pools for kind in one) == dict.fromkeys(KINDS, 20)
    assert all(sum(kind in ENDS_MASTER for kind in one) <= MOST_MASTERS for one in pools)
    assert int(UP[UP.index("--attempts") + 1]) > MOST_MASTERS
    parts = [Part(number, 10).take(pools) for number in range(1, 11)]
    assert sorted(one for part in parts for one in part) == sorted(pools)
    assert all(6 <= sum(map(len, part)) <= 12 for part in parts)


def test_a_worker_stands_still_for_longer_than_a_silent_one_is_kept() -> None:
    assert UP[UP.index("--lease-seconds") + 1] == str(LEASE_SECONDS)
    assert FROZEN_SECONDS > SILENCES * LEASE_SECONDS


@pytest.mark.parametrize(
    ("rows", "flaws"),
    [
        (RIGHT, []),
        (RIGHT[:2], ["1 pictures have no row, such as /c"]),
        ([*RIGHT, row("/b", 2)], ["1 pictures have more than one row, such as /b"]),
        (
            [*RIGHT[:2], row("/b", 2)],
            ["1 pictures have no row, such as /c", "1 pictures have more than one row, such as /b"],
        ),
        ([*RIGHT[:2], row("/c", 2)], ["1 pictures have a row that is not theirs, such as /c"]),
        ([*RIGHT[:2], row("/c", 3, "it ended a worker")], ["1 pictures have a row that is not theirs, such as /c"]),
        ([*RIGHT, row("/d", 4)], ["1 pictures have a row that is not theirs, such as /d"]),
        ([], ["3 pictures have no row, such as /a"]),
    ],
)
def test_each_picture_has_one_row_and_that_is_the_right_one(rows: list[dict[str, Any]], flaws: list[str]) -> None:
    assert find_flaws(rows, CLASSES) == flaws


class Script:
    """A pool that answers as it was told, and then waits until the test has seen that; `asked` are the paths."""

    def __init__(self, *answers: Mapping[str, Any] | Exception) -> None:
        self.asked: list[str] = []
        self.is_over = threading.Event()
        self._may_end = threading.Event()
        self._answers = list(answers)

    def __call__(self, path: str) -> Mapping[str, Any]:
        self.asked.append(path)
        if not self._answers:
            self.is_over.set()
            assert self._may_end.wait(DEADLINE)
            return row(path, CLASSES[path])
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self, patience: float = DEADLINE) -> Asker:
        """Whoever has asked until all was answered, or until there was nothing more to ask for."""
        asker = Asker(self, CLASSES, patience, pause=0.01)
        asker.start()
        until(lambda: self.is_over.is_set() or not asker._thread.is_alive(), DEADLINE, "all was asked for")
        self._may_end.set()
        asker.stop()
        return asker


def test_a_picture_that_is_refused_is_asked_about_again_until_it_has_its_row() -> None:
    script = Script(row("/a", 1), NotNow("the pool is full"), HadoopError("HDFS is away"), NotNow("the pool is full"))

    asker = script.run()

    assert script.asked[:5] == ["/a", "/b", "/b", "/b", "/b"]
    assert asker.refused == {"the pool is full": 2, "HDFS is away": 1}
    assert asker.wrong == []
    assert asker.answered >= 2


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (row("/a", 2), "/a has class 2, and 1 is right"),
        (row("/b", 1), "/a has the row of /b"),
        (row("/a", 1, "it ended two workers"), "/a: it ended two workers"),
        ({"path": "/a"}, "/a has class None, and 1 is right"),
        (JobError("/a is no file in HDFS"), "/a: JobError: /a is no file in HDFS"),
        (Ended("the pool has ended"), "/a: Ended: the pool has ended"),
        (KeyError("row"), "/a: KeyError: 'row'"),
    ],
)
def test_an_answer_that_is_not_right_and_a_refusal_for_good_are_wrong(
    answer: Mapping[str, Any] | Exception, wrong: str
) -> None:
    assert Script(answer).run().wrong == [wrong]


def test_a_picture_that_is_refused_for_too_long_is_wrong() -> None:
    asker = Script(NotNow("no worker is ready")).run(patience=-1.0)

    assert asker.wrong == ["/a had no row for -1 s: no worker is ready"]


@contextmanager
def commands(tmp_path: Path, failing: str = "") -> Iterator[Any]:
    """What begins a command that goes on until a file is there that is called as its job is; all that were begun."""
    begun: list[subprocess.Popen[str]] = []
    program = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\n"
    program += f"sys.exit('it was refused' if sys.argv[1].endswith({failing!r}) and {failing!r} else 0)"

    def begin(output: str) -> subprocess.Popen[str]:
        words = (sys.executable, "-c", program, str(tmp_path / output.rpartition("/")[2]))
        piped = subprocess.PIPE
        begun.append(subprocess.Popen(words, stdout=piped, stderr=piped, text=True))
        return begun[-1]

    try:
        yield begin, begun
    finally:
        for one in begun:
            one.kill()
            one.wait()


def test_three_jobs_are_given_at_once_and_another_one_for_each_that_has_ended(tmp_path: Path) -> None:
    with commands(tmp_path) as (begin, begun):
        givers = Givers(begin, "/out/1")
        givers.start()
        until(lambda: len(begun) == AT_ONCE, DEADLINE, "three are given")
        (tmp_path / "002").touch()
        until(lambda: len(begun) == AT_ONCE + 1, DEADLINE, "another one is given")
        givers.stop()
        assert givers.is_at_work
        for number in (1, 3, 4):
            (tmp_path / f"00{number}").touch()
        until(lambda: not givers.is_at_work, DEADLINE, "all have ended")

    assert givers.jobs == ["/out/1/001", "/out/1/002", "/out/1/003", "/out/1/004"]
    assert givers.wrong == []


def test_a_command_that_fails_is_wrong_and_all_can_be_ended(tmp_path: Path) -> None:
    with commands(tmp_path, failing="001") as (begin, begun):
        givers = Givers(begin, "/out/1")
        givers.start()
        (tmp_path / "001").touch()
        until(lambda: givers.wrong, DEADLINE, "it has failed")
        assert givers.wrong == ["/out/1/001: its command ended with 1: it was refused"]
        until(lambda: len(begun) == AT_ONCE, DEADLINE, "the others are given")
        givers.leave()

        assert not givers.is_at_work
        assert all(one.poll() is not None for one in begun)
    assert len(givers.jobs) == AT_ONCE


class Endless:
    """Work of which a bit more is done whenever somebody looks; it ends after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.done = 0.0

    def count_done(self) -> float:
        """One more."""
        self.done += 1
        return self.done

    def share(self, _done: float, _faults: int) -> float:
        """As of a pool, the same for each fault."""
        return 10.0

    def has_ended(self) -> bool:
        """Whether it was looked at often enough."""
        return self.done >= self.looks


@pytest.mark.parametrize(("looks", "hit"), [(1000, KINDS), (1, [])])
def test_faults_come_one_after_another_while_the_work_goes_on(
    looks: int, hit: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work: Any = Endless(looks)
    at: list[float] = []

    def do(_kind: str, _trial: object) -> bool:
        at.append(work.done)
        return True

    monkeypatch.setattr("bench.faults.kinds.do", do)
    place: Any = SimpleNamespace(name="pool", is_short=lambda: False)
    writer: Any = None
    outcome = Outcome(1)

    trials._hit(Trial(place, None, "", random.Random(1), writer), work, KINDS, outcome)

    assert outcome.faults == hit
    assert outcome.missed == [kind for kind in KINDS if kind not in hit]
    assert len(at) == len(set(at)) == len(hit)


def test_a_pool_is_told_with_its_jobs_single_pictures_and_refusals() -> None:
    text = table.markdown(record("pool", [1, 10], ["worker", "frozen"], ["node"], wrong=1))

    assert "3 faults (0 tries came too late) in 2 pools, which did 18 jobs of 600 pictures, three at once" in text
    assert "answered about 100 single pictures, some after one of 6 refusals, on a real cluster of 4 nodes" in text
    assert "1 of 2 pools were right" in text
    assert "- pool 1 (worker, frozen): /out/1/003 is not there" in text


def test_a_hundred_faults_on_a_pool_are_a_goal_of_their_own() -> None:
    pools, jobs = record("pool", [1, 1], *(KINDS for _ in range(20))), record("local", [1, 1], ["worker"] * 2)

    assert "100 faults on a pool: 0 were done" in total.find_missing_goals([jobs])
    goals = total.find_missing_goals([pools, jobs])
    assert not [goal for goal in goals if "pool" in goal]
    assert {"2 of 1000 faults were done", "worker: 2 of 30", "node: 0 of 30"} <= set(goals)
    few = total.find_missing_goals([record("pool", [2, 10], KINDS, ["node"], wrong=2)])
    assert {"100 faults on a pool: 6 were done", "2 pools went wrong", "not measured: seed 1, pool: 1/10"} <= set(few)
    assert "1 jobs went wrong" not in few


def test_the_sum_shows_where_each_kind_ran_and_names_the_goal(tmp_path: Path) -> None:
    commit = describe_commit().removesuffix("-dirty")
    parts = record("pool", [1, 1], ["worker"], wrong=1, commit=commit), record("ha", [1, 1], ["worker"], commit=commit)
    for number, one in enumerate(parts):
        (tmp_path / f"faults-{number}.json").write_text(json.dumps(one))

    told = CliRunner().invoke(main, ["--sum", "HEAD", "--output", str(tmp_path)])

    assert told.exit_code == 1
    assert "| worker | 2 | 1 | ha 1, pool 1 |" in told.output
    assert "2 faults in 1 jobs and 1 pools, of which 1 were right. The pools did 9 jobs" in told.output
    assert "- 100 faults on a pool: 1 were done" in told.output
    assert "- seed 1, part 1/1, pool 1 (worker): /out/1/003 is not there" in told.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--only", "namenode"], 1, "namenode cannot be done with --on pool: name one of frozen, master, node"),
        (["--only", "job"], 1, "job cannot be done with --on pool"),
        (["--part", "11/10"], 2, "'11/10' is not a part"),
        (["--faults", "0"], 2, "0 is not in the range"),
        (["--pictures", "9"], 2, "9 is not in the range"),
    ],
)
def test_what_cannot_be_done_is_refused(words: list[str], code: int, said: str) -> None:
    refused = CliRunner().invoke(main, ["--on", "pool", *words])

    assert refused.exit_code == code
    assert said in refused.output


@pytest.mark.parametrize(
    ("words", "pictures", "hit"),
    [
        (["--on", "pool", "--quick"], 400, KINDS),
        (["--on", "pool", "--quick", "--faults", "2", "--pictures", "50"], 50, KINDS[:2]),
        (["--on", "pool", "--faults", "3"], 600, KINDS[:3]),
        (["--on", "ha", "--quick", "--only", "node"], 400, ["node"] * 5),
        (["--on", "local", "--faults", "1", "--only", "job"], 2000, ["job"]),
    ],
)
def test_a_quick_run_has_few_faults_and_keeps_nothing(
    words: list[str], pictures: int, hit: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on, made = words[1], []

    @contextmanager
    def place(_home: Path | None, count: int) -> Iterator[Any]:
        made.append(count)
        yield SimpleNamespace(volumes=[], folder=tmp_path)

    def run(_place: object, number: int, kinds: list[str], _: object, images: int, make: object) -> Outcome:
        assert (images, make) == (pictures, ThreeJobs if on == "pool" else trials.OneJob)
        return Outcome(number, kinds, seconds=9.0)

    monkeypatch.setitem(PLACES, on, place)
    monkeypatch.setattr("bench.faults.trials.run", run)
    monkeypatch.setattr("bench.faults.__main__.RESULTS", tmp_path / "results")

    told = CliRunner().invoke(main, [*words, "--json"])

    assert told.exit_code == 0, told.output
    assert made == [pictures]
    said = json.loads(told.stdout)
    assert sorted(kind for one in said["trials"] for kind in one["faults"]) == hit
    assert (tmp_path / "results").exists() is ("--quick" not in words)
