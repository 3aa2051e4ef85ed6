"""The calls of jobs/itemwork/messages.py over a real socket, with a real dealer behind them."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from hadoop.errors import HadoopError
from jobs.application.calls import Request
from jobs.application.coordinator import Hearing
from jobs.application.listener import MOST_STRANGERS, Listener
from jobs.application.status import JobStatus
from jobs.errors import JobError
from jobs.itemwork.messages import Task
from tests.jobs.dealing import Answering, Job, block, rows, two_nodes

STATUS = JobStatus("job_1", "running", 1, 12, 3, 0, 1.5, None, ())


class Worker:
    """One connection that is kept, as a worker's."""

    def __init__(self, listener: Listener, container: str = "a1") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=60)
        self._who = {"node_name": "a", "container_id": container}

    def request(self, method: str, path: str, body: bytes, token: str = "secret") -> tuple[int, bytes]:
        self._connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
        response = self._connection.getresponse()
        self.headers = response.headers
        return response.status, response.read()

    def __call__(self, path: str, **fields: Any) -> tuple[int, Any]:
        status, content = self.request("POST", path, json.dumps({**self._who, **fields}).encode())
        return status, json.loads(content) if content else None

    def commit(self, lease: str, told: bytes, **fields: Any) -> tuple[int, Any]:
        query = urlencode({**self._who, "lease": lease, "seconds": 0.25, "bytes_read": 100, **fields})
        status, content = self.request("POST", f"/commit?{query}", told)
        return status, json.loads(content)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def job() -> Job:
    """Twelve images on a, whose container is a1, four on b."""
    job = two_nodes([block("/p", 12, "a")], [block("/q", 4, "b")])
    job.dealer.add_container("a", "a1", 1.0)
    return job


@pytest.fixture
def early() -> Iterator[Listener]:
    listener = Listener("127.0.0.1", "secret")
    yield listener
    listener.close()


@pytest.fixture
def listener(early: Listener, job: Job) -> Listener:
    early.serve(Answering(job.dealer), lambda: STATUS, lambda: "<h1>Größe</h1>")
    return early


@pytest.fixture
def worker(listener: Listener) -> Iterator[Worker]:
    worker = Worker(listener)
    yield worker
    worker.close()


def names(task: Task) -> list[str]:
    return [picture.name for group in task.groups for picture in group.items]


def test_a_worker_takes_and_commits_until_nothing_is_left(worker: Worker, job: Job) -> None:
    for _ in range(20):
        status, told = worker("/take", holding=[])
        assert status == 200
        if told == {"done": True}:
            break
        task = Task.from_json(told["lease"])
        assert worker("/heartbeat") == (200, {"holding": [task.lease]})
        assert worker.commit(task.lease, rows("a", names(task))) == (
            200,
            {"answer": "accepted", "why": "accepted"},
        )

    assert (job.dealer.left, told) == (0, {"done": True})
    assert job.dealer.totals()["a"].items == 16


def test_a_worker_that_has_to_wait_hears_how_long(worker: Worker, job: Job) -> None:
    leases: list[str] = []
    while "lease" in (told := worker("/take", holding=leases)[1]):
        leases.append(told["lease"]["lease"])

    assert list(told) == ["wait"]
    assert 0 < told["wait"] <= 1


def test_a_late_commit_hears_why_it_does_not_count(worker: Worker, job: Job) -> None:
    task = Task.from_json(worker("/take", holding=[])[1]["lease"])
    job.now += 100

    status, told = worker.commit(task.lease, rows("a", names(task)))
    assert (status, told["answer"]) == (200, "expired")
    assert "given back" in told["why"]


