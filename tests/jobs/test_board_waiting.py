"""What the board keeps for a moment, and how it has jobs ended while pages wait."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hadoop.errors import HadoopError
from infosvc.errors import NotReady
from jobs.board.briefly import Briefly
from jobs.board.ending import Ending, Endings
from jobs.board.site import Place
from tests.jobs.played import JOB


def test_an_answer_is_asked_for_once_and_kept_for_its_time() -> None:
    now = [0.0]
    briefly = Briefly(lambda: now[0])
    asked: list[float] = []

    def ask() -> int:
        asked.append(now[0])
        return len(asked)

    assert [briefly.get("a", 2, ask), briefly.get("a", 2, ask), briefly.get("b", 2, ask)] == [1, 1, 2]
    now[0] = 2.5
    assert briefly.get("a", 2, ask) == 3


def test_a_failure_is_kept_too() -> None:
    briefly = Briefly(lambda: 0.0)
    asked: list[int] = []

    def ask() -> None:
        asked.append(1)
        raise HadoopError("away")

    for _ in range(3):
        with pytest.raises(HadoopError, match="away"):
            briefly.get("a", 2, ask)
    assert asked == [1]


def test_while_one_asks_again_others_get_the_answer_before() -> None:
    now = [0.0]
    briefly = Briefly(lambda: now[0])
    briefly.get("a", 2, lambda: "old")
    now[0] = 3.0
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(10)
        return "new"

    asking = threading.Thread(target=briefly.get, args=("a", 2, slow))
    asking.start()
    assert begun.wait(10)
    assert briefly.get("a", 2, lambda: "never") == "old"
    go_on.set()
    asking.join(10)
    assert briefly.get("a", 2, lambda: "never") == "new"


def test_what_becomes_of_ending_a_job_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path, "", "", "me")
    endings = Endings(tmp_path, ("sh", "-c", "echo Error: it would not end >&2; exit 1"))

    endings.begin(place, JOB)
    for thread in threading.enumerate():
        if thread.name == "board-ending":
            thread.join(10)

    assert endings.of(JOB) == {"state": "failed", "said": "it would not end"}


def test_not_too_many_jobs_are_ended_at_once(tmp_path: Path) -> None:
    endings = Endings(tmp_path, ("sleep", "0.5", "#"))
    monitored = Place(tmp_path, "", "", "me")
    endings._note("a", Ending("asked"))
    endings._note("b", Ending("asked"))

    with pytest.raises(NotReady, match="a and b"):
        endings.begin(monitored, JOB)
