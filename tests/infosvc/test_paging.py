"""Long answers come in parts, each of which leads to the next; usual ones come whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from infosvc.wire.records import Kind, Producer

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

MOST = 1_000
NODES = [f"n{number:02}" for number in range(12)]
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture
def small(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service whose answers are short: of 12 nodes, 12 names with a slot each, and values of half a kilobyte."""
    with serve(sqlite_url, max_answer=MOST) as service:
        for number, node in enumerate(NODES):
            service.client.put_node(node, "127.0.0.1:9")
            service.client.put_producer(Producer(f"p{number:02}", "scripts/p.sh", 5, help="h" * 300))
            service.client.put_slot("n00", f"p{number:02}", True)
        for name in ("a", "b", "few"):
            service.client.put_producer(Producer(name, "", 60, Kind.PROGRAM))
        for node in NODES:
            for name in ("a", "b"):
                service.client.put_value(name, node, f"{name}{node}" + "\x01" * 100)
        service.client.put_value("few", "n00", "1")
        yield service


def _parts(service: Served, path: str, headers: dict[str, str] | None = None) -> list[Any]:
    """All answers, from the first to that without a next one."""
    found = []
    where = path
    while where:
        answer = service.ask("GET", f"/api/v1{where}", headers=headers)
        assert answer.status == 200 and len(answer.content) < MOST + 1_500
        found.append(answer.content if headers else answer.json)
        link = answer.headers.get("link", "")
        where = where.partition("?")[0] + link[1 : link.index(">")] if link else ""
    return found


def test_a_name_of_many_nodes_comes_in_parts_which_leave_nothing_out(small: Served) -> None:
    parts = _parts(small, "/data/a")
    assert len(parts) > 2
    assert [row["node_name"] for part in parts for row in part["values"]] == NODES
    assert {part["data_name"] for part in parts} == {"a"}
    assert (
        [datum.node_name for datum in small.reader.data("a")] == NODES == [d.node_name for d in small.reader.data("a")]
    )
    filtered = _parts(small, "/data/a?max_age=1000")
    assert [row["node_name"] for part in filtered for row in part["values"]] == NODES and len(filtered) > 2


def test_several_names_come_in_parts_in_the_order_in_which_they_were_asked_for(small: Served) -> None:
    parts = _parts(small, "/data?name=b&name=few&name=a")
    rows = [(one["data_name"], row["node_name"]) for part in parts for one in part["data"] for row in one["values"]]
    assert rows == [*(("b", node) for node in NODES), ("few", "n00"), *(("a", node) for node in NODES)]
    found = small.reader.data_many(["b", "few", "a"])
    assert {name: len(data) for name, data in found.items()} == {"b": 12, "few": 1, "a": 12}
    assert _parts(small, "/data?name=few&name=few&node=n00")[0]["data"][0]["values"][0]["data_value"] == "1"
    assert small.ask("GET", "/api/v1/data?name=a&name=nothing").status == 404


def test_an_arrow_stream_comes_in_parts_too(small: Served) -> None:
    tables = [pa.ipc.open_stream(io.BytesIO(part)).read_all() for part in _parts(small, "/data?name=a&name=b", ARROW)]
    assert len(tables) > 2
    rows = [(row["data_name"], row["node_name"]) for table in tables for row in table.to_pylist()]
    assert rows == [(name, node) for name in ("a", "b") for node in NODES]


@pytest.mark.parametrize(
    ("path", "key", "name", "number"),
    [("/nodes", "nodes", "node_name", 12), ("/producers", "producers", "data_name", 15),
     ("/nodes/n00/slots", "slots", "data_name", 12)],
)  # fmt: skip
def test_lists_come_in_parts(small: Served, path: str, key: str, name: str, number: int) -> None:
    parts = _parts(small, path)
    names = [row[name] for part in parts for row in part[key]]
    assert len(parts) > 1 and names == sorted(set(names)) and len(names) == number


def test_the_client_puts_lists_together(small: Served) -> None:
    assert [node.node_name for node in small.client.nodes()] == NODES
    assert len(small.client.producers()) == 15
    wanted = small.client.slots("n00")
    assert (wanted.node_name, len(wanted.slots)) == ("n00", 12) and wanted.version > 0


def test_what_fits_comes_whole_and_names_no_next_part(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("a", "", 60, Kind.PROGRAM))
        for node in NODES:
            service.client.put_value("a", node, 1)
        for path in ("/data/a", "/data?name=a", "/data/a?max_age=9", "/nodes", "/producers"):
            answer = service.ask("GET", f"/api/v1{path}")
            assert (answer.status, answer.headers.get("link")) == (200, None)
        assert len(service.ask("GET", "/api/v1/data/a").json["values"]) == 12