def test_a_group_that_died_is_cut_and_in_the_end_convicted(worker: Worker, job: Job) -> None:
    task = Task.from_json(worker("/take", holding=[])[1]["lease"])
    two = names(task)[:2]

    status, told = worker("/died", lease=task.lease, group=two, reason="signal 11")
    assert (status, told["convicted"]) == (200, {})
    assert [[picture[3] for picture in group["items"]] for group in told["groups"]] == [two[:1], two[1:]]
    assert worker("/working", lease=task.lease, group=two[:1]) == (204, None)
    status, told = worker("/died", lease=task.lease, group=two[:1], reason="signal 11")
    assert told == {"groups": [], "convicted": {two[0]: "signal 11"}}
    assert worker("/working", lease=task.lease, group=[]) == (204, None)

    again = Task.from_json(worker("/take", holding=[])[1]["lease"])
    assert (again.lease, again.convicted) == (task.lease, {two[0]: "signal 11"})


def test_a_container_that_is_not_wanted_is_told_to_end(listener: Listener) -> None:
    worker = Worker(listener, container="a0")
    gone = {"error": "container a0 is not the one that works for a: it has to end"}

    assert worker("/take", holding=[]) == worker("/heartbeat") == (410, gone)
    worker.close()


def test_what_a_worker_says_before_it_ends_is_kept_by_its_container(listener: Listener, worker: Worker) -> None:
    assert worker("/failed", reason="no memory", everywhere=False) == (204, None)
    listener.check()

    assert listener.reasons == {"a1": "no memory"}


def test_a_reason_that_holds_everywhere_ends_the_job(listener: Listener, worker: Worker) -> None:
    worker("/failed", reason="weights.params has 11 classes, the labels 12", everywhere=True)

    with pytest.raises(JobError, match="11 classes"):
        listener.check()


def test_before_there_is_work_everyone_is_told_to_come_again(early: Listener, job: Job) -> None:
    worker = Worker(early)
    for method, path in (("GET", "/status"), ("GET", "/"), ("POST", "/take"), ("POST", "/failed")):
        assert worker.request(method, path, b"")[0] == 503
        assert worker.headers["Retry-After"] == "1"

    early.tell(lambda: STATUS, lambda: "It plans")
    assert worker.request("GET", "/", b"") == (200, b"It plans")
    assert worker.request("GET", "/status", b"")[0] == 200
    assert worker("/take", holding=[])[0] == 503
    early.serve(Answering(job.dealer), lambda: STATUS, lambda: "")
    assert worker("/take", holding=[])[0] == 200
    worker.close()


def test_a_wrong_token_changes_nothing_and_may_still_look(listener: Listener, job: Job) -> None:
    worker = Worker(listener)
    for token in ("guess", "", "secret ", "sécret"):
        body = json.dumps({"node_name": "a", "container_id": "a1", "holding": []}).encode()
        assert worker.request("POST", "/take", body, token.encode().decode("latin-1"))[0] == 401
        assert worker.headers["Connection"] == "close", "what may be left of the body is not a request"
    assert job.dealer.running() == {}

    status, content = worker.request("GET", "/status", b"", "guess")
    assert (status, JobStatus.from_json(json.loads(content))) == (200, STATUS)
    assert worker.request("GET", "/", b"", "guess") == (200, "<h1>Größe</h1>".encode())
    assert worker.headers["Content-Type"] == "text/html; charset=utf-8"
    assert worker.request("GET", "/journal", b"", "secret")[0] == 404
    worker.close()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/take", b"no json", 400),
        ("/take", b"\xff", 400),
        ("/take", b"[]", 400),
        ("/take", b'{"node_name": "a", "container_id": "a1"}', 400),
        ("/take", b'{"node_name": "a", "container_id": "a1", "holding": [1]}', 400),
        ("/died", b'{"node_name": "a", "container_id": "a1", "lease": "x", "group": ["y"], "reason": ""}', 400),
        ("/commit", b"", 400),
        ("/commit?node_name=a&container_id=a1&lease=1-1&seconds=x&bytes_read=1", b"", 400),
        ("/commit?node_name=a&container_id=a1&lease=1-1&seconds=nan&bytes_read=1", b"", 400),
        ("/commit?node_name=a&container_id=a1&lease=1-1&seconds=inf&bytes_read=1", b"", 400),
        ("/commit?node_name=a&container_id=a1&lease=1-1&seconds=1&bytes_read=-1", b"", 400),
        ("/commit?node_name=a&container_id=a1&lease=1&seconds=1&bytes_read=1", b"", 400),
        ("/progress", b"{}", 404),
        ("/take", b" " * ((1 << 20) + 1), 413),
        ("/commit?lease=1-1", b" " * ((32 << 20) + 1), 413),
    ],
)
def test_nonsense_is_refused_in_a_sentence_and_the_listener_lives_on(
    worker: Worker, listener: Listener, path: str, body: bytes, status: int
) -> None:
    try:
        got, content = worker.request("POST", path, body)
    except ConnectionError:
        assert len(body) > 32 << 20, "only a body that is far too large is not read to its end"
        got, content = 413, b'{"error": "-"}'

    assert got == status
    assert json.loads(content)["error"]
    worker.close()
    assert worker("/take", holding=[])[0] == 200
    listener.check()


