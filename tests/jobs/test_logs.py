"""Logs of all containers in one stream, from NodeManagers that are played over real HTTP, frames and sizes included."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hadoop.client.collected_logs import CollectedLog
from hadoop.errors import HadoopError
from hadoop.rest.container_logs import OVERLAP_BYTES, Piece, parse_tail, read_since
from jobs.application.following import PATIENCE_SECONDS
from jobs.application.logs import AWAY_SECONDS, NOTE, STREAMS, JobLogs, Line, follow, parse_started, printed_lines
from jobs.application.status import ContainerStatus
from tests.ports import free_port

JOB = "application_17_0001"
MASTER = "container_17_0001_01_000001"
SECOND_MASTER = "container_17_0001_02_000001"
WORKER = "container_17_0001_01_000002"


def log_line(container_id: str, address: str) -> str:
    """How application masters told of their workers before they listed them."""
    return f"started {container_id} at {address}"


class Daemon:
    """A NodeManager with logs, (container, stream) -> bytes, and a ResourceManager that knows one job."""

    def __init__(self) -> None:
        self.logs: dict[tuple[str, str], bytes] = {}
        self.masters: list[tuple[str, str]] = []
        self.state = "RUNNING"
        self.job = JOB
        self.sent = 0
        self._serve(free_port())  # which no connection takes while it is away

    def _serve(self, port: int) -> None:
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                where = urlsplit(self.path)
                answer = daemon.answer(where.path.split("/")[3:], parse_qs(where.query))
                self.send_response(404 if answer is None else 200)
                self.end_headers()
                self.wfile.write(answer or b"Cannot find this log on the local disk.")

            def log_message(self, format: str, *args: object) -> None:
                """Tests need no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def back(self) -> None:
        self._serve(int(self.address.rpartition(":")[2]))

    def answer(self, words: list[str], query: dict[str, list[str]]) -> bytes | None:
        match words:
            case ["node", "containerlogs", container_id, stream]:
                found = self.logs.get((container_id, stream))
                return None if found is None else self.framed(stream, found, int(query.get("size", [str(2**63)])[0]))
            case ["cluster", "apps", application_id] if application_id == self.job:
                return json.dumps({"app": {"state": self.state, "user": "ava"}}).encode()
            case ["cluster", "apps", application_id, "appattempts"] if application_id == self.job:
                attempts = [{"id": i, "containerId": c, "nodeHttpAddress": a} for i, (c, a) in enumerate(self.masters)]
                return json.dumps({"appAttempts": {"appAttempt": attempts}}).encode()
        return None

    def framed(self, stream: str, content: bytes, size: int) -> bytes:
        """As LogToolUtils of Hadoop 3.5.0 writes it: a negative size means the end, and nothing has no header."""
        part = content[max(0, len(content) + size) :] if size < 0 else content[:size]
        self.sent += len(part)
        tail = f"End of LogType:{stream}.This log file belongs to a running container\n{'*' * 67}\n\n".encode()
        if not part:
            return tail
        head = f"Container: c on n\nLogAggregationType: LOCAL\n====\nLogType:{stream}\n"
        head += f"LogLength:{len(content)}\nLogContents:\n"
        return head.encode() + part + tail

    def write(self, container_id: str, text: str, stream: str = "stdout") -> None:
        self.logs[container_id, stream] = self.logs.get((container_id, stream), b"") + text.encode()

    def found(self, *listed: ContainerStatus) -> JobLogs:
        return JobLogs(f"http://{self.address}", JOB, "me", lambda _: listed)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    made.masters = [(MASTER, made.address)]
    yield made
    made.close()


def test_containers_that_the_application_master_lists_are_read_by_their_role(daemon: Daemon) -> None:
    daemon.write(MASTER, "plan\n")
    daemon.write(WORKER, "hello\n")

    found = list(printed_lines(daemon.found(ContainerStatus("copy", 0, "n", WORKER, daemon.address))))

    assert [(line.role, line.line) for line in found] == [("master", "plan"), ("copy", "hello")]


