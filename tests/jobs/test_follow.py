"""Following a job: bars and lines say what the application master said, whatever goes away on the way."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import pytest
from rich.console import Console

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.pages import Limits
from jobs.application import following
from jobs.application.following import ASK_SECONDS, PATIENCE_SECONDS, Sight, Watch, ask, follow
from jobs.application.status import JobStatus
from jobs.commands.job.attend import INTERRUPTED, attend, watch
from jobs.commands.job.bars import Bars, Lines, duration, line, new_lines, snapshot
from jobs.errors import JobError
from tests.jobs.following import JOB, NODES, RUNNING, STATUS, SUCCEEDED, WAITING, Master, Script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    """On a busy machine it may be longer about its answer than those who look at jobs wait."""
    monkeypatch.setattr(following, "ASK_LIMITS", Limits(connect=60, silence=60, seconds=60))
    made = Master(STATUS)
    yield made
    made.close()


def at(master: Master) -> Application:
    """The running application, where this master answers."""
    return replace(RUNNING, port=master.port)


def terminal(width: int = 110) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", no_color=False, width=width)


def drawn(sight: Sight, width: int = 110) -> list[str]:
    """The lines of the picture."""
    console = Console(width=width, file=io.StringIO(), markup=False, highlight=False)
    bars = Bars(console)
    bars.show(sight)
    console.print(bars.render())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_application_master_is_asked_where_yarn_says_it_is(master: Master) -> None:
    assert ask(at(master)) == STATUS
    assert master.asked == ["/status"]


@pytest.mark.parametrize("body", [None, b"", b"no json", b"[]", b"{}", b'{"nodes": [{}], "news": []}'])
def test_an_answer_without_sense_is_no_answer(master: Master, body: bytes | None) -> None:
    master.body = body

    assert ask(at(master)) is None


def test_nobody_is_asked_before_or_after_there_is_an_application_master(master: Master) -> None:
    port = master.port

    assert ask(WAITING) is None
    assert ask(replace(WAITING, port=port)) is None
    assert ask(replace(SUCCEEDED, port=port)) is None
    assert master.asked == []


def test_a_master_that_is_gone_costs_little_time() -> None:
    gone = Master(STATUS)
    gone.close()

    def seconds() -> float:
        started = time.monotonic()
        assert ask(at(gone)) is None
        return time.monotonic() - started

    assert min(seconds() for _ in range(3)) < ASK_SECONDS + 1


def test_each_node_has_a_bar_with_its_pictures_rate_locality_and_state() -> None:
    head, total, first, second = drawn(Sight(RUNNING, STATUS))

    assert head == f"{JOB} works"
    assert total.split()[0] == "all"
    assert " ".join(total.rpartition("\u2501")[2].split()) == "70 of 200 20.0/s 91 % local 6 s left, 2 with an error"
    assert first.split()[0] == "worker1"
    assert all(word in first for word in ("60 of 100", "20.0/s", "90 % local", "working, 8 in work"))
    assert all(word in second for word in ("10 of 100", "lost: lost node, 2 with an error, failed 3 times"))


def share_drawn(row: str) -> float:
    """How much of a bar has the colour of what is done, which is the first one in it; the rest is grey."""
    runs = re.findall("\x1b\\[([0-9;]+)m([\u2501\u2578\u257a]+)", row)
    done = sum(len(text) for colour, text in runs if colour != "38;5;237")
    return done / sum(len(text) for _, text in runs)


def test_a_bar_is_as_long_as_what_is_done_and_full_for_a_node_that_does_more_than_planned() -> None:
    thief = replace(NODES[0], done=130)
    console = terminal()
    bars = Bars(console)
    bars.show(Sight(RUNNING, replace(STATUS, nodes=(thief, NODES[1]))))
    with console.capture() as printed:
        console.print(bars.view())
    rows = printed.get().splitlines()

    assert [share_drawn(row) for row in rows] == pytest.approx([70 / 200, 1.0, 10 / 100], abs=0.05)
    assert "130 of 100" in rows[1]


def test_a_narrow_terminal_cuts_what_is_said_and_breaks_no_line() -> None:
    said = replace(NODES[1], said="a very long story about a disk " * 10)

    assert len(drawn(Sight(RUNNING, replace(STATUS, nodes=(NODES[0], said))), width=80)) == 4


def test_before_the_application_master_is_there_the_picture_says_what_is_waited_for() -> None:
    assert drawn(Sight(WAITING))[0] == f"{JOB} waits for YARN to start its application master"
    assert drawn(Sight(RUNNING))[0] == f"{JOB} its application master starts"


def test_while_another_attempt_is_awaited_the_last_picture_stays(master: Master) -> None:
    now = [0.0]
    watching = Watch(clock=lambda: now[0])
    watching.look(at(master))
    master.body = None
    now[0] = 4.0

    silent = watching.look(at(master))
    restarting = watching.look(replace(WAITING, attempt=2))

    assert silent.status == restarting.status == STATUS
    assert "has not answered for 4 s, this is what it said last" in drawn(silent)[0]
    assert drawn(restarting)[0] == f"{JOB} waits for YARN to start its application master again, attempt 2"
    assert any("60 of 100" in row for row in drawn(restarting))


def test_one_slow_answer_is_no_news(master: Master) -> None:
    now = [0.0]
    watching = Watch(clock=lambda: now[0])
    watching.look(at(master))
    master.body = None
    now[0] = 1.0

    assert watching.look(at(master)).headline() == "works"


def test_in_the_end_one_full_bar_is_left() -> None:
    bars = Bars(terminal())
    bars.show(Sight(RUNNING, STATUS))
    bars.show(Sight(SUCCEEDED, STATUS))
    console = Console(width=100, file=io.StringIO())
    console.print(bars.render())
    assert isinstance(console.file, io.StringIO)

    head, total = console.file.getvalue().splitlines()

    assert head == f"{JOB} succeeded"
    assert "200 of 200" in total


def said(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_without_a_terminal_there_is_a_line_when_something_changes_and_every_few_seconds() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    lines = Lines(console, lambda: now[0])
    for second, sight in (
        (0, Sight(WAITING)),
        (1, Sight(WAITING)),
        (2, Sight(RUNNING, STATUS)),
        (6, Sight(RUNNING, STATUS)),
        (7, Sight(RUNNING, STATUS)),
        (8, Sight(SUCCEEDED, STATUS)),
    ):
        now[0] = second
        lines.show(sight)

    working = f"{JOB} works; 70 of 200; 20.0/s; 6 s left, 2 with an error; 1 working, 1 lost"
    waits = f"{JOB} waits for YARN to start its application master"
    nodes = ["worker1 60 of 100; 20.0/s; 90 % local; working, 8 in work"]
    nodes += ["worker2 10 of 100; 5.0/s; 100 % local; lost: lost node, 2 with an error, failed 3 times"]
    assert said(console) == [waits, working, *nodes, working, f"{JOB} succeeded"]


def test_without_a_terminal_a_node_has_a_line_again_when_there_is_more_to_say_of_it() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    lines = Lines(console, lambda: now[0])
    lines.show(Sight(RUNNING, STATUS))
    now[0] = 6
    lines.show(Sight(RUNNING, replace(STATUS, nodes=(replace(NODES[0], done=80), NODES[1]))))

    assert [text.split(";")[0] for text in said(console) if text.startswith("worker")] == [
        *("worker1 60 of 100", "worker2 10 of 100", "worker1 80 of 100"),
    ]


def test_news_are_printed_once(master: Master) -> None:
    for view in (Lines(Console(file=io.StringIO())), Bars(Console(file=io.StringIO()))):
        for news in (("worker1 was lost",), ("worker1 was lost", "worker1 is back")):
            view.show(Sight(RUNNING, replace(STATUS, news=news)))
        text = "\n".join(said(view._console))
        assert text.count("worker1 was lost") == text.count("worker1 is back") == 1


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ((), ("a",), ("a",)),
        (("a",), ("a",), ()),
        (("a", "b"), ("b", "c", "d"), ("c", "d")),
        (("a",), ("a", "a"), ("a",)),
        (("a", "b"), ("c",), ("c",)),
        (("a",), (), ()),
    ],
)
def test_what_is_new_in_a_list_that_moves_on(before: Sequence[str], now: Sequence[str], new: Sequence[str]) -> None:
    assert new_lines(before, now) == new


def test_a_duration_is_never_sixty_seconds() -> None:
    assert [duration(seconds) for seconds in (0, 59.4, 59.6, 60, 3599.9)] == [
        *("0 s", "59 s", "1 min 0 s", "1 min 0 s", "1 h 0 min"),
    ]


def test_a_node_without_a_part_and_a_job_without_pictures_are_drawn() -> None:
    idle = replace(NODES[0], planned=0, done=0, local=0, rate=0.0, state="waiting")
    empty = JobStatus(JOB, "planning", 1, 0, 0, 0, 0.0, None, (idle,))

    assert "0 of 0" in drawn(Sight(RUNNING, empty))[2]
    assert line(Sight(RUNNING, empty)) == f"{JOB} plans"


def test_a_snapshot_has_the_bars_only_when_the_master_answers() -> None:
    console = Console(width=100, file=io.StringIO())
    console.print(snapshot(Sight(RUNNING), "RUNNING UNDEFINED 0%"))
    assert said(console) == ["RUNNING UNDEFINED 0%"]
    console.print(snapshot(Sight(RUNNING, STATUS), "RUNNING UNDEFINED 35%"))
    assert len(said(console)) == 5


class Seen:
    """A view that keeps what it was shown."""

    def __init__(self) -> None:
        self.sights: list[Sight] = []
        self.open = 0

    def begin(self) -> None:
        self.open += 1

    def show(self, sight: Sight) -> None:
        self.sights.append(sight)

    def end(self) -> None:
        self.open -= 1


def test_a_resourcemanager_that_restarts_is_waited_for(master: Master) -> None:
    seen = Seen()
    told = Script(at(master), HadoopError("connection refused"), at(master), SUCCEEDED)

    assert follow(told, JOB, seen, pause=lambda seconds: None) == SUCCEEDED
    assert [sight.trouble for sight in seen.sights] == ["", "YARN does not answer (connection refused)", "", ""]
    assert all(sight.status == STATUS for sight in seen.sights), "the application master answers all the time"
    assert seen.open == 0


def test_a_job_that_yarn_never_knew_is_not_waited_for() -> None:
    with pytest.raises(HadoopError, match="no such application"):
        follow(Script(HadoopError("no such application")), JOB, Seen(), pause=lambda seconds: None)


def test_a_resourcemanager_that_stays_away_is_given_up() -> None:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += PATIENCE_SECONDS / 2

    told = Script(WAITING, *[HadoopError("away") for _ in range(10)])
    seen = Seen()
    with pytest.raises(HadoopError, match="away"):
        follow(told, JOB, seen, clock=lambda: now[0], pause=pause)
    assert len(seen.sights) == 4
    assert seen.open == 0


def test_a_job_that_failed_is_an_error_and_the_terminal_is_given_back() -> None:
    seen = Seen()
    with pytest.raises(JobError, match="no node"):
        follow(Script(RUNNING, JobError("no node")), JOB, seen)
    assert seen.open == 0


def test_whoever_cannot_be_asked_leaves_the_job_running_and_hears_how_to_return() -> None:
    console = Console(file=io.StringIO(), width=200)
    for leave in (attend, watch):
        killed: list[str] = []
        with pytest.raises(click.exceptions.Exit) as left:
            leave(Script(WAITING, KeyboardInterrupt(), killed=killed.append), JOB, console)
        assert left.value.exit_code == INTERRUPTED
        assert killed == []
    assert f"nodewise job status {JOB} --watch" in "\n".join(said(console))
    assert f"nodewise job kill {JOB}" in "\n".join(said(console))


class Terminal:
    """A real terminal with a program on it that attends an endless job."""

    def __init__(self, note: Path) -> None:
        self._ours, theirs = pty.openpty()
        self.text = ""
        self.note = note
        command = [sys.executable, "-m", "tests.jobs.following", JOB, str(note)]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, cwd=ROOT, env=environment
        )
        os.close(theirs)

    def until(self, words: str, seconds: float = 120, keys: str = "") -> None:
        """Read until `words` appear after what was read before, and press `keys` every now and then.

        Ctrl-C that comes after a question is printed and before its answer is read is seen by Python at the next key,
        and in the callback of a weak reference it is lost. One more means something else once the first was heard, so
        the program has plenty of time for that.
        """
        fresh, deadline, pressed = "", time.monotonic() + seconds, time.monotonic()
        while words not in fresh:
            if keys and time.monotonic() > pressed + 15:
                self.type(keys)
                pressed = time.monotonic()
            assert time.monotonic() < deadline, f"{words!r} did not come: {self.text[-2000:]}"
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    fresh += os.read(self._ours, 4096).decode(errors="replace")
                except OSError:  # the program has ended
                    break
        self.text += fresh
        assert words in fresh, self.text[-2000:]

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def ended(self) -> int:
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path / "killed")
    try:
        made.until("worker1")
        yield made
    finally:
        made.close()


QUESTION = "[c]ontinue"


def test_ctrl_c_asks_and_kill_kills(screen: Terminal) -> None:
    screen.type("\x03")
    screen.until(QUESTION, keys="\x03")
    screen.type("k\n")
    screen.until(f"{JOB} killed")

    assert screen.ended() == INTERRUPTED
    assert screen.note.read_text().strip() == JOB


def test_ctrl_c_asks_and_detach_leaves_the_job_alone(screen: Terminal) -> None:
    screen.type("\x03")
    screen.until(QUESTION, keys="\x03")
    screen.type("d\n")
    screen.until("goes on")

    assert screen.ended() == INTERRUPTED
    assert not screen.note.exists()


def test_ctrl_c_by_mistake_goes_on_and_ctrl_c_twice_detaches(screen: Terminal) -> None:
    screen.type("\x03")
    screen.until(QUESTION, keys="\x03")
    screen.type("\n")
    screen.until("worker1")
    screen.type("\x03")
    screen.until(QUESTION, keys="\x03")
    screen.type("\x03")
    screen.until("goes on", keys="\x03")

    assert screen.ended() == INTERRUPTED
    assert not screen.note.exists()
