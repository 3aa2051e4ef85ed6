"""What is left of slots and of logs, and is cleared away: real processes and a clock of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.agent.daemon import LOG_LIMIT, cut_log
from collectors.agent.tidy import TIDY_SECONDS, Tidy

Wait = Callable[[Callable[[], Any]], Any]
Stray = Callable[[str], "subprocess.Popen[bytes]"]


class Kept:
    """A state directory with the folders of slots, and what its tidy was told to keep."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.logs: list[Collection[str]] = []
        self.minutes = 0
        self.tidy = Tidy(state, self.logs.append, self.count)

    def count(self) -> None:
        self.minutes += 1

    def step(self, now: float, wanted: Collection[str] | None, busy: Collection[str]) -> None:
        self.tidy.step(now, wanted, lambda: busy)

    def folders(self) -> set[str]:
        return {path.name for path in self.state.iterdir()}


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    for name in ("a", "b", ".spool"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "sample").write_text("1")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("/tmp")
    return Kept(tmp_path)


@pytest.fixture
def stray(kept: Kept) -> Iterator[Stray]:
    """stray(NAME): a process that has left its group and outlives the run of a slot."""
    made = []

    def start(name: str) -> subprocess.Popen[bytes]:
        environment = {"PATH": os.environ["PATH"], "STATE_DIR": str(kept.state / name)}
        made.append(subprocess.Popen(["sleep", "300"], env=environment, start_new_session=True))
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()


def test_what_outlived_its_run_is_killed_within_a_minute_and_runs_are_let_alone(
    kept: Kept, stray: Stray, wait_for: Wait
) -> None:
    kept.step(0.0, {"a", "b"}, set())
    left, run, foreign = stray("a"), stray("b"), stray("../elsewhere")
    kept.step(TIDY_SECONDS - 1, {"a", "b"}, {"b"})
    assert left.poll() is None
    kept.step(TIDY_SECONDS, {"a", "b"}, {"b"})

    wait_for(lambda: left.poll() is not None)
    assert (run.poll(), foreign.poll(), kept.minutes) == (None, None, 2)


def test_of_a_slot_that_left_the_wanted_state_nothing_stays(kept: Kept, stray: Stray, wait_for: Wait) -> None:
    kept.step(0.0, None, set())
    kept.step(TIDY_SECONDS, None, set())
    assert kept.logs == []
    left = stray("a")
    kept.step(TIDY_SECONDS + 1, {"a", "b"}, {"a"})
    kept.step(TIDY_SECONDS + 2, {"b"}, {"a"})
    assert {"a", "b"} < kept.folders()  # its run is not gone yet
    kept.step(TIDY_SECONDS + 3, {"b"}, {"b"})

    assert kept.folders() == {"b", ".spool", "file", "link"}
    assert kept.logs[-1] == {"b"}
    wait_for(lambda: left.poll() is not None)


def test_while_nothing_changes_nothing_is_looked_for(kept: Kept) -> None:
    for second in range(10):
        kept.step(float(second), frozenset({"a", "b"}), {"a"} if second % 2 else set())

    assert len(kept.logs) == 1


def test_of_a_log_that_has_become_long_the_end_is_kept_and_writing_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    with file.open("ab", buffering=0) as log:
        for number in range(LOG_LIMIT // 8 + 1):
            log.write(f"{number:07}\n".encode())
        cut_log(file)
        log.write(b"after\n")

    lines = file.read_text().splitlines()
    assert len(lines) < 10_000
    assert [len(line) for line in lines[:-1]] == [7] * (len(lines) - 1)
    assert lines[-2:] == [f"{LOG_LIMIT // 8:07}", "after"]
    cut_log(file)
    assert file.read_text().splitlines() == lines
    cut_log(tmp_path / "none")
