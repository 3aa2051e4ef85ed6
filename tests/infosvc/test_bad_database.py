"""A database that takes no changes, or is none any more: who watches the service sees it, and what it says helps."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, inspect, make_url, text

from infosvc.state import database as database_module
from infosvc.state.complaints import not_ready
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotReady
from infosvc.wire.records import Producer
from tests.infosvc.conftest import TOKEN

if TYPE_CHECKING:
    from tests.infosvc.conftest import Serving


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system that is small enough to fill")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_on_a_full_disk_writes_are_refused_and_reads_go_on_until_there_is_room(
    small_disk: Path, serve: Serving, caplog: pytest.LogCaptureFixture, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    with serve(f"sqlite:///{small_disk}/infosvc.db") as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        service.client.put_value("cpu", "n1", "before")
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(64 * 1024))
        with InfoClient(service.url, TOKEN, retries=0) as client:
            acknowledged, full = "before", False
            for number in range(200):
                value = str(number) * 1000
                try:
                    client.put_value("cpu", "n1", value)
                    acknowledged = value
                except NotReady as error:
                    full = "full" in str(error)
                    break
        assert full
        refused = service.ask("GET", "/readyz")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1") and "is full" in refused.error["message"]
        assert sum("cannot be stored now" in said for said in caplog.messages) == 1
        assert service.reader.data("cpu")[0].data_value == acknowledged
        filler.unlink()
        service.client.put_value("cpu", "n1", "after")
        assert service.reader.data("cpu")[0].data_value == "after"
        eventually(lambda: service.ask("GET", "/readyz").status == 200)
        assert caplog.messages[-1] == "changes are stored again"


def test_a_database_that_another_program_locks_makes_the_service_not_ready_and_is_logged_once(
    sqlite_url: str,
    serve: Serving,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[[Callable[[], bool]], None],
) -> None:
    monkeypatch.setitem(database_module._CONNECT, "sqlite", {"timeout": 0.1})
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            eventually(lambda: service.ask("GET", "/readyz").status == 503)
            for path, body in (("/readyz", None), ("/api/v1/data/cpu/n1", {"data_value": "1"})):
                answer = service.ask("PUT" if body else "GET", path, body)
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                assert "locked" in answer.error["message"]
            assert [said for said in caplog.messages if "cannot be stored now" in said] == caplog.messages
            assert len(caplog.messages) == 1
        eventually(lambda: service.ask("GET", "/readyz").status == 200)


def _file(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
def used(sqlite_url: str, serve: Serving) -> str:
    """The URL of a database that a service has used."""
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("cpu", "x", 5.0))
        service.client.put_value("cpu", "n1", 1)
    return sqlite_url


def test_a_damaged_file_leads_to_the_backup(used: str, serve: Serving) -> None:
    size = _file(used).stat().st_size
    with _file(used).open("r+b") as file:
        file.write(bytes(size))
    with pytest.raises(NotReady, match=r"not a database.*restore a backup.*docs/operate.md#back-up-and-restore"):
        serve(used).__enter__()


def test_a_file_that_has_become_empty_is_not_taken_for_a_new_one(used: str, serve: Serving) -> None:
    _file(used).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(NotReady, match=r"infosvc.db is empty.*restore a backup.*remove the file to begin anew"):
            serve(used).__enter__()
    _file(used).unlink()
    with serve(used) as service:
        assert service.client.producers() == []


@pytest.mark.parametrize("table", ["t_Data", "t_Audit", "t_Meta"])
def test_a_database_that_has_lost_a_table_is_not_taken_for_a_new_one(database: str, serve: Serving, table: str) -> None:
    with serve(database):
        pass
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {table}"))
    for _ in range(2):
        with pytest.raises(NotReady, match=rf"lacks .*{table}.*restore a backup"):
            serve(database).__enter__()
    assert table not in inspect(engine).get_table_names() or table == "t_Meta"
    engine.dispose()


def test_a_database_that_has_lost_a_column_leads_to_the_backup(database: str, serve: Serving) -> None:
    with serve(database):
        pass
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE t_Node DROP COLUMN boot"))
    with pytest.raises(NotReady, match=r"boot.*restore a backup"):
        serve(database).__enter__()
    engine.dispose()


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("database or disk is full", "free some space"),
        ("(1021, 'Disk full')", "free some space"),
        ("database disk image is malformed", "restore a backup"),
        ("database is locked", "end the program"),
        ("attempt to write a readonly database", "let this user write"),
        ("(2003, 'Connection refused')", "start it"),
    ],
)
def test_each_complaint_leads_to_its_remedy(said: str, remedy: str) -> None:
    error = not_ready("sqlite:///x.db", said)
    assert said in error.message and error.remedy.startswith(remedy)
