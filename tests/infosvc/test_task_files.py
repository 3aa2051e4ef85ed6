"""Archives of tasks: they count when they are whole and what their name says, and leave nothing otherwise."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from infosvc.core.service import components_of
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, Forbidden, InvalidInput, NotFound, TooLarge, Unauthorized
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from tests.infosvc.conftest import TOKEN
from tests.infosvc.task_users import as_user

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

CONTENT = os.urandom(700_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
DAY = 86_400


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A file to be sent; the service takes whatever bytes."""
    path = tmp_path / "archive.tar"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the service of these tests keeps archives: beside its database."""
    return tmp_path / "service" / "files"


def send(service: Served, sha256: str, content: bytes = CONTENT, length: int | None = None) -> socket.socket:
    """A connection on which a PUT was begun, of so many bytes as it says or another `length`."""
    where = urlsplit(service.url)
    connection = socket.create_connection((where.hostname, where.port), timeout=120)
    head = f"PUT /api/v1/tasks/files/{sha256} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    with suppress(BrokenPipeError, ConnectionResetError):  # whoever refuses an archive need not read it
        connection.sendall(f"{head}Content-Length: {length or len(content)}\r\n\r\n".encode() + content)
    return connection


def put(service: Served, sha256: str, content: bytes = CONTENT) -> int:
    """The status of the answer to a whole PUT."""
    with send(service, sha256, content) as connection:
        return int(connection.recv(100).split()[1])


def test_an_archive_is_kept_once_for_its_owner_alone_and_comes_back(
    service: Served, archive: Path, tmp_path: Path
) -> None:
    if "mariadb" in os.environ.get("PYTEST_CURRENT_TEST", ""):
        assert put(service, SHA256) == 503, "without a folder there is no place for it"
        return
    kept = tmp_path / "service" / "files"
    assert not service.client.has_files(SHA256)
    assert put(service, SHA256) == 201
    assert put(service, SHA256) == 200
    assert service.client.put_files(archive) == SHA256
    assert [path.name for path in kept.iterdir()] == [SHA256]
    assert stat.S_IMODE((kept / SHA256).stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    service.client.get_files(SHA256, tmp_path / "copy.tar")
    assert (tmp_path / "copy.tar").read_bytes() == CONTENT
    assert stat.S_IMODE((tmp_path / "copy.tar").stat().st_mode) == 0o600
    head = service.ask("HEAD", f"/api/v1/tasks/files/{SHA256}")
    assert (head.status, head.headers["content-length"], head.content) == (200, "700000", b"")
    with pytest.raises(NotFound):
        service.client.get_files("0" * 64, tmp_path / "none.tar")
    assert sorted(path.name for path in tmp_path.glob("*.tar")) == ["archive.tar", "copy.tar"]
    assert service.client.submit_task(TaskSpec(["x"], files=SHA256)).spec.files == SHA256


def test_what_is_not_what_its_name_says_leaves_nothing(sqlite_url: str, serve: Serving, folder: Path) -> None:
    with serve(sqlite_url) as service:
        assert put(service, "0" * 64) == 422
        assert put(service, "short") == 422
        assert list(folder.iterdir()) == []
        with pytest.raises(InvalidInput, match="send it first"):
            service.client.submit_task(TaskSpec(["x"], files="0" * 64))


def test_a_connection_that_breaks_leaves_nothing(
    sqlite_url: str, serve: Serving, folder: Path, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    with serve(sqlite_url, body_seconds=60.0) as service:
        archives = components_of(service.server.app).archives
        with send(service, SHA256, CONTENT[:400_000], len(CONTENT)):
            eventually(lambda: folder.is_dir() and any(path.stat().st_size for path in folder.iterdir()))
            assert not service.client.has_files(SHA256)
        eventually(lambda: list(folder.iterdir()) == [] and archives._bytes == 0)
        assert put(service, SHA256) == 201


def test_a_sender_that_stops_sending_is_cut(
    sqlite_url: str, serve: Serving, folder: Path, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    with serve(sqlite_url, body_seconds=1.0) as service, send(service, SHA256, CONTENT[:400_000], len(CONTENT)) as late:
        begun = time.monotonic()
        assert b"201" not in late.recv(100)
        assert time.monotonic() - begun < 60
        eventually(lambda: list(folder.iterdir()) == [])


def test_too_large_is_refused_before_it_is_sent(sqlite_url: str, serve: Serving, archive: Path, folder: Path) -> None:
    with serve(sqlite_url, bytes_per_archive=600_000) as service:
        with pytest.raises(TooLarge, match="may have 600000"):
            service.client.put_files(archive)
        assert not folder.exists()


def test_all_together_are_bounded_also_after_a_restart(
    sqlite_url: str, serve: Serving, archive: Path, folder: Path
) -> None:
    other = os.urandom(500_000)
    for number in range(2):
        with serve(sqlite_url, bytes_of_archives=1_000_000) as service:
            assert service.client.put_files(archive) == SHA256
            assert put(service, hashlib.sha256(other).hexdigest(), other) == 409, number
            with pytest.raises(Conflict, match="nodewise task rm"):
                archive.with_name("other.tar").write_bytes(other)
                service.client.put_files(archive.with_name("other.tar"))
        (folder / ".begun-0123").write_bytes(b"a service that was killed left this")
    with serve(sqlite_url, bytes_of_archives=1_000_000):
        assert [path.name for path in folder.iterdir()] == [SHA256]


def test_an_archive_goes_some_days_after_the_last_task_that_names_it(
    sqlite_url: str, serve: Serving, hands: Hands, archive: Path
) -> None:
    with serve(sqlite_url, hands) as service:
        upkeep = components_of(service.server.app).tasks
        service.client.put_files(archive)
        hands.turn(6 * DAY)
        task = service.client.submit_task(TaskSpec(["x"], files=SHA256))
        for _ in range(4):
            hands.turn(6 * DAY)
            upkeep.look()
        service.client.stop_task(task.task_id)
        service.client.remove_task(task.task_id)
        hands.turn(6 * DAY)
        upkeep.look()
        assert service.client.has_files(SHA256)
        hands.turn(2 * DAY)
        upkeep.look()
        assert not service.client.has_files(SHA256)
        assert components_of(service.server.app).archives._bytes == 0


def test_who_may_send_and_fetch(sqlite_url: str, serve: Serving, archive: Path, tmp_path: Path) -> None:
    with serve(sqlite_url) as service:
        with as_user(service, "maria") as maria:
            maria.put_files(archive)
        with as_user(service, "s", Role.SUBMITTER) as submitter:
            submitter.get_files(SHA256, tmp_path / "copy.tar")
            other = tmp_path / "other.tar"
            other.write_bytes(b"x")
            assert service.ask("PUT", f"/api/v1/tasks/files/{SHA256}", "x", submitter._token).status == 403
        with as_user(service, "r", Role.READER) as reader, pytest.raises(Forbidden, match="needs a token of role"):
            reader.put_files(archive)
        with InfoClient(service.url) as nobody, pytest.raises(Unauthorized):
            nobody.get_files(SHA256, tmp_path / "more.tar")
        (line,) = [entry for entry in service.client.audit() if entry.status == 201 and "/files/" in entry.call]
        assert (line.call, line.detail) == (f"PUT /api/v1/tasks/files/{SHA256}", '{"bytes": 700000}')


def test_an_archive_without_its_length_is_refused(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        headers = {"Transfer-Encoding": "chunked"}
        assert service.ask("PUT", f"/api/v1/tasks/files/{SHA256}", "1\r\nx\r\n0\r\n\r\n", headers=headers).status == 411
