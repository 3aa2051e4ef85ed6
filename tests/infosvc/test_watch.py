"""--watch and --follow, run as people run them: on a terminal, and into a pipe, against a running service."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest

from infosvc.wire.records import Outcome, Producer, Report, Run
from tests.infosvc.conftest import TOKEN, Served, Serving
from tests.infosvc.terminal import LEAVE_SCREEN, NODEWISE, SHOW_CURSOR, STYLE, Terminal, settings
from tests.ports import free_port

WATCH = ("--watch", "0.1")
Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def served(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service with a node that runs one producer."""
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("rack", "x", 2.0, ttl=600.0))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_slot("n1", "rack", True)
        service.client.report("n1", Report("b", 1, "1.0", (Run("rack", Outcome.OK, 0.1, "r7"),)))
        yield service


@pytest.fixture
def terminal(stack: ExitStack) -> Callable[..., Terminal]:
    """terminal(URL, *WORDS, lines=20): one on which these words of `nodewise` run."""

    def start(url: str, *words: str, **size: int) -> Terminal:
        made = Terminal(url, *words, **size)
        stack.callback(made.close)
        return made

    return start


@pytest.fixture
def started(stack: ExitStack, tmp_path: Path) -> Started:
    """started(URL, *WORDS): these words of `nodewise`, printing into pipes."""
    token = tmp_path / "token"
    token.write_text(TOKEN)

    def start(url: str, *words: str) -> subprocess.Popen[str]:
        environment = settings(url) | {"NODEWISE_TOKEN_FILE": str(token)}
        process = subprocess.Popen(
            [*NODEWISE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        stack.callback(_end, process)
        return process

    return start


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def _lines(stream: IO[str] | None, fits: Callable[[str], bool]) -> list[str]:
    """The lines of a pipe up to the first one that fits; the test's own time limit is the deadline."""
    assert stream is not None
    read: list[str] = []
    for line in stream:
        read.append(line.rstrip("\n"))
        if fits(line):
            return read
    pytest.fail(f"it ended before that: {read[-5:]}")


def _interrupted(process: subprocess.Popen[str]) -> int:
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=120)
    return process.returncode


@pytest.mark.parametrize(
    ("words", "before"),
    [
        (("slot", "list"), "rack"),
        (("node", "list"), "n1"),
        (("data", "get", "rack"), "r7"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_on_a_terminal_each_look_takes_the_place_of_the_one_before(
    terminal: Callable[..., Terminal], served: Served, words: tuple[str, ...], before: str
) -> None:
    shown = terminal(served.url, *words, *WATCH)
    first = STYLE.sub("", shown.until(lambda drawing: before in drawing and "n2" not in drawing))
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", first)
    served.client.put_node("n2", "127.0.0.1:9")
    served.client.put_slot("n2", "rack", True)
    served.client.report("n2", Report("b", 1, "1.0", (Run("rack", Outcome.OK, 0.1, "r8"),)))
    second = shown.until(lambda drawing: "n2" in drawing)
    assert second.count("n2") == 1
    shown.type("\x03")

    assert shown.ended() == 0
    assert shown.left_as_it_was()
    assert "Aborted" not in shown.text and "Traceback" not in shown.text


def test_as_many_lines_are_shown_as_the_terminal_has(terminal: Callable[..., Terminal], served: Served) -> None:
    for number in range(30):
        served.client.put_node(f"many{number:02}", "127.0.0.1:9")
    shown = terminal(served.url, "node", "list", *WATCH, lines=10)
    few = shown.until(lambda drawing: "24 more:" in drawing)

    assert re.findall(r"many\d\d", few) == [f"many{number:02}" for number in range(7)]
    assert few.count("\n") == 9


def test_while_the_service_is_away_the_last_look_stays(
    terminal: Callable[..., Terminal], serve: Serving, sqlite_url: str
) -> None:
    port = free_port()
    with serve(sqlite_url, port=port) as service:
        service.client.put_node("n1", "127.0.0.1:9")
        shown = terminal(service.url, "node", "list", *WATCH)
        assert "nothing came" not in shown.until(lambda drawing: "n1" in drawing)
    away = STYLE.sub("", shown.until(lambda drawing: "nothing came since" in drawing))
    assert re.search(r"nothing came since .*: the information service at ", away)
    assert "n1" in away
    with serve(sqlite_url, port=port) as service:
        service.client.put_node("n2", "127.0.0.1:9")
        assert "nothing came" not in shown.until(lambda drawing: "n2" in drawing)


def test_what_does_not_pass_ends_it_in_one_sentence(terminal: Callable[..., Terminal], served: Served) -> None:
    shown = terminal(served.url, "data", "get", "rack", *WATCH)
    shown.until(lambda drawing: "r7" in drawing)
    served.client.delete_producer("rack")

    assert shown.ended() == 1
    assert shown.left_as_it_was()
    told = shown.text.rpartition(LEAVE_SCREEN)[2].removeprefix(SHOW_CURSOR)
    assert told.startswith("Error: no producer is registered under 'rack'")


def test_sigterm_leaves_the_terminal_as_it_was(terminal: Callable[..., Terminal], served: Served) -> None:
    shown = terminal(served.url, "node", "list", *WATCH)
    shown.until(lambda drawing: "n1" in drawing)
    shown.process.send_signal(signal.SIGTERM)

    assert shown.ended() == 128 + signal.SIGTERM
    assert shown.left_as_it_was()


def test_a_service_that_is_not_there_is_refused_at_once(terminal: Callable[..., Terminal]) -> None:
    shown = terminal(f"http://127.0.0.1:{free_port()}", "node", "list", *WATCH)

    assert shown.ended() == 1
    assert shown.text.startswith("Error: the information service at ") and len(shown.text.splitlines()) <= 3


def test_into_a_pipe_each_look_is_added_under_its_time(started: Started, served: Served) -> None:
    watching = started(served.url, "node", "list", *WATCH)
    first = _lines(watching.stdout, lambda line: line.startswith("n1 "))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", first[0]) and first[1].split()[0] == "node"
    served.client.put_node("n2", "127.0.0.1:9")
    rest = _lines(watching.stdout, lambda line: line.startswith("n2 "))

    assert any(line.startswith("n1 ") for line in rest)
    assert "\x1b" not in "".join([*first, *rest])
    assert _interrupted(watching) == 0


def test_with_json_each_look_is_one_more_document(started: Started, served: Served) -> None:
    watching = started(served.url, "node", "list", "--json", *WATCH)
    for _ in range(2):
        document = "\n".join(_lines(watching.stdout, lambda line: line == "]\n"))
        assert [node["node_name"] for node in json.loads(document)] == ["n1"]

    assert _interrupted(watching) == 0


@pytest.mark.parametrize("seconds", ["0", "2h", "often"])
def test_too_often_and_too_seldom_are_refused(started: Started, served: Served, seconds: str) -> None:
    said, complaint = started(served.url, "node", "list", "--watch", seconds).communicate(timeout=120)

    assert said == ""
    assert "--watch" in complaint


def test_the_audit_log_is_followed_as_it_grows(started: Started, served: Served) -> None:
    following = started(served.url, "audit", "list", "--follow")
    _lines(following.stdout, lambda line: "PUT /api/v1/nodes/n1/slots/rack" in line)
    served.client.put_node("n2", "127.0.0.1:9")
    rest = _lines(following.stdout, lambda line: "PUT /api/v1/nodes/n2" in line)

    assert re.match(r"\d+  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  first admin  127\.0\.0\.1  PUT ", rest[-1])
    assert _interrupted(following) == 0


def test_following_starts_after_a_number_and_ends_after_so_many(started: Started, served: Served) -> None:
    newest = served.client.audit()[-1].sequence
    following = started(served.url, "audit", "list", "-f", "--since", str(newest), "--limit", "2", "--json")
    served.client.put_node("n2", "127.0.0.1:9")
    first = _lines(following.stdout, lambda line: True)
    served.client.put_node("n3", "127.0.0.1:9")
    said, complaint = following.communicate(timeout=120)

    found = [json.loads(line) for line in (*first, *said.splitlines())]
    assert [(entry["sequence"], entry["call"]) for entry in found] == [
        (newest + 1, "PUT /api/v1/nodes/n2"),
        (newest + 2, "PUT /api/v1/nodes/n3"),
    ]
    assert (following.returncode, complaint) == (0, "")


def test_following_outlives_a_service_that_is_away_for_a_while(
    started: Started, serve: Serving, sqlite_url: str, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    port = free_port()
    with serve(sqlite_url, port=port) as service:
        service.client.put_node("n1", "127.0.0.1:9")
        following = started(service.url, "audit", "list", "--follow")
        _lines(following.stdout, lambda line: "nodes/n1" in line)
        looks = re.compile(r'nodewise_calls_total\{endpoint="/api/v1/audit",method="GET",status="200"\} ([3-9])')
        eventually(lambda: bool(looks.search(service.ask("GET", "/metrics").text)))  # two are the first look
    away = _lines(following.stderr, lambda line: "nothing comes for now" in line)
    with serve(sqlite_url, port=port) as service:
        service.client.put_node("n2", "127.0.0.1:9")
        rest = _lines(following.stdout, lambda line: "nodes/n2" in line)

    assert (len(away), len(rest)) == (1, 1)
    assert _interrupted(following) == 0
