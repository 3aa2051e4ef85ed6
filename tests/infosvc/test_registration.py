"""The registration service over HTTP, on SQLite and MariaDB."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.registration.rules import refuse_contradictions
from infosvc.state.configuration import Configuration
from infosvc.wire.answers import PastRun
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, InfoError, InvalidInput, NotFound, PreconditionFailed
from infosvc.wire.records import Kind, Outcome, Producer, Role, Scope, Slot

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


def test_only_a_new_name_may_be_registered_where_that_is_asked(service: Served) -> None:
    new = {"If-None-Match": "*"}
    body = {"cmd": "a", "time_max": 1}
    assert service.ask("PUT", "/api/v1/producers/a", body, headers=new).status == 201
    answer = service.ask("PUT", "/api/v1/producers/a", body | {"cmd": "b"}, headers=new)
    assert (answer.status, answer.error["field"]) == (412, "If-None-Match")
    assert answer.error["message"].startswith("already registered: a has version 1 and runs 'a'; choose another name")
    assert service.reader.producer("a").cmd == "a"
    assert service.ask("PUT", "/api/v1/producers/a", body, headers={"If-None-Match": '"1"'}).status == 422


def _at_once(jobs: list[Callable[[], Producer]]) -> list[Producer | InfoError]:
    """What each job brings, all started at the same moment."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Producer]) -> Producer | InfoError:
        start.wait(30)
        try:
            return job()
        except InfoError as error:
            return error

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def test_of_64_writers_at_one_name_one_registers_it_and_one_wins_each_version(service: Served) -> None:
    tokens = [service.client.create_token(f"writer-{number}", Role.ADMIN)[1] for number in range(64)]

    def writer(number: int, version: int) -> Callable[[], Producer]:
        wanted = Producer("cpu", f"writer-{number}-{version}", 2.0)
        guard: dict[str, Any] = {"if_match": version} if version else {"new": True}
        return lambda: InfoClient(service.url, tokens[number], 60).put_producer(wanted, **guard)

    for version in range(3):
        said = _at_once([writer(number, version) for number in range(64)])
        won = [stored for stored in said if isinstance(stored, Producer)]
        assert [stored.version for stored in won] == [version + 1]
        assert service.reader.producer("cpu") == won[0]
        assert {type(lost) for lost in said if lost not in won} == {PreconditionFailed}


def test_what_a_producer_emits_is_registered_with_it(service: Served) -> None:
    disk = Producer("disk", "scripts/disk.sh", 5.0, ttl=20.0, keep=60.0, emits=("disk_free", "disk_used"))
    service.client.put_producer(disk)
    free = service.reader.producer("disk_free")
    assert (free.kind, free.cmd, free.time_max, free.ttl, free.keep) == (Kind.EMITTED, disk.cmd, 5.0, 20.0, 60.0)
    assert (free.emits, free.unit) == ((), "")
    service.client.put_producer(replace(free, unit="bytes", help="Left", ttl=7.0, keep=0.0), if_match=1)
    service.client.put_producer(replace(disk, time_max=9.0, ttl=30.0, emits=("disk_free", "disk_rate")))
    free = service.reader.producer("disk_free")
    assert (free.unit, free.help, free.ttl, free.keep, free.time_max) == ("bytes", "Left", 7.0, 0.0, 9.0)
    assert [found.data_name for found in service.reader.producers()] == ["disk", "disk_free", "disk_rate"]
    service.client.delete_producer("disk")
    assert service.reader.producers() == []