@pytest.mark.parametrize("head", ["Content-Length: -1\r\n", "Content-Length: x\r\n", "", "Content-Length: \xb2\r\n"])
def test_a_body_without_a_length_is_refused(listener: Listener, head: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=60)
    connection.connect()
    said = f"POST /take HTTP/1.1\r\nAuthorization: Bearer secret\r\n{head}\r\n{{}}"
    connection.sock.sendall(said.encode("latin-1"))

    assert connection.sock.recv(1000).split()[1] == b"411"
    connection.close()


def test_rows_that_are_not_those_of_the_lease_are_refused(worker: Worker, job: Job) -> None:
    task = Task.from_json(worker("/take", holding=[])[1]["lease"])

    status, told = worker.commit(task.lease, rows("a", names(task)[1:]))
    assert (status, "7 rows for 8 items" in told["error"]) == (400, True)
    assert job.dealer.left == 16


def test_a_journal_that_cannot_be_written_is_told_to_come_again_later(worker: Worker, job: Job) -> None:
    task = Task.from_json(worker("/take", holding=[])[1]["lease"])
    job.paper.fails = True

    status, told = worker.commit(task.lease, rows("a", names(task)))
    assert (status, told) == (503, {"error": "HDFS is away"})
    with pytest.raises(HadoopError):
        job.dealer.expire()