def test_what_a_runner_prints_leads_to_no_container_of_another_job(daemon: Daemon) -> None:
    strange = WORKER.replace("_0001_", "_0002_")
    daemon.write(MASTER, f"{log_line(strange, daemon.address)}\n")
    daemon.write(strange, "somebody else's secret\n")

    assert [line.container_id for line in printed_lines(daemon.found())] == [MASTER]


def test_what_a_master_prints_is_not_searched_where_it_lists_its_containers(daemon: Daemon) -> None:
    another = WORKER.replace("000002", "000003")
    daemon.write(MASTER, f"{log_line(another, daemon.address)}\n")
    daemon.write(WORKER, "hello\n")
    daemon.write(another, "never listed\n")

    found = list(printed_lines(daemon.found(ContainerStatus("copy", 0, "n", WORKER, daemon.address))))

    assert [line.container_id for line in found] == [MASTER, WORKER]


@pytest.fixture
def other() -> Iterator[Daemon]:
    """Another node."""
    made = Daemon()
    yield made
    made.close()


def told(lines: Iterator[Line | str]) -> list[str]:
    return [str(line) for line in lines]


def test_containers_are_found_in_what_the_application_master_prints() -> None:
    text = f"x\n{log_line(WORKER, '127.0.1.11:8042')}\nstarted nothing\n"

    assert parse_started(text, JOB) == [(WORKER, "127.0.1.11:8042")]


def test_a_finished_job_is_printed_container_by_container(daemon: Daemon, other: Daemon) -> None:
    daemon.write(MASTER, f"plan\n{log_line(WORKER, other.address)}\n")
    other.write(WORKER, "ready\nno end of line")
    other.write(WORKER, "a warning\n", "stderr")

    assert told(printed_lines(daemon.found())) == [
        "127.0.0.1 master | plan",
        f"127.0.0.1 master | started {WORKER} at {other.address}",
        "127.0.0.1 worker | ready",
        "127.0.0.1 worker ! a warning",
        "127.0.0.1 worker | no end of line",
    ]


def test_all_attempts_of_the_application_master_are_printed(daemon: Daemon, other: Daemon) -> None:
    daemon.masters.append((SECOND_MASTER, other.address))
    daemon.write(MASTER, "first\n")
    other.write(SECOND_MASTER, "second\n")

    assert told(printed_lines(daemon.found())) == ["127.0.0.1 master | first", "127.0.0.1 master | second"]


def collected(container_id: str, stream: str, text: str, length: int = 0) -> CollectedLog:
    return CollectedLog(container_id, stream, text.encode(), length or len(text))


class Collection:
    """What YARN has collected, and who was asked for."""

    def __init__(self, *logs: CollectedLog) -> None:
        self.logs = logs
        self.asked: list[tuple[str, Sequence[str]]] = []

    def __call__(self, owner: str, containers: Sequence[str]) -> Iterator[CollectedLog]:
        self.asked.append((owner, containers))
        return (log for log in self.logs if log.container_id in containers)


@pytest.mark.parametrize(("state", "seen"), [("FINISHED", ["copy | hello", "copy ! oh"]), ("RUNNING", [])])
def test_what_yarn_has_collected_stands_for_what_no_node_has_any_more(
    daemon: Daemon, state: str, seen: list[str]
) -> None:
    for stream in STREAMS:
        daemon.write(MASTER, "plan\n" if stream == "stdout" else "", stream)
    daemon.state = state
    given = [(WORKER, "stdout", "hello\n"), (WORKER, "stderr", "oh"), (MASTER, "stdout", "plan\n")]
    collection = Collection(*(collected(*one) for one in given))

    listed = ContainerStatus("copy", 0, "n", WORKER, daemon.address)
    found = told(printed_lines(daemon.found(listed), collection))

    assert found == ["127.0.0.1 master | plan", *(f"127.0.0.1 {line}" for line in seen)]
    assert collection.asked == ([("ava", [WORKER])] if seen else [])


