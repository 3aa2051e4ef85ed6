"""What stays when the service, the database or a client goes away, and what happens when many write at once."""

from __future__ import annotations

import re
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql
import pytest
from sqlalchemy import make_url

from infosvc.wire.errors import Conflict, InvalidInput, NotReady, PreconditionFailed
from infosvc.wire.records import Outcome, Producer, Report, Run, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infosvc.conftest import Hands, MariaDB, Served, Serving

CPU = Producer("cpu", "scripts/cpu.sh", 2.0, ttl=60.0, unit="ratio")


def _rows(database: str, statement: str) -> list[tuple[Any, ...]]:
    """Rows as another program sees them."""
    url = make_url(database)
    if url.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(url.database))) as file:
            return file.execute(statement).fetchall()
    with pymysql.connect(
        host=url.host, port=url.port, user=url.username, password=str(url.password), database=url.database
    ) as server:
        with server.cursor() as cursor:
            cursor.execute(statement)
            found = list(cursor.fetchall())
        server.commit()
        return found


def test_a_restart_keeps_everything_and_ages_go_on(database: str, hands: Hands, serve: Serving) -> None:
    with serve(database, hands) as first:
        first.client.put_producer(CPU)
        first.client.put_node("n1", "127.0.0.1:9")
        first.client.put_slot("n1", "cpu", False, 7.0)
        runs = (Run("cpu", Outcome.OK, 0.5, "0.9", None, 2.0),)
        first.client.report("n1", Report("boot", 4, "1", runs))
        before = [first.reader.producers(), first.reader.slots("n1"), first.reader.data("cpu"), first.reader.nodes()]
    hands.turn(30)
    hands.now -= 500
    hands.epoch += 500  # another process has another monotonic clock
    with serve(database, hands) as second:
        assert second.reader.producers() == before[0]
        assert second.reader.slots("n1").version == before[1].version
        [slot] = second.reader.slots("n1").slots
        assert (slot.running, slot.interval, slot.outcome, slot.duration) == (False, 7.0, Outcome.OK, 0.5)
        [datum] = second.reader.data("cpu")
        assert datum.age == pytest.approx(32.0, abs=1e-3)
        assert (datum.data_value, datum.state) == ("0.9", State.FRESH)
        assert [node.state for node in second.reader.nodes()] == ["lost"]
        second.client.report("n1", Report("boot", 4, "1", (Run("cpu", Outcome.OK, 0.5, "repeated"),)))
        assert second.reader.data("cpu")[0].data_value == "0.9"


def test_deleted_things_stay_deleted(database: str, serve: Serving) -> None:
    with serve(database) as first:
        first.client.put_producer(CPU)
        first.client.put_producer(Producer("load", "x", 1))
        first.client.put_node("n1", "127.0.0.1:9")
        for name in ("cpu", "load"):
            first.client.put_value(name, "n1", 1)
            first.client.put_slot("n1", name, True)
        first.client.delete_producer("cpu")
    with serve(database) as second:
        assert [producer.data_name for producer in second.reader.producers()] == ["load"]
        assert [slot.data_name for slot in second.reader.slots("n1").slots] == ["load"]
        second.client.delete_node("n1")
    for table in ("t_Data", "t_Slot", "t_Node"):
        assert _rows(database, f"SELECT * FROM {table}") == []


def test_the_tables_have_the_papers_columns(database: str, serve: Serving) -> None:
    with serve(database) as service:
        service.client.put_producer(CPU)
        service.client.put_value("cpu", "n1", 0.5)
        service.client.put_value("cpu", "n1", 0.75)
        assert _rows(database, "SELECT data_name, cmd, time_max FROM t_DP") == [("cpu", "scripts/cpu.sh", 2.0)]
        columns = "id, data_name, data_value, node_name, outcome, sequence"
        assert _rows(database, f"SELECT {columns} FROM t_Data") == [("cpu@n1", "cpu", "0.75", "n1", "ok", 2)]


def test_what_was_acknowledged_is_in_the_database(database: str, serve: Serving) -> None:
    with serve(database) as service:
        service.client.put_producer(CPU)
        for number in range(20):
            service.client.put_value("cpu", "n1", number)
            assert _rows(database, "SELECT data_value FROM t_Data") == [(str(number),)]