def test_a_fault_of_ours_reaches_the_main_loop(
    early: Listener, job: Job, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    early.serve(Answering(job.dealer), lambda: STATUS, lambda: "")
    worker = Worker(early)
    monkeypatch.setattr(job.dealer, "_items_of", lambda part: ())

    assert worker("/take", holding=[])[0] == 500
    with pytest.raises(JobError, match="the input was changed"):
        early.check()
    worker.close()


@pytest.mark.parametrize("fault", [pa.ArrowInvalid("no such column"), ValueError("no such number")])
def test_what_is_not_the_callers_fault_is_not_blamed_on_it(
    worker: Worker, listener: Listener, job: Job, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fails(record: object) -> None:
        raise fault

    task = Task.from_json(worker("/take", holding=[])[1]["lease"])
    monkeypatch.setattr(job.paper, "append", fails)

    assert worker.commit(task.lease, rows("a", names(task)))[0] == 500
    with pytest.raises(ValueError, match="no such"):
        listener.check()


def test_the_end_of_a_connection_is_told_to_whoever_answers(listener: Listener, worker: Worker) -> None:
    class Noting(Hearing):
        calls: ClassVar[Mapping[str, int]] = {"/note": 10}
        came: ClassVar[list[object]] = []
        left: ClassVar[list[object]] = []

        def hear(self, call: str, request: Request) -> None:
            self.came.append(request.connection)

        def hang_up(self, connection: object) -> None:
            self.left.append(connection)

    listener.serve(Noting(), lambda: STATUS, lambda: "")
    assert [worker.request("POST", "/note", b"") for _ in range(2)] == [(204, b"")] * 2
    first, second = Noting.came
    assert first is second and Noting.left == []
    worker.close()

    deadline = time.monotonic() + 30
    while Noting.left != [first]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_rows_that_are_damaged_are_the_callers_fault(worker: Worker, listener: Listener) -> None:
    task = Task.from_json(worker("/take", holding=[])[1]["lease"])
    told = rows("a", names(task))

    for broken in (told[:-40], told.replace(b"/p#0", b"/p\xff0"), b"", b"\0" * 100):
        assert worker.commit(task.lease, broken)[0] == 400
    listener.check()


def test_a_page_that_cannot_be_shown_does_not_end_the_job(
    early: Listener, job: Job, capfd: pytest.CaptureFixture[str]
) -> None:
    early.serve(Answering(job.dealer), lambda: STATUS, lambda: str(1 / 0))
    worker = Worker(early)

    assert worker.request("GET", "/", b"")[0] == 500
    assert "ZeroDivisionError" in capfd.readouterr().err
    early.check()
    worker.close()


def test_a_body_that_does_not_come_ends_its_connection_and_no_other_one(job: Job) -> None:
    listener = Listener("127.0.0.1", "secret", body_seconds=6.0)  # within which the other one's calls come
    listener.serve(Answering(job.dealer), lambda: STATUS, lambda: "")
    slow = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=60)
    slow.putrequest("POST", "/take")
    slow.putheader("Authorization", "Bearer secret")
    slow.putheader("Content-Length", "100")
    slow.endheaders(b"{")
    worker = Worker(listener)

    assert worker("/take", holding=[])[0] == 200
    assert slow.sock.recv(1) == b"", "the server hung up"
    slow.close()
    worker.close()
    listener.close()


def connect(listener: Listener, said: bytes = b"") -> socket.socket:
    stranger = socket.create_connection(("127.0.0.1", listener.port), timeout=60)
    stranger.sendall(said)
    return stranger


def test_idle_strangers_take_a_few_threads_and_no_worker_s_place(listener: Listener, worker: Worker) -> None:
    assert worker("/heartbeat")[0] == 200
    threads = threading.active_count()
    strangers = [connect(listener, b"GET / HTTP/1.1\r\n") for _ in range(MOST_STRANGERS + 40)]

    for stranger in strangers[:40]:
        with suppress(ConnectionResetError):  # it was hung up on before its line was read
            assert stranger.recv(1) == b"", "the oldest ones are hung up on"
    assert worker("/heartbeat")[0] == 200
    late = Worker(listener)
    assert late("/heartbeat")[0] == 200
    deadline = time.monotonic() + 60
    while threading.active_count() > threads + MOST_STRANGERS + 1:
        assert time.monotonic() < deadline, "those that were hung up on have threads still"
        time.sleep(0.02)
    late.close()
    for stranger in strangers:
        stranger.close()


def test_a_head_that_drips_is_ended(job: Job) -> None:
    listener = Listener("127.0.0.1", "secret", body_seconds=0.5)
    listener.serve(Answering(job.dealer), lambda: STATUS, lambda: "")
    stranger = connect(listener)
    stranger.settimeout(0.05)
    until = time.monotonic() + 60
    answer = None
    while answer is None and time.monotonic() < until:
        try:
            stranger.sendall(b"G")
            answer = stranger.recv(1)
        except TimeoutError:
            continue  # a byte comes each 50 ms, and no answer
        except ConnectionError:
            answer = b""

    assert answer == b"", "the server hung up"
    stranger.close()
    listener.close()


def test_the_heads_and_bodies_of_many_calls_on_one_connection_are_not_delayed(worker: Worker) -> None:
    seconds: list[float] = []
    while len(seconds) < 50 or (min(seconds) >= 0.02 and len(seconds) < 500):  # a busy machine has a free moment, too
        begun = time.monotonic()
        worker("/heartbeat")
        seconds.append(time.monotonic() - begun)

    assert min(seconds) < 0.02, "40 ms for each would be Nagle's algorithm"