def test_a_stream_that_went_between_two_looks_is_taken_from_where_it_was_read_to(daemon: Daemon) -> None:
    daemon.write(MASTER, "one\ntwo", "stdout")
    daemon.write(MASTER, "", "stderr")
    collection = Collection(collected(MASTER, "stdout", "one\ntwo and\rmore\n"), collected(MASTER, "stderr", "late\n"))

    def end() -> None:
        daemon.state = "FINISHED"
        del daemon.logs[MASTER, "stdout"]

    lines = told(follow(daemon.found(), collection, pause=script(lambda: None, end)))

    assert lines == ["127.0.0.1 master | one", "127.0.0.1 master | two and\rmore"]


def test_what_is_passed_over_of_a_collected_log_is_noted(daemon: Daemon) -> None:
    daemon.state = "FINISHED"

    found = told(printed_lines(daemon.found(), Collection(collected(MASTER, "stdout", "the end\n", 100))))

    assert found == [
        f"127.0.0.1 master - of the stdout of {MASTER}, 92 bytes are passed over",
        "127.0.0.1 master | the end",
    ]


def test_containers_that_printed_nothing_are_not_looked_for_elsewhere(daemon: Daemon) -> None:
    daemon.state = "FINISHED"
    for stream in STREAMS:
        daemon.write(MASTER, "", stream)
    collection = Collection()

    assert told(printed_lines(daemon.found(), collection)) == []
    assert collection.asked == []


def test_logs_that_yarn_has_not_collected_are_noted_and_nothing_to_read_is_an_error(daemon: Daemon) -> None:
    daemon.state = "FINISHED"

    def collect(owner: str, containers: Sequence[str]) -> list[CollectedLog]:
        raise HadoopError("nothing there")

    with pytest.raises(HadoopError, match="no log could be read: nothing there"):
        list(printed_lines(daemon.found(), collect))


def test_a_log_that_looks_like_the_frame_is_printed_as_it_is(daemon: Daemon) -> None:
    text = "LogLength:3\nLogContents:\nEnd of LogType:stdout.\n"
    daemon.write(MASTER, text)

    assert told(printed_lines(daemon.found())) == [f"127.0.0.1 master | {line}" for line in text.splitlines()]
    assert parse_tail(daemon.framed("stdout", text.encode(), -4), 4) == (len(text), text[-4:].encode())


def script(*steps: Callable[[], Any]) -> Callable[[float], None]:
    """What happens in the pauses of the following, one after the other."""
    waiting = iter(steps)

    def pause(seconds: float) -> None:
        next(waiting, lambda: None)()

    return pause


def test_following_prints_what_is_added_until_the_job_ends(daemon: Daemon, other: Daemon) -> None:
    def begin() -> None:
        daemon.masters = [(MASTER, daemon.address)]
        daemon.write(MASTER, "plan\n")

    def start_worker() -> None:
        daemon.write(MASTER, log_line(WORKER, other.address) + "\n")
        other.write(WORKER, "half ")

    def go_on() -> None:
        other.write(WORKER, "a line\n")

    def restart() -> None:
        daemon.masters.append((SECOND_MASTER, other.address))
        other.write(SECOND_MASTER, "again\n")

    def end() -> None:
        daemon.state = "FINISHED"

    def last_words() -> None:
        other.write(SECOND_MASTER, "stored\n")

    daemon.masters = []
    lines = follow(daemon.found(), pause=script(begin, start_worker, go_on, restart, end, last_words))

    assert told(lines) == [
        f"{JOB} has no log yet: no node has started its application master",
        "127.0.0.1 master | plan",
        f"127.0.0.1 master | started {WORKER} at {other.address}",
        "127.0.0.1 worker | half a line",
        "127.0.0.1 master | again",
        "127.0.0.1 master | stored",
    ]


def test_only_what_is_new_is_asked_for(daemon: Daemon) -> None:
    daemon.write(MASTER, "x" * 99 + "\n")
    daemon.logs[MASTER, "stdout"] *= 10_000  # a megabyte
    first = daemon.logs[MASTER, "stdout"]

    def add() -> None:
        daemon.write(MASTER, "new\n")

    def end() -> None:
        daemon.state = "KILLED"

    lines = told(follow(daemon.found(), pause=script(add, add, add, end)))

    assert len(lines) == 10_003
    assert daemon.sent < len(first) + 8 * OVERLAP_BYTES