def test_many_writers_at_once_lose_nothing(database: str, serve: Serving) -> None:
    failed: list[BaseException] = []

    def write(service: Served, name: str) -> None:
        try:
            for number in range(25):
                service.client.put_value("cpu", name, number)
                assert service.reader.data("cpu", node=name)[0].data_value == str(number)
        except BaseException as error:
            failed.append(error)

    with serve(database) as service:
        service.client.put_producer(CPU)
        threads = [threading.Thread(target=write, args=(service, f"n{index}")) for index in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        expected = {(f"n{index}", "24", 25) for index in range(12)}
        assert set(_rows(database, "SELECT node_name, data_value, sequence FROM t_Data")) == expected


def test_of_many_conditional_updates_one_wins(database: str, serve: Serving) -> None:
    won: list[str] = []

    def update(service: Served, cmd: str) -> None:
        try:
            service.client.put_producer(Producer("cpu", cmd, 2.0), if_match=1)
            won.append(cmd)
        except PreconditionFailed:
            pass

    with serve(database) as service:
        service.client.put_producer(CPU)
        threads = [threading.Thread(target=update, args=(service, f"c{index}")) for index in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [service.reader.producer("cpu").cmd] == won


def test_without_the_database_reads_go_on_and_writes_are_refused(
    mariadb: MariaDB, serve: Serving, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    with serve(mariadb.new_database()) as service:
        service.client.put_producer(CPU)
        service.client.put_value("cpu", "n1", "before")
        mariadb.stop()
        try:
            with pytest.raises(NotReady, match=r"database .* does not answer") as refused:
                service.client.put_value("cpu", "n1", "lost")
            assert "s3cret" not in str(refused.value)
            assert service.reader.data("cpu")[0].data_value == "before"
            assert service.ask("GET", "/healthz").status == 200
            answer = service.ask("GET", "/readyz")
            assert (answer.status, answer.error["code"]) == (503, "not_ready")
        finally:
            mariadb.start()
        eventually(lambda: service.ask("GET", "/readyz").status == 200)
        service.client.put_value("cpu", "n1", "after")
        assert service.reader.data("cpu")[0].data_value == "after"


def test_a_database_that_hangs_holds_no_reader_up(mariadb: MariaDB, serve: Serving) -> None:
    url = mariadb.new_database()
    with serve(url) as service:
        service.client.put_producer(CPU)
        service.client.put_value("cpu", "n1", "before")
    with (
        serve(url, patience=0.5, threads=2) as service,
        pymysql.connect(
            host="127.0.0.1", port=mariadb.port, user="root", database=str(make_url(url).database)
        ) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("LOCK TABLES t_Data WRITE")
        for _ in range(2):
            with pytest.raises(NotReady, match=r"read it back|takes no writes now"):
                service.client.put_value("cpu", "n1", "late")
        with pytest.raises(NotReady, match="takes no writes now"):
            service.client.put_value("cpu", "n1", "later")
        assert service.reader.data("cpu")[0].data_value == "before"


def test_a_database_of_a_newer_version_is_left_alone(database: str, serve: Serving) -> None:
    with serve(database):
        pass
    url = make_url(database)
    statement = "UPDATE t_Meta SET value = 99 WHERE name = 'schema_version'"
    if url.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(url.database))) as file:
            file.execute(statement)
            file.commit()
    else:
        _rows(database, statement)
    with pytest.raises(Conflict, match=r"schema 99.*this one knows schema 8.*upgrade nodewise"), serve(database):
        pass


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "postgresql://u:hidden@h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql+pymysql://u:hidden@h",
        "mysql+pymysql://u:hidden@h:port/d",
        "sqlite:////tmp/x.db?uri=true",
    ],
)
def test_a_url_of_another_kind_is_refused_without_showing_it(url: str, serve: Serving) -> None:
    with pytest.raises(InvalidInput, match=re.escape("sqlite:////absolute/path.db")) as refused, serve(url):
        pass
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["mysql://u:hidden@a..b/d", "mysql://u:hidden@127.0.0.1:1/d?colour=red", "sqlite:///a\0b"]
)
def test_a_url_that_cannot_be_used_is_refused_without_showing_it(url: str, serve: Serving) -> None:
    with pytest.raises(InvalidInput, match="mend its URL") as refused, serve(url):
        pass
    assert "hidden" not in str(refused.value)


def test_a_second_service_on_a_database_is_refused(database: str, serve: Serving) -> None:
    with serve(database) as first:
        with pytest.raises(Conflict, match="another service uses the database"), serve(database):
            pass
        first.client.put_producer(CPU)
    with serve(database) as after:
        assert [producer.data_name for producer in after.reader.producers()] == ["cpu"]


def test_mysql_urls_need_not_name_the_driver(mariadb: MariaDB, serve: Serving) -> None:
    with serve(mariadb.new_database().replace("mysql+pymysql", "mariadb").partition("?")[0]) as service:
        assert service.reader.producers() == []


def test_the_file_and_its_directory_are_their_owners_only(sqlite_url: str, serve: Serving) -> None:
    file = Path(str(make_url(sqlite_url).database))
    with serve(sqlite_url) as service:
        service.client.put_producer(CPU)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
        assert set(modes.values()) == {0o600}
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path, serve: Serving) -> None:
    (tmp_path / "x.db").write_text("this is not a database, and it is long enough to be looked at " * 20)
    with pytest.raises(NotReady, match="file is not a database"), serve(f"sqlite:///{tmp_path}/x.db"):
        pass
    with pytest.raises(NotReady, match="cannot be opened"), serve(f"sqlite:///{tmp_path}"):
        pass


def test_a_restart_keeps_that_the_last_run_failed(database: str, serve: Serving) -> None:
    with serve(database) as first:
        first.client.put_producer(CPU)
        first.client.put_node("n1", "127.0.0.1:9")
        runs = (Run("cpu", Outcome.OK, 0.5, "0.9"), Run("cpu", Outcome.TIMEOUT, 2.0, None, "killed"))
        first.client.report("n1", Report("boot", 1, "1", runs))
    with serve(database) as second:
        [datum] = second.reader.data("cpu")
        assert (datum.data_value, datum.state, datum.outcome, datum.reason) == (
            "0.9",
            State.FAILED,
            Outcome.TIMEOUT,
            "killed",
        )
