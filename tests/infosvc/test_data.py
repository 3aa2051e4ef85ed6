"""The data service over HTTP: values with age and state, and the batches of agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Outcome, Producer, Receipt, Report, Run, State

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served

CPU = Producer("cpu", "scripts/cpu.sh", 2.0, ttl=6.0, unit="ratio")


def _enrol(service: Served) -> Served:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    return service


@pytest.fixture
def enrolled(service: Served) -> Served:
    """A service that knows one producer and one node."""
    return _enrol(service)


@pytest.fixture(scope="module")
def refusing(shared_service: Served) -> Served:
    """The same, for tests of which it takes nothing."""
    return _enrol(shared_service)


def _report(service: Served, sequence: int, outcome: Outcome, **said: Any) -> Receipt:
    return service.client.report("n1", Report("boot", sequence, "1", (Run("cpu", outcome, 0.1, **said),)))


def _only(service: Served) -> Datum:
    [datum] = service.reader.data("cpu")
    return datum


def test_a_reported_value_carries_age_ttl_unit_and_state(enrolled: Served, hands: Hands) -> None:
    _report(enrolled, 1, Outcome.OK, value="0.93", age=1.5)
    hands.turn(2)
    assert _only(enrolled) == Datum("cpu", "n1", "0.93", 3.5, 6.0, State.FRESH, Outcome.OK, None, "ratio")


def test_a_value_is_stale_when_it_is_older_than_its_ttl(enrolled: Served, hands: Hands) -> None:
    _report(enrolled, 1, Outcome.OK, value="1")
    hands.turn(6)
    assert _only(enrolled).state is State.FRESH
    hands.turn(0.5)
    assert _only(enrolled).state is State.STALE


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMEOUT, Outcome.REFUSED])
def test_a_failed_run_leaves_the_old_value_and_its_time(enrolled: Served, hands: Hands, outcome: Outcome) -> None:
    _report(enrolled, 1, Outcome.OK, value="7")
    hands.turn(3)
    _report(enrolled, 2, outcome, reason="no such file")
    datum = _only(enrolled)
    assert (datum.data_value, datum.age, datum.state) == ("7", 3.0, State.FAILED)
    assert (datum.outcome, datum.reason) == (outcome, "no such file")
    _report(enrolled, 3, Outcome.OK, value="8")
    assert (_only(enrolled).data_value, _only(enrolled).state, _only(enrolled).reason) == ("8", State.FRESH, None)


def test_a_run_without_data_ages_the_old_value_and_does_not_fail_it(enrolled: Served, hands: Hands) -> None:
    _report(enrolled, 1, Outcome.OK, value="7")
    _report(enrolled, 2, Outcome.NO_DATA)
    assert (_only(enrolled).state, _only(enrolled).outcome) == (State.FRESH, Outcome.NO_DATA)
    hands.turn(7)
    assert (_only(enrolled).data_value, _only(enrolled).state) == ("7", State.STALE)


def test_a_name_whose_runs_never_brought_a_value_has_a_row_without_one(enrolled: Served) -> None:
    _report(enrolled, 1, Outcome.NO_DATA)
    datum = _only(enrolled)
    assert (datum.data_value, datum.age, datum.state) == (None, None, State.STALE)
    _report(enrolled, 2, Outcome.FAILED, reason="x")
    assert (_only(enrolled).data_value, _only(enrolled).state) == (None, State.FAILED)
    assert enrolled.reader.data("cpu", max_age=100) == []


def test_a_batch_that_is_sent_twice_is_taken_once(enrolled: Served, hands: Hands) -> None:
    first = _report(enrolled, 1, Outcome.OK, value="1")
    _report(enrolled, 2, Outcome.OK, value="2")
    hands.turn(1)
    assert _report(enrolled, 1, Outcome.OK, value="1") == first
    assert _report(enrolled, 2, Outcome.OK, value="changed") == first
    kept = _only(enrolled)
    assert (kept.data_value, kept.age) == ("2", 1.0)
    again = Report("another boot", 1, "1", (Run("cpu", Outcome.OK, 0.1, "3"),))
    enrolled.client.report("n1", again)
    assert _only(enrolled).data_value == "3"


def test_a_report_of_an_unknown_node_is_refused(enrolled: Served) -> None:
    with pytest.raises(NotFound, match="nodewise node add n2"):
        enrolled.client.report("n2", Report("boot", 1))


def test_runs_of_a_forgotten_producer_do_not_spoil_the_batch(enrolled: Served) -> None:
    runs = (Run("gone", Outcome.OK, 0.1, "1"), Run("cpu", Outcome.OK, 0.1, "2"))
    enrolled.client.report("n1", Report("boot", 1, "1", runs))
    assert _only(enrolled).data_value == "2"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"boot": ""}, "boot"),
        ({"boot": None}, "boot"),
        ({"sequence": -1}, "sequence"),
        ({"sequence": 2**70}, "sequence"),
        ({"runs": None}, "runs"),
        ({"runs": ["x"]}, "runs[0]"),
        ({"runs": [{}]}, "runs[0].data_name"),
        ({"runs": [{"data_name": "cpu", "outcome": "ok", "duration": 1}]}, "runs[0].value"),
        ({"runs": [{"data_name": "cpu", "outcome": "maybe", "duration": 1}]}, "runs[0].outcome"),
        ({"runs": [{"data_name": "cpu", "outcome": "failed", "duration": -1}]}, "runs[0].duration"),
        ({"runs": [{"data_name": "cpu", "outcome": "failed", "duration": 1, "age": -1}]}, "runs[0].age"),
    ],
)
def test_a_wrong_report_is_refused_whole_and_by_field(refusing: Served, change: dict[str, Any], field: str) -> None:
    body = {"boot": "b", "sequence": 1, "runs": []} | change
    answer = refusing.ask("POST", "/api/v1/nodes/n1/report", body)
    assert (answer.status, answer.error["field"]) == (422, field)
    assert refusing.reader.data("cpu") == []


def test_a_long_reason_keeps_its_end(enrolled: Served) -> None:
    _report(enrolled, 1, Outcome.FAILED, reason="x" * 9000 + "the end")
    reason = _only(enrolled).reason
    assert reason is not None and reason.endswith("the end") and len(reason) == 4000


def test_max_age_and_node_choose_among_the_values(enrolled: Served, hands: Hands) -> None:
    for name in ("n3", "n1", "n2"):
        enrolled.client.put_value("cpu", name, name)
        hands.turn(1)
    assert [datum.node_name for datum in enrolled.reader.data("cpu")] == ["n1", "n2", "n3"]
    assert [datum.node_name for datum in enrolled.reader.data("cpu", max_age=2)] == ["n1", "n2"]
    assert [datum.node_name for datum in enrolled.reader.data("cpu", node="n3")] == ["n3"]
    assert enrolled.reader.data("cpu", node="n9") == []
    for wrong in ("-1", "nan", "inf", "x", ""):
        answer = enrolled.ask("GET", f"/api/v1/data/cpu?max_age={wrong}")
        assert (answer.status, answer.error["field"]) == (422, "max_age")


def test_several_names_come_in_one_answer(enrolled: Served) -> None:
    enrolled.client.put_producer(Producer("load", "x", 1, unit="1"))
    enrolled.client.put_value("load", "n1", 3)
    found = enrolled.ask("GET", "/api/v1/data?name=load&name=cpu&name=load").json["data"]
    assert [(entry["data_name"], entry["unit"], len(entry["values"])) for entry in found] == [
        ("load", "1", 1),
        ("cpu", "ratio", 0),
    ]
    assert enrolled.ask("GET", "/api/v1/data?name=cpu&name=nothing").status == 404
    for names, known in (("name=nothing&name=load", ["load"]), ("name=nothing", [])):
        some = enrolled.ask("GET", f"/api/v1/data?{names}&skip_unknown=true")
        assert [entry["data_name"] for entry in some.json["data"]] == known
    assert enrolled.ask("GET", "/api/v1/data?name=nothing&skip_unknown=false").status == 404
    assert enrolled.ask("GET", "/api/v1/data?name=cpu&skip_unknown=yes").error["field"] == "skip_unknown"
    assert enrolled.ask("GET", "/api/v1/data").error["field"] == "name"


def test_one_value_can_be_written_read_and_forgotten(enrolled: Served) -> None:
    assert enrolled.ask("PUT", "/api/v1/data/cpu/n1", {"data_value": "a\nb é \U0001f600"}).status == 201
    assert enrolled.ask("PUT", "/api/v1/data/cpu/n1", {"data_value": 0.25}).status == 200
    answer = enrolled.ask("GET", "/api/v1/data/cpu/n1", token=None)
    assert (answer.json["data_value"], answer.json["unit"]) == ("0.25", "ratio")
    enrolled.client.delete_value("cpu", "n1")
    answer = enrolled.ask("GET", "/api/v1/data/cpu/n1")
    assert (answer.status, answer.error["field"]) == (404, "node_name")
    assert enrolled.ask("DELETE", "/api/v1/data/cpu/n1").status == 404


def test_a_program_writes_its_own_value(enrolled: Served) -> None:
    enrolled.client.put_producer(Producer("speed", "", 60, Kind.PROGRAM))
    enrolled.client.put_value("speed", "n1", 12.5)
    [datum] = enrolled.reader.data("speed")
    assert datum.number() == 12.5


def test_an_unregistered_name_is_refused_with_the_remedy(enrolled: Served) -> None:
    for call in (lambda: enrolled.client.put_value("cpus", "n1", 1), lambda: enrolled.reader.data("cpus")):
        with pytest.raises(NotFound, match=r"nodewise producer put cpus .*close to it: cpu$"):
            call()


@pytest.mark.parametrize("value", [None, True, [], {}, "x" * 65_536, "é" * 40_000, 10**400])
def test_a_value_that_is_no_text_or_too_long_is_refused(refusing: Served, value: Any) -> None:
    answer = refusing.ask("PUT", "/api/v1/data/cpu/n1", {"data_value": value})
    assert (answer.status, answer.error["field"]) == (422, "data_value")
    assert len(answer.error["message"]) < 300
    assert refusing.reader.data("cpu") == []


def test_the_longest_value_is_kept_whole(enrolled: Served) -> None:
    enrolled.client.put_value("cpu", "n1", "é" * 32_767)
    assert _only(enrolled).data_value == "é" * 32_767


ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.mark.parametrize("sent", [{}, ARROW], ids=["JSON", "Arrow"])
@pytest.mark.parametrize("path", ["/data/cpu", "/data/cpu?node=n1", "/data?name=cpu&name=other&node=n1"])
def test_every_form_of_values_has_a_tag_until_something_changes(
    service: Served, path: str, sent: dict[str, str]
) -> None:
    for name in ("cpu", "other"):
        service.client.put_producer(Producer(name, "", 60, Kind.PROGRAM))
        service.client.put_value(name, "n1", "1")
    whole = service.ask("GET", f"/api/v1{path}", headers=sent)
    tag = whole.headers["etag"]
    assert whole.status == 200 and whole.headers["vary"] == "Accept"
    for asked in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        answer = service.ask("GET", f"/api/v1{path}", headers=sent | {"If-None-Match": asked})
        assert (answer.status, answer.text, answer.headers["etag"]) == (304, "", tag), asked
        assert answer.headers["vary"] == "Accept"
    assert service.ask("GET", f"/api/v1{path}", headers=sent | {"If-None-Match": 'W/"x", "y"'}).status == 200
    other = {} if sent else ARROW
    assert service.ask("GET", f"/api/v1{path}", headers=other | {"If-None-Match": tag}).status == 200
    service.client.put_value("cpu", "n1", "2")
    assert service.ask("GET", f"/api/v1{path}", headers=sent | {"If-None-Match": tag}).status == 200


def test_values_of_a_largest_age_have_no_tag(service: Served) -> None:
    service.client.put_producer(Producer("cpu", "", 60, Kind.PROGRAM))
    for sent in ({}, ARROW):
        answer = service.ask("GET", "/api/v1/data/cpu?max_age=5", headers=sent | {"If-None-Match": "*"})
        assert answer.status == 200 and "etag" not in answer.headers and answer.headers["vary"] == "Accept"


def test_history_that_is_older_than_it_is_kept_is_not_given(service: Served, hands: Hands) -> None:
    service.client.put_producer(Producer("cpu", "", 60, Kind.PROGRAM, keep=10))
    begun = hands.epoch + hands.now
    for value in ("1", "2", "3"):
        service.client.put_value("cpu", "n1", value)
        hands.turn(6)
    said = service.client.history("cpu", "n1", begun - 100)
    assert [value for _, value in said.points] == ["3"]
    assert said.since == hands.epoch + hands.now - 10 and said.points[0][0] >= said.since