def test_growth_beyond_what_is_asked_for_leaves_no_gap(daemon: Daemon) -> None:
    daemon.write(MASTER, "one\n")
    added = "".join(f"{number}\n" for number in range(5000))
    assert len(added) > 3 * OVERLAP_BYTES

    def add() -> None:
        daemon.write(MASTER, added)

    def end() -> None:
        daemon.state = "FINISHED"

    lines = told(follow(daemon.found(), pause=script(add, end)))

    assert lines == [f"127.0.0.1 master | {line}" for line in ("one", *added.split())]


def test_letters_of_several_bytes_are_never_cut(daemon: Daemon) -> None:
    whole = "größer ≥ 1\n".encode()
    cuts = [whole[:3], whole[3:9], whole[9:]]

    def add(number: int) -> Callable[[], None]:
        def append() -> None:
            daemon.logs[MASTER, "stdout"] = b"".join(cuts[: number + 1])

        return append

    def end() -> None:
        daemon.state = "FINISHED"

    assert told(follow(daemon.found(), pause=script(add(0), add(1), add(2), end))) == ["127.0.0.1 master | größer ≥ 1"]


def test_a_log_that_is_begun_anew_is_read_from_its_beginning(daemon: Daemon) -> None:
    daemon.write(MASTER, "a long line of the past\nand a half")

    def rotate() -> None:
        daemon.logs[MASTER, "stdout"] = b"new\n"

    def end() -> None:
        daemon.state = "FINISHED"

    lines = told(follow(daemon.found(), pause=script(rotate, end)))
    assert lines == ["127.0.0.1 master | a long line of the past", "127.0.0.1 master | new"]


@pytest.mark.parametrize(
    ("seen", "piece"),
    [(0, Piece(0, b"abc")), (2, Piece(2, b"c")), (3, Piece(3, b"")), (9, Piece(0, b"abc"))],
)
def test_a_piece_begins_where_the_last_one_ended(daemon: Daemon, seen: int, piece: Piece) -> None:
    daemon.write(MASTER, "abc")

    assert read_since(MASTER, f"http://{daemon.address}", "stdout", "me", seen) == piece


def test_a_log_that_is_empty_or_not_there_is_no_error(daemon: Daemon) -> None:
    daemon.write(MASTER, "")

    assert read_since(MASTER, f"http://{daemon.address}", "stdout", "me", 0) == Piece(0, b"")
    assert read_since(MASTER, f"http://{daemon.address}", "stdout", "me", 5) == Piece(0, b"")
    assert read_since(MASTER, f"http://{daemon.address}", "stderr", "me", 0) is None


def test_a_nodemanager_that_dies_costs_one_line_and_comes_back_without_a_gap(daemon: Daemon, other: Daemon) -> None:
    now = [100.0]
    daemon.write(MASTER, log_line(WORKER, other.address) + "\n")
    other.write(WORKER, "one\n")

    def die() -> None:
        other.close()

    def later() -> None:
        now[0] += AWAY_SECONDS + 1
        daemon.write(MASTER, "goes on\n")

    def come_back() -> None:
        other.write(WORKER, "two\n")
        other.back()
        now[0] += AWAY_SECONDS + 1

    def end() -> None:
        daemon.state = "FINISHED"

    steps = script(die, later, come_back, end)
    lines = list(follow(daemon.found(), clock=lambda: now[0], pause=steps))

    notes = [line.line for line in lines if isinstance(line, Line) and line.stream == NOTE]
    assert len(notes) == 2
    assert WORKER in notes[0]
    assert "does not answer" in notes[0]
    assert notes[1] == f"{other.address} answers again"
    assert [text for text in map(str, lines) if " - " not in text][1:] == [
        "127.0.0.1 worker | one",
        "127.0.0.1 master | goes on",
        "127.0.0.1 worker | two",
    ]


def test_a_node_that_did_not_answer_is_left_alone_for_a_while(daemon: Daemon, other: Daemon) -> None:
    daemon.write(MASTER, log_line(WORKER, other.address) + "\n")
    other.write(WORKER, "one\n")
    other.close()
    logs = daemon.found()
    logs.find_masters()
    assert len(told(logs.read(100.0))) == 2
    other.back()

    assert told(logs.read(100.0 + AWAY_SECONDS - 1)) == []
    assert told(logs.read(100.0 + AWAY_SECONDS + 1))[0] == "127.0.0.1 worker | one"


