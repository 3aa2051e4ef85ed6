"""Agents that somebody else starts, and starts again whenever they end: here a shell, in place of systemd."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served
    from tests.infosvc.shipping.conftest import Hand

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Eventually = Callable[[Callable[[], bool]], None]

HOST = "127.0.77.11"
SUPERVISOR = """
trap 'kill $!; wait; exit' TERM
while :; do
  /usr/bin/python3 -I -S "$0/current/agent.pyz" --settings "$0/settings.json" &
  wait; sleep 0.3
done
"""


@pytest.fixture
def base(agents: Path) -> Path:
    """The directory of a machine whose operator says that there is a supervisor."""
    made = agents / HOST
    made.mkdir(parents=True)
    (made / "supervised").touch()
    return made


@contextmanager
def supervising(base: Path) -> Iterator[int]:
    """A supervisor of the agent in this directory, by its process id."""
    with subprocess.Popen(["/bin/bash", "-c", SUPERVISOR, str(base)], stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def pid_of(base: Path) -> int:
    return int((base / "agent.pid").read_text())


def is_another(base: Path, before: int) -> bool:
    """Whether an agent after that one runs: an agent takes its file away when it ends, and writes it when it starts."""
    try:
        return pid_of(base) != before
    except (FileNotFoundError, ValueError):
        return False


def runs_another(supervisor: int, base: Path, before: int) -> bool:
    """Whether what the supervisor runs there is another agent; one that ends meanwhile is none."""
    try:
        return is_another(base, before) and parent_of(pid_of(base)) == supervisor
    except (OSError, ValueError):
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_supervisor_that_has_nothing_to_start_yet_starts_what_is_added(
    hand: Hand, served: Served, base: Path
) -> None:
    with supervising(base) as supervisor:
        done = hand.add(HOST, "--no-start")

        assert done.exit_code == 0, done.output
        assert parent_of(pid_of(base)) == supervisor
        assert not (base / "agent.log").exists()


def test_a_push_and_a_new_enrolment_leave_the_start_to_the_supervisor(
    hand: Hand, served: Served, base: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "scripts"
    own.mkdir(parents=True)
    (own / "answer.sh").write_text("echo 42\n")
    with supervising(base) as supervisor:
        assert hand.add(HOST, "--no-start").exit_code == 0
        pids = [pid_of(base)]
        for command, *words in ((hand.push, "--files", str(own.parent)), (hand.add, "--no-start")):
            done = command(HOST, *words)
            assert done.exit_code == 0, done.output
            pids.append(pid_of(base))

        assert len(set(pids)) == 3
        assert parent_of(pids[-1]) == supervisor


def test_without_its_supervisor_nothing_is_started_and_all_is_taken_back(
    hand: Hand, served: Served, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infosvc.shipping.remote.HEALTH_SECONDS", 0.5)

    done = hand.add(HOST, "--no-start")

    assert done.exit_code == 1
    assert "see there whether the supervisor" in done.stderr
    assert not (base / "agent.pid").exists()
    assert not (base / "current").exists()
    assert served.reader.nodes() == []


def test_what_does_not_get_well_is_taken_back_and_the_supervisor_runs_what_was_before(
    hand: Hand, served: Served, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    own = tmp_path / "own" / "scripts"
    own.mkdir(parents=True)
    (own / "answer.sh").write_text("echo 42\n")
    with supervising(base) as supervisor:
        assert hand.add(HOST, "--no-start").exit_code == 0
        before, release = pid_of(base), (base / "current").resolve()
        monkeypatch.setattr("infosvc.shipping.remote.HEALTH_SECONDS", 0.0)

        assert hand.push(HOST, "--files", str(own.parent)).exit_code == 1

        assert (base / "current").resolve() == release
        eventually(lambda: runs_another(supervisor, base, before))
        eventually(lambda: served.reader.nodes()[0].state == "ready")


def test_a_supervisor_takes_over_from_an_agent_that_runs_already(
    hand: Hand, served: Served, base: Path, eventually: Eventually
) -> None:
    (base / "supervised").unlink()
    assert hand.add(HOST, "--no-start").exit_code == 0
    detached = pid_of(base)
    (base / "supervised").touch()

    with supervising(base) as supervisor:
        eventually(lambda: runs_another(supervisor, base, detached))
        eventually(lambda: not Path(f"/proc/{detached}").exists())


def test_a_ready_agent_that_is_as_it_is_to_be_is_left_alone(
    hand: Hand, served: Served, base: Path, eventually: Eventually
) -> None:
    def added(*words: str) -> bool:
        done = hand.add(HOST, "--unchanged", "--json", *words)
        assert done.exit_code == 0, done.output
        changed: bool = json.loads(done.stdout)[HOST]["changed"]
        return changed

    with supervising(base):
        assert added("--no-start")
        eventually(lambda: served.reader.nodes()[0].state == "ready")
        pid, token = pid_of(base), (base / "token").read_bytes()

        assert not added("--no-start")
        assert (pid_of(base), (base / "token").read_bytes()) == (pid, token)
        os.kill(pid, 0)
        assert added()  # slots
        assert not added()
        assert (pid_of(base), (base / "token").read_bytes()) == (pid, token)
        assert added("--allow", "/opt/tools")
        assert pid_of(base) != pid
