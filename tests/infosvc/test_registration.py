"""The registration service over HTTP, on SQLite and MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infosvc.errors import InvalidInput, NotFound, PreconditionFailed
from infosvc.records import Kind, Producer, Scope

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served

CPU = Producer("cpu_free_ratio", "scripts/cpu_free_ratio.sh", 2.0, unit="ratio", help="Idle share")


def test_a_registered_producer_is_listed_as_it_was_given(service: Served) -> None:
    full = Producer(
        "perf",
        'processors/perf.py "two words"',
        3.5,
        Kind.PROCESSOR,
        Scope.CLUSTER,
        2,
        9.0,
        60.0,
        "1",
        "é",
        7.0,
        "a" * 64,
    )
    service.client.put_producer(full)
    service.client.put_producer(CPU)
    stored = {producer.data_name: producer for producer in service.reader.producers()}
    assert list(stored) == ["cpu_free_ratio", "perf"]
    assert stored["perf"].to_json() == full.to_json() | {"version": 1}
    assert service.reader.producer("cpu_free_ratio").ttl == 6.0


def test_put_answers_201_for_a_new_name_and_200_for_a_known_one(service: Served) -> None:
    body = {"cmd": "a", "time_max": 1}
    assert service.ask("PUT", "/api/v1/producers/a", body).status == 201
    assert service.ask("PUT", "/api/v1/producers/a", body).status == 200


def test_version_grows_with_each_change_and_not_without_one(service: Served) -> None:
    assert service.client.put_producer(CPU).version == 1
    assert service.client.put_producer(CPU).version == 1
    assert service.client.put_producer(Producer("cpu_free_ratio", "other", 2.0)).version == 2


def test_if_match_lets_only_one_of_two_writers_through(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_producer(Producer("cpu_free_ratio", "first", 2.0), if_match=1)
    with pytest.raises(PreconditionFailed, match="has version 2, not version 1"):
        service.client.put_producer(Producer("cpu_free_ratio", "second", 2.0), if_match=1)
    assert service.reader.producer("cpu_free_ratio").cmd == "first"
    with pytest.raises(PreconditionFailed, match="is not registered"):
        service.client.put_producer(Producer("new", "x", 2.0), if_match=1)
    assert service.ask("DELETE", "/api/v1/producers/cpu_free_ratio", headers={"If-Match": '"1"'}).status == 412
    assert service.ask("PUT", "/api/v1/producers/a", {}, headers={"If-Match": "x"}).status == 422


def test_deleting_a_producer_takes_its_slots_and_values_along(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.put_slot("n1", "cpu_free_ratio", True)
    service.client.put_value("cpu_free_ratio", "n1", 0.5)
    before = service.reader.slots("n1").version
    service.client.delete_producer("cpu_free_ratio")
    assert service.reader.slots("n1").slots == ()
    assert service.reader.slots("n1").version > before
    with pytest.raises(NotFound):
        service.reader.data("cpu_free_ratio")
    service.client.put_producer(CPU)
    assert service.reader.data("cpu_free_ratio") == []


def test_names_that_differ_only_in_case_are_two(service: Served) -> None:
    service.client.put_producer(Producer("load", "a", 1))
    service.client.put_producer(Producer("LOAD", "b", 1))
    assert [producer.cmd for producer in service.reader.producers()] == ["b", "a"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("time_max", None),
        ("time_max", 0),
        ("time_max", -1),
        ("time_max", "5"),
        ("time_max", True),
        ("time_max", 10**400),
        ("timeout", 0),
        ("ttl", -5),
        ("keep", -1),
        ("replicas", 0),
        ("replicas", 1.5),
        ("replicas", 2**40),
        ("kind", "sensor"),
        ("kind", ["collector"]),
        ("scope", 7),
        ("cmd", None),
        ("cmd", ""),
        ("cmd", "   "),
        ("cmd", "'' x"),
        ("cmd", 'a "b'),
        ("cmd", "a\0b"),
        ("cmd", ["a"]),
        ("cmd", "x" * 5000),
        ("unit", "u" * 65),
        ("sha256", "A" * 64),
        ("sha256", "a" * 63),
        ("sha256", 3),
    ],
)
def test_a_wrong_field_is_refused_by_name(service: Served, field: str, value: Any) -> None:
    answer = service.ask("PUT", "/api/v1/producers/a", {"cmd": "a", "time_max": 1} | {field: value})
    assert (answer.status, answer.error["code"], answer.error["field"]) == (422, "invalid_input", field)
    assert field in answer.error["message"]
    assert service.reader.producers() == []


@pytest.mark.parametrize("name", ["1a", "a%20b", "a%2Fb", "%C3%A9", "a" * 129, "a%0A"])
def test_a_name_outside_the_rule_is_refused(service: Served, name: str) -> None:
    answer = service.ask("PUT", f"/api/v1/producers/{name}", {"cmd": "a", "time_max": 1})
    assert answer.status in (404, 422)
    assert answer.error["message"]
    assert service.reader.producers() == []


def test_a_program_needs_no_command(service: Served) -> None:
    stored = service.client.put_producer(Producer("speed", "", 60, Kind.PROGRAM))
    assert (stored.cmd, stored.kind) == ("", Kind.PROGRAM)


def test_a_number_that_is_not_finite_never_leaves_the_client(service: Served) -> None:
    with pytest.raises(InvalidInput, match="finite"):
        service.client.put_producer(Producer("a", "a", float("nan")))


def test_an_unknown_name_is_answered_with_its_neighbours(service: Served) -> None:
    service.client.put_producer(CPU)
    with pytest.raises(NotFound, match=r"nodewise producer put cpu_fre_ratio.*close to it: cpu_free_ratio"):
        service.reader.producer("cpu_fre_ratio")


def test_what_a_body_leaves_out_gets_its_default(service: Served) -> None:
    stored = service.ask("PUT", "/api/v1/producers/cpu", {"cmd": "x", "time_max": 2}).json
    assert stored == Producer("cpu", "x", 2.0).to_json() | {"version": 1}
    assert stored["ttl"] == 6.0
