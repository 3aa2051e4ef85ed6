"""What readers get: cached bytes with tags, several names at once, Arrow, history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow
import pytest

from infosvc.wire.errors import NotFound
from infosvc.wire.records import Outcome, Producer, Report, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Answer, Hands, Served

CPU = Producer("cpu", "scripts/cpu.sh", 2.0, ttl=6.0, unit="ratio", keep=60.0)
ARROW = "application/vnd.apache.arrow.stream"


def _fill(service: Served) -> Served:
    service.client.put_producer(CPU)
    service.client.put_producer(Producer("model", "scripts/model.sh", 60.0))
    service.client.put_value("cpu", "n1", 0.5)
    service.client.put_value("cpu", "n2", 0.75)
    service.client.put_value("model", "n1", "Xeon")
    return service


@pytest.fixture
def filled(service: Served) -> Served:
    """Two names, two nodes, three values."""
    return _fill(service)


@pytest.fixture(scope="module")
def unchanged(shared_service: Served) -> Served:
    """The same, for tests that leave these values as they are."""
    return _fill(shared_service)


def _read(service: Served, path: str = "/api/v1/data/cpu", etag: str | None = None, **headers: str) -> Answer:
    asked = headers | ({"If-None-Match": etag} if etag else {})
    return service.ask("GET", path, headers=asked)


def _etag(answer: Answer) -> str:
    return next(value for key, value in answer.headers.items() if key.lower() == "etag")


def _rows(answer: Answer) -> dict[str, Any]:
    return {row["node_name"]: row for row in answer.json["values"]}


@pytest.mark.parametrize("path", ["/api/v1/data/cpu", "/api/v1/data?name=cpu", "/api/v1/data?name=cpu&name=model"])
def test_what_has_not_changed_is_304_and_empty(unchanged: Served, path: str) -> None:
    etag = _etag(_read(unchanged, path))
    again = _read(unchanged, path, etag)
    assert (again.status, again.text, _etag(again)) == (304, "", etag)


@pytest.mark.parametrize("path", ["/api/v1/data/cpu", "/api/v1/data?name=model&name=cpu"])
def test_a_written_value_is_in_the_very_next_answer(filled: Served, path: str) -> None:
    etag = _etag(_read(filled, path))
    for number in range(5):
        filled.client.put_value("cpu", "n1", number)
        answer = _read(filled, path, etag)
        assert answer.status == 200
        rows = answer.json if "values" in answer.json else answer.json["data"][-1]
        assert rows["values"][0]["data_value"] == str(number)
        etag = _etag(answer)


def test_a_value_that_goes_stale_changes_the_tag(filled: Served, hands: Hands) -> None:
    fresh = _read(filled)
    hands.turn(5.9)
    assert _read(filled, etag=_etag(fresh)).status == 304
    hands.turn(0.2)
    stale = _read(filled, etag=_etag(fresh))
    assert (stale.status, {row["state"] for row in stale.json["values"]}) == (200, {"stale"})
    assert [row["data_value"] for row in stale.json["values"]] == ["0.5", "0.75"]


def test_ages_grow_though_the_bytes_are_cached(filled: Served, hands: Hands) -> None:
    first = _rows(_read(filled))["n1"]["age"]
    hands.turn(1.5)
    assert _rows(_read(filled))["n1"]["age"] == pytest.approx(first + 1.5, abs=0.01)


def test_a_changed_registration_is_in_the_next_answer(filled: Served) -> None:
    etag = _etag(_read(filled))
    filled.client.put_producer(Producer("cpu", "scripts/cpu.sh", 2.0, ttl=6.0, unit="share"))
    answer = _read(filled, etag=etag)
    assert (answer.status, answer.json["unit"]) == (200, "share")


def test_the_fast_answer_and_the_filtered_one_say_the_same(filled: Served) -> None:
    fast, filtered = _read(filled).json, _read(filled, "/api/v1/data/cpu?max_age=1000").json
    for answer in (fast, filtered):
        answer.pop("time")
        for row in answer["values"]:
            assert row.pop("age") < 5
    assert fast == filtered


def test_several_names_come_in_one_answer_in_the_order_asked(filled: Served) -> None:
    answer = _read(filled, "/api/v1/data?name=model&name=cpu&name=model")
    assert [(part["data_name"], len(part["values"])) for part in answer.json["data"]] == [("model", 1), ("cpu", 2)]
    unknown = _read(filled, "/api/v1/data?name=model&name=nothing")
    assert (unknown.status, unknown.error["field"]) == (404, "data_name")


@pytest.mark.parametrize("path", ["/api/v1/data/cpu", "/api/v1/data?name=cpu"])
def test_arrow_carries_the_same_rows_with_numbers(filled: Served, path: str) -> None:
    filled.client.put_value("cpu", "n3", "not a number")
    body = _read(filled, path, Accept=ARROW).content
    rows = pyarrow.ipc.open_stream(body).read_all().to_pylist()
    assert [(row["node_name"], row["data_value"], row["number"]) for row in rows] == [
        ("n1", "0.5", 0.5),
        ("n2", "0.75", 0.75),
        ("n3", "not a number", None),
    ]
    assert {(row["data_name"], row["unit"], row["state"], row["ttl"]) for row in rows} == {
        ("cpu", "ratio", "fresh", 6.0)
    }


def test_history_keeps_what_was_with_its_statistics(filled: Served, hands: Hands) -> None:
    filled.client.put_node("n1", "127.0.0.1:9")
    for number in range(1, 101):
        hands.turn(0.1)
        filled.client.report("n1", Report("b", number, "1", (Run("cpu", Outcome.OK, 0.1, str(number)),)))
    said = filled.ask("GET", f"/api/v1/data/cpu/n1/history?since={hands.epoch + hands.now - 9.95}").json
    assert (said["count"], said["min"], said["max"], said["unit"]) == (100, 1.0, 100.0, "ratio")
    assert said["mean"] == pytest.approx(50.5)
    assert [said[name] for name in ("p50", "p90", "p99")] == pytest.approx([50.5, 90.1, 99.01])
    times = [at for at, _ in said["points"]]
    assert times == sorted(times)
    assert [text for _, text in said["points"]] == [str(number) for number in range(1, 101)]


def test_history_of_text_has_points_and_no_statistics(service: Served) -> None:
    service.client.put_producer(Producer("model", "x", 5.0, keep=60.0))
    service.client.put_value("model", "n1", "Xeon")
    said = service.ask("GET", "/api/v1/data/model/n1/history").json
    assert (said["count"], said["mean"], said["p99"], [text for _, text in said["points"]]) == (1, None, None, ["Xeon"])


def test_without_keep_nothing_is_kept(filled: Served) -> None:
    assert filled.ask("GET", "/api/v1/data/model/n1/history?since=0").json["count"] == 0
    assert filled.ask("GET", "/api/v1/data/nothing/n1/history").status == 404


@pytest.mark.parametrize("text", ["nan", "NaN", "-inf", "Infinity", "1e999", " inf "])
def test_numbers_that_are_none_are_refused(unchanged: Served, text: str) -> None:
    answer = unchanged.ask("PUT", "/api/v1/data/cpu/n1", {"data_value": text})
    assert (answer.status, answer.error["field"]) == (422, "data_value")
    unchanged.client.put_node("n1", "127.0.0.1:9")
    runs = [{"data_name": "model", "outcome": "ok", "duration": 1, "value": "x"}]
    runs.append({"data_name": "cpu", "outcome": "ok", "duration": 1, "value": text})
    report = unchanged.ask("POST", "/api/v1/nodes/n1/report", {"boot": "b", "sequence": 1, "runs": runs})
    assert (report.status, report.error["field"]) == (422, "runs[1].value")
    assert unchanged.client.data("cpu", node="n1")[0].data_value == "0.5"


def test_one_run_brings_several_values_and_says_which_are_missing(service: Served) -> None:
    service.client.put_producer(Producer("memory", "scripts/memory.sh", 5.0, emits=("free", "total", "swap")))
    service.client.put_node("n1", "127.0.0.1:9")
    printed = {"free": "1", "total": "2", "stray": "3"}
    service.client.report("n1", Report("b", 1, "1", (Run("memory", Outcome.OK, 0.1, "3", values=printed),)))
    values = {name: service.client.data(name)[0] for name in ("memory", "free", "total", "swap")}
    assert {name: datum.data_value for name, datum in values.items()} == {
        "memory": "3",
        "free": "1",
        "total": "2",
        "swap": None,
    }
    assert (values["swap"].outcome, values["swap"].state) == (Outcome.NO_DATA, "stale")
    with pytest.raises(NotFound):
        service.client.data("stray")
    service.client.report("n1", Report("b", 2, "1", (Run("memory", Outcome.TIMEOUT, 9.0, None, "killed"),)))
    failed = service.client.data("free")[0]
    assert (failed.data_value, failed.state, failed.reason) == ("1", "failed", "killed")
