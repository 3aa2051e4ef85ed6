"""Much history goes in small parts: nobody waits for it, readers see none of it, and a restart goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, insert, make_url, text

from infosvc.core.service import components_of
from infosvc.state import forgetting, tables
from infosvc.state.database import Database
from infosvc.wire.errors import NotReady
from infosvc.wire.records import Outcome, Producer, Report, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

PART, POINTS = 100, 450

Eventually = Callable[[Callable[[], bool]], None]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each statement deleted."""
    deleted: list[int] = []
    delete_some = forgetting._delete_some

    def count(*said: Any) -> int:
        deleted.append(delete_some(*said))
        return deleted[-1]

    monkeypatch.setattr(forgetting, "PART", PART)
    monkeypatch.setattr(forgetting, "_delete_some", count)
    return deleted


def _fill(service: Served, database: str, hands: Hands) -> None:
    """Two names with history of two nodes."""
    for name in ("cpu", "load"):
        service.client.put_producer(Producer(name, "x", 5.0, keep=86_400))
    for node in ("n1", "n2"):
        service.client.put_node(node, "127.0.0.1:9")
    now = hands.epoch + hands.now
    rows = [
        {"data_name": name, "node_name": node, "updated_at": now - at, "data_value": "old"}
        for name in ("cpu", "load")
        for node in ("n1", "n2")
        for at in range(1, POINTS + 1)
    ]
    engine = create_engine(make_url(database))
    with engine.begin() as connection:
        connection.execute(insert(tables.history), rows)
    engine.dispose()


def _rows(database: str, table: str = "t_History", where: str = "1 = 1") -> int:
    engine = create_engine(make_url(database))
    with engine.connect() as connection:
        found = connection.scalar(text(f"SELECT COUNT(*) FROM {table} WHERE {where}"))
    engine.dispose()
    return int(found or 0)


def _points(service: Served, name: str, node: str) -> list[str]:
    return [value for _, value in service.client.history(name, node).points]


def _report(service: Served, sequence: int) -> None:
    service.client.report("n1", Report("b", sequence, "1", (Run("cpu", Outcome.OK, 0.1, "new"),)))


def test_a_nodes_history_goes_in_parts_and_what_comes_after_it_stays(
    database: str, hands: Hands, serve: Serving, parts: list[int], eventually: Eventually
) -> None:
    with serve(database, hands) as service:
        _fill(service, database, hands)
        service.client.delete_node("n1")
        service.client.put_node("n1", "127.0.0.1:9")
        _report(service, 1)
        assert _points(service, "cpu", "n1") == ["new"]
        eventually(lambda: _rows(database, "t_Forget") == 0)
        assert max(parts) <= PART and sum(parts) >= 2 * POINTS - 1
        assert _points(service, "cpu", "n1") == ["new"] and _points(service, "load", "n1") == []
        assert len(_points(service, "cpu", "n2")) == POINTS
    assert _rows(database) == 2 * POINTS + 1


def test_a_service_that_is_started_again_goes_on_forgetting(
    database: str,
    hands: Hands,
    serve: Serving,
    parts: list[int],
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_database: Database) -> None:
        raise NotReady("not now")

    with monkeypatch.context() as broken, serve(database, hands) as service:
        broken.setattr(Database, "forget_part", fail)
        _fill(service, database, hands)
        service.client.delete_producer("cpu")
        service.client.put_producer(Producer("cpu", "x", 5.0, keep=86_400))
        assert _points(service, "cpu", "n1") == [] and len(_points(service, "load", "n1")) == POINTS
    assert _rows(database, where="data_name = 'cpu'") == 2 * POINTS - PART
    with serve(database, hands) as service:
        assert _points(service, "cpu", "n2") == []
        eventually(lambda: _rows(database, "t_Forget") == 0)
    assert _rows(database, where="data_name = 'cpu'") == 0 and max(parts) <= PART


def test_history_that_is_too_old_goes_in_parts(
    sqlite_url: str, hands: Hands, serve: Serving, parts: list[int], eventually: Eventually
) -> None:
    with serve(sqlite_url, hands) as service:
        _fill(service, sqlite_url, hands)
        service.client.put_producer(Producer("cpu", "x", 5.0, keep=60 + 60))
        hands.turn(61)
        components_of(service.server.app).watchdog.step()
        eventually(lambda: _rows(sqlite_url, "t_Forget") == 0)
        assert _rows(sqlite_url, where="data_name = 'cpu'") == 2 * (60 - 1)
        assert max(parts) <= PART and _rows(sqlite_url, where="data_name = 'load'") == 2 * POINTS
