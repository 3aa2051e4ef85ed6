"""What a token may store: values of enrolled nodes, and so many bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infosvc.access import body_limit
from infosvc.core.service import components_of
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound, TooLarge, TooManyRequests
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

Holder = Callable[[Role], InfoClient]
NODES = tuple(f"n{number}" for number in range(8))


def _known(service: Served) -> Served:
    """One name that a collector brings, two that programs write, one of which is kept, and eight nodes."""
    service.client.put_producer(Producer("cpu", "x", 1))
    service.client.put_producer(Producer("note", "", 60, Kind.PROGRAM))
    service.client.put_producer(Producer("speed", "", 60, Kind.PROGRAM, keep=3600))
    for name in NODES:
        service.client.put_node(name, "127.0.0.1:9")
    return service


@pytest.fixture
def small(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service that holds little."""
    with serve(sqlite_url, hands, bytes_per_name=1000, bytes_per_token=4000, bytes_in_all=1500) as service:
        yield _known(service)


def _holder(service: Served, role: Role = Role.PROCESSOR, name: str = "job") -> InfoClient:
    return InfoClient(service.url, service.client.create_token(name, role)[1], timeout=60, retries=0)


@pytest.mark.parametrize("role", [Role.PROCESSOR, Role.SCHEDULER])
def test_a_token_that_jobs_are_lent_writes_values_of_enrolled_nodes_only(small: Served, role: Role) -> None:
    job = _holder(small, role)
    job.put_value("note", "n1", "mine")
    with pytest.raises(
        NotFound, match=r"no node is called 'invented'.*nodewise node add invented.*--any-node"
    ) as error:
        job.put_value("note", "invented", "x")
    assert error.value.field == "node_name"
    small.client.put_value("note", "invented", "an admin's")
    assert [datum.node_name for datum in small.reader.data("note")] == ["invented", "n1"]


def test_where_an_admin_says_so_programs_write_of_any_node_and_collectors_names_stay_with_the_nodes(
    sqlite_url: str, serve: Serving
) -> None:
    with serve(sqlite_url, any_node=True) as service:
        job = _holder(_known(service))
        job.put_value("note", "elsewhere", "taken")
        with pytest.raises(NotFound, match="no node is called 'elsewhere'"):
            job.put_value("cpu", "elsewhere", 1)
        job.put_value("cpu", "n1", 1)


def test_a_name_holds_so_many_bytes_until_some_are_forgotten_or_shorter(small: Served) -> None:
    for node in ("n1", "n2"):
        small.client.put_value("note", node, "x" * 500)
    with pytest.raises(TooLarge, match=r"the values of note would have 1001 bytes and may have 1000.*--bytes-per-name"):
        small.client.put_value("note", "n3", "x")
    with pytest.raises(TooLarge):
        small.client.put_value("note", "n1", "é" * 251)
    small.client.put_value("note", "n1", "é" * 249)
    small.client.put_value("note", "n3", "xx")
    small.client.delete_value("note", "n2")
    small.client.put_value("note", "n4", "x" * 498)


def test_all_names_together_hold_so_many_bytes_and_reports_are_taken_all_the_same(small: Served) -> None:
    small.client.put_value("note", "n1", "x" * 1000)
    small.client.put_value("cpu", "n1", "x" * 500)
    with pytest.raises(TooLarge, match=r"all values together would have 1501 bytes and may have 1500.*--bytes-in-all"):
        small.client.put_value("speed", "n1", "x")
    small.client.report("n2", Report("b", 1, "", (Run("cpu", Outcome.OK, 0.1, "0.5"),)))
    assert small.client.data("cpu", node="n2")[0].data_value == "0.5"


def test_what_is_held_is_counted_again_after_a_restart(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, bytes_per_name=1000) as service:
        _known(service).client.put_value("note", "n1", "x" * 900)
    with serve(sqlite_url, bytes_per_name=1000) as service:
        with pytest.raises(TooLarge):
            service.client.put_value("note", "n2", "x" * 101)
        assert components_of(service.server.app).latest.current_values.size("note") == 900


def test_a_token_writes_so_much_an_hour_and_history_counts_twice(small: Served, hands: Hands) -> None:
    job, other = _holder(small), _holder(small, name="other")
    for _ in range(5):
        job.put_value("speed", "n1", "x" * 400)
    answer = small.ask("PUT", "/api/v1/data/note/n1", {"data_value": "x"}, token=job._token)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert "a token may write 4000 bytes of values an hour" in answer.error["message"]
    assert "--bytes-per-token" in answer.error["message"]
    other.put_value("note", "n1", "x")
    hands.turn(1800)
    for _ in range(2):
        job.put_value("note", "n1", "x" * 900)
    with pytest.raises(TooManyRequests):
        job.put_value("note", "n1", "x" * 900)


def test_writers_at_once_store_no_more_than_one_after_the_other(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, bytes_per_name=10_000, bytes_per_token=100_000) as service:
        job = _holder(_known(service))

        def write(number: int) -> bool:
            try:
                job.put_value(("note", "speed")[number % 2], NODES[number % 8], "x" * (3000 + number))
            except InfoError:
                return False
            return True

        with ThreadPoolExecutor(24) as pool:
            taken = list(pool.map(write, range(200)))
        values = components_of(service.server.app).latest.current_values
        assert 0 < values.size() == sum(values.size(name) for name in ("note", "speed")) <= 20_000
        assert 9000 < values.size("note") <= 10_000 and 0 < sum(taken) < 40


def test_a_flood_of_a_lent_token_fills_neither_memory_nor_disk_and_agents_report_all_the_while(
    tmp_path: Path, serve: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 connections write 600 long values under many names, of enrolled and invented nodes, kept as history too."""
    # Of these bodies two are read at a time; on a busy machine the others may have to wait for longer than usual.
    monkeypatch.setattr(body_limit, "PATIENCE_SECONDS", 60.0)
    limits = {"bytes_per_name": 100_000, "bytes_per_token": 800_000, "bytes_in_all": 600_000, "max_answer": 80_000}
    with serve(f"sqlite:///{tmp_path}/infosvc.db", **limits) as service:
        job = _holder(_known(service))
        names = [f"speed{number}" for number in range(10)]
        for name in names:
            service.client.put_producer(Producer(name, "", 60, Kind.PROGRAM, keep=3600))

        def write(number: int) -> int:
            node = NODES[number % 8] if number % 3 else f"invented{number}"
            try:
                job.put_value(names[number // 8 % 10], node, chr(97 + number % 26) * 20_000)
            except InfoError as error:
                return error.status
            return 200

        with ThreadPoolExecutor(24) as pool:
            answers = Counter(pool.map(write, range(600)))
            for sequence in range(1, 6):
                service.client.report("n1", Report("b", sequence, "", (Run("cpu", Outcome.OK, 0.1, str(sequence)),)))
        assert set(answers) <= {200, 404, 413, 429} and 0 < answers[200] <= 800_000 // 40_000
        assert components_of(service.server.app).latest.current_values.size() <= 600_000
        assert sum(file.stat().st_size for file in tmp_path.glob("infosvc.db*")) < 6_000_000
        assert all(len(service.ask("GET", f"/api/v1/data/{name}", token=None).content) < 110_000 for name in names)
        assert len(service.ask("GET", f"/api/v1/data?name={'&name='.join(names)}", token=None).content) < 110_000