def test_a_dead_node_does_not_keep_the_others_from_being_printed(daemon: Daemon, other: Daemon) -> None:
    other.close()
    daemon.write(MASTER, log_line(WORKER, other.address) + "\n")

    lines = told(printed_lines(daemon.found()))
    assert lines[0].startswith("127.0.0.1 master | started")
    assert "does not answer" in lines[1]
    other.back()


def test_when_no_log_at_all_can_be_read_that_is_an_error(daemon: Daemon, other: Daemon) -> None:
    other.close()
    daemon.masters = [(MASTER, other.address)]

    with pytest.raises(HadoopError, match="no log could be read"):
        told(printed_lines(daemon.found()))
    other.back()


def test_a_job_that_nobody_knows_is_an_error(daemon: Daemon) -> None:
    unknown = JobLogs(f"http://{daemon.address}", "application_17_0002", "me")

    for lines in (printed_lines(unknown), follow(unknown)):
        with pytest.raises(HadoopError, match=r"nodewise job list"):
            told(lines)


def test_a_resourcemanager_that_restarts_does_not_end_the_following(daemon: Daemon, other: Daemon) -> None:
    daemon.masters = [(MASTER, other.address)]
    other.write(MASTER, "one\n")

    def away() -> None:
        daemon.close()
        other.write(MASTER, "two\n")

    def end() -> None:
        daemon.state = "FINISHED"
        daemon.back()

    lines = told(follow(daemon.found(), pause=script(away, lambda: None, end)))

    assert lines[0] == "127.0.0.1 master | one"
    assert "does not answer" in lines[1]
    assert lines[2:] == ["127.0.0.1 master | two"]


def until_it_ends(lines: Iterator[Line | str], most: int = 50) -> tuple[list[str], HadoopError]:
    """What a following says, and with which sentence it ends; it must end before `most` lines."""
    said = []
    with pytest.raises(HadoopError) as ended:
        for line in lines:
            said.append(str(line))
            assert len(said) < most
    return said, ended.value


def test_a_resourcemanager_that_stays_away_ends_the_following(daemon: Daemon, other: Daemon) -> None:
    now = [100.0]
    daemon.masters = [(MASTER, other.address)]
    other.write(MASTER, "one\n")
    pauses = 0

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        assert pauses < 10, "it goes on for ever"
        if pauses == 1:
            daemon.close()
        now[0] += PATIENCE_SECONDS / 2 - 1
        other.write(MASTER, f"{pauses}\n")

    said, ended = until_it_ends(follow(daemon.found(), clock=lambda: now[0], pause=pause))

    assert [line for line in said if " | " in line] == [f"127.0.0.1 master | {word}" for word in ("one", *"1234")]
    assert sum("does not answer" in line for line in said) == 1
    assert "not known whether the job still runs" in str(ended)
    daemon.back()


def test_a_job_that_is_no_longer_known_ends_the_following(daemon: Daemon, other: Daemon) -> None:
    daemon.masters = [(MASTER, other.address)]
    other.write(MASTER, "one\nhalf a")

    def forget() -> None:
        daemon.job = "application_18_0001"

    said, ended = until_it_ends(follow(daemon.found(), pause=script(forget)))

    assert said == ["127.0.0.1 master | one", "127.0.0.1 master | half a"]
    assert f"{JOB} is not known" in str(ended)


def test_a_job_that_waits_long_for_its_application_master_is_followed_all_the_time(daemon: Daemon) -> None:
    now = [100.0]
    daemon.masters = []
    waits = iter(range(10))

    def pause(seconds: float) -> None:
        now[0] += PATIENCE_SECONDS
        if next(waits) == 5:
            daemon.state = "KILLED"

    lines = told(follow(daemon.found(), clock=lambda: now[0], pause=pause))

    assert lines == [f"{JOB} has no log yet: no node has started its application master"]
