"""The application master hears its own workers, and nobody else."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from jobs.partitioner.api import LARGEST_BODY, Listener
from jobs.worker.master import Master, Progress


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener("127.0.0.1", "secret")
    yield made
    made.close()


def progress(node: str, images: int, finished: bool = False) -> Progress:
    return Progress(node, images, errors=0, bytes_read=10, seconds=1.5, finished=finished)


def test_the_latest_progress_of_each_node_counts(listener: Listener) -> None:
    master = Master(listener.address, "secret")
    for said in (progress("a", 4), progress("b", 2), progress("a", 8, finished=True)):
        master.progress(said)

    assert listener.images_done() == 10
    assert listener.finished() == {"a": progress("a", 8, finished=True)}


def test_a_worker_s_reason_is_kept(listener: Listener) -> None:
    Master(listener.address, "secret").failed("a", "no weights")

    assert listener.reason("a") == "no weights"
    assert listener.reason("b") is None


def test_a_wrong_token_changes_nothing(listener: Listener) -> None:
    with pytest.raises(OSError, match="401"):
        Master(listener.address, "guess").progress(progress("a", 4))

    assert listener.images_done() == 0


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/progress", b"no json", 400),
        ("/progress", b"[]", 400),
        ("/progress", b'{"node_name": "a"}', 400),
        ("/other", b"{}", 400),
        ("/progress", b" " * (LARGEST_BODY + 1), 413),
    ],
)
def test_nonsense_is_refused_and_the_listener_lives_on(listener: Listener, path: str, body: bytes, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=5)
    connection.request("POST", path, body, {"Authorization": "Bearer secret"})

    assert connection.getresponse().status == status
    connection.close()
    Master(listener.address, "secret").progress(progress("a", 1))
    assert listener.images_done() == 1