def test_an_emitted_name_belongs_to_its_producer(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_producer(Producer("disk", "d", 5.0, emits=("disk_free",)))
    free = service.reader.producer("disk_free")
    with pytest.raises(Conflict, match="only its unit, help, ttl and keep"):
        service.client.put_producer(replace(free, time_max=1.0))
    with pytest.raises(Conflict, match="only its unit, help, ttl and keep"):
        service.client.put_producer(Producer("disk_free", "mine", 5.0))
    with pytest.raises(Conflict, match="disk_free is emitted by disk already"):
        service.client.put_producer(Producer("other", "o", 5.0, emits=("disk_free",)))
    with pytest.raises(Conflict, match="registered already as a producer of its own"):
        service.client.put_producer(Producer("other", "o", 5.0, emits=("cpu_free_ratio",)))
    with pytest.raises(Conflict, match="disk_free is needed by disk"):
        service.client.delete_producer("disk_free")
    service.client.put_node("n1", "127.0.0.1:9")
    with pytest.raises(Conflict, match="kind emitted"):
        service.client.put_slot("n1", "disk_free", True)


def test_what_is_an_input_cannot_be_taken_away(service: Served) -> None:
    service.client.put_producer(CPU)
    disk = service.client.put_producer(Producer("disk", "d", 5.0, emits=("disk_free", "disk_used")))
    service.client.put_producer(Producer("perf", "p", 5.0, Kind.PROCESSOR, inputs=("disk_free", "cpu_free_ratio")))
    for name in ("cpu_free_ratio", "disk"):
        with pytest.raises(Conflict, match=f"{name} is needed by perf"):
            service.client.delete_producer(name)
    with pytest.raises(Conflict, match="disk_free cannot be left out of emits: perf needs it") as refused:
        service.client.put_producer(replace(disk, emits=("disk_used",)))
    assert refused.value.field == "emits"
    with pytest.raises(Conflict, match="cannot be left out"):
        service.client.put_producer(replace(disk, emits=("disk_free",), inputs=("disk_used",)))
    service.client.put_producer(replace(disk, emits=("disk_free",)))
    service.client.delete_producer("perf")
    service.client.delete_producer("disk")


def test_a_circle_is_refused_and_named(service: Served) -> None:
    service.client.put_producer(Producer("a", "a", 1, Kind.PROCESSOR, emits=("a1",)))
    service.client.put_producer(Producer("b", "b", 1, Kind.PROCESSOR, inputs=("a1",)))
    c = service.client.put_producer(Producer("c", "c", 1, Kind.PROCESSOR, inputs=("b",)))
    with pytest.raises(Conflict, match="inputs form a cycle: a <- c <- b <- a;") as refused:
        service.client.put_producer(Producer("a", "a", 1, Kind.PROCESSOR, emits=("a1",), inputs=("c",)))
    assert refused.value.field == "inputs"
    with pytest.raises(Conflict, match="inputs form a cycle: c <- c;"):
        service.client.put_producer(replace(c, inputs=("b", "c")))
    with pytest.raises(Conflict, match="inputs form a cycle: a <- a;"):
        service.client.put_producer(Producer("a", "a", 1, Kind.PROCESSOR, emits=("a1",), inputs=("a1",)))


def test_a_chain_of_two_thousand_processors_is_no_trouble() -> None:
    """A search that recursed would end in the middle of it."""
    chain = [Producer(f"p{n}", "x", 1, Kind.PROCESSOR, inputs=(f"p{n - 1}",) if n else ()) for n in range(2000)]
    configuration = Configuration({found.data_name: found for found in chain})
    refuse_contradictions(configuration, replace(chain[0], cmd="y"))
    with pytest.raises(Conflict, match="cycle"):
        refuse_contradictions(configuration, replace(chain[0], inputs=("p1999",)))


def test_deleting_takes_only_the_version_that_is_named(service: Served) -> None:
    service.client.put_producer(CPU)
    with pytest.raises(PreconditionFailed):
        service.client.delete_producer("cpu_free_ratio", if_match=2)
    service.client.delete_producer("cpu_free_ratio", if_match=1)
    assert service.reader.producers() == []


def test_swagger_describes_every_answer_of_registration_and_management(service: Served) -> None:
    document = service.ask("GET", "/api/v1/swagger.json").json
    for path, found in document["paths"].items():
        if path.startswith("/producers") or "/slots" in path:
            for method in ("get", "put", "delete"):
                answers = found.get(method, {}).get("responses", {"204": {}})
                assert all("schema" in said for status, said in answers.items() if status != "204"), (path, method)
    body = document["definitions"]["ProducerBody"]["properties"]
    assert set(body) == set(Producer("a", "a", 1).to_json()) - {"data_name", "version"}
    assert set(document["definitions"]["Slot"]["properties"]) == set(Slot("a", "a", 1).to_json())
    assert set(document["definitions"]["PastRun"]["properties"]) == set(PastRun(1.0, Outcome.OK, 1.0).to_json())


def test_deleting_a_producer_takes_its_slots_and_values_along(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.put_value("cpu_free_ratio", "n1", 0.5)
    service.client.put_slot("n1", "cpu_free_ratio", True)
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


WRONG_FIELDS: list[tuple[str, Any]] = [
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
    ("kind", "emitted"),
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
    ("unit", 1),
    ("help", "h" * 4097),
    ("sha256", "A" * 64),
    ("sha256", "a" * 63),
    ("sha256", 3),
    ("emits", "one"),
    ("emits", ["one", "one"]),
    ("emits", [1]),
    ("emits", ["a"]),
    ("inputs", {"one": 1}),
    ("inputs", ["nobody"]),
    ("inputs", ["x"] * 1001),
]


def test_a_wrong_field_is_refused_by_name(service: Served) -> None:
    for field, value in WRONG_FIELDS:
        answer = service.ask("PUT", "/api/v1/producers/a", {"cmd": "a", "time_max": 1} | {field: value})
        assert (answer.status, answer.error["code"], answer.error["field"]) == (422, "invalid_input", field), value
        assert field.rstrip("s") in answer.error["message"]
    answer = service.ask("PUT", "/api/v1/producers/a", {"cmd": "a", "time_max": 1, "emits": ["a b"]})
    assert (answer.status, answer.error["field"]) == (422, "emits[0]")
    assert service.reader.producers() == []


def test_a_program_neither_emits_nor_waits(service: Served) -> None:
    service.client.put_producer(CPU)
    for field in ("emits", "inputs"):
        body = {"time_max": 1, "kind": "program", field: ["cpu_free_ratio"]}
        answer = service.ask("PUT", "/api/v1/producers/a", body)
        assert (answer.status, answer.error["field"]) == (422, field)


def test_a_name_outside_the_rule_is_refused(service: Served) -> None:
    for name in ("1a", "a%20b", "a%2Fb", "%C3%A9", "a" * 129, "a%0A"):
        answer = service.ask("PUT", f"/api/v1/producers/{name}", {"cmd": "a", "time_max": 1})
        assert answer.status in (404, 422), name
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
    assert stored == Producer("cpu", "x", 2.0).to_json() | {"version": 1, "emits": [], "inputs": []}
    assert stored["ttl"] == 6.0
