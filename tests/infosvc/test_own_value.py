"""A producer with emits: its own value is what it printed under its own name, or how many names came."""

from __future__ import annotations

from typing import Any

import pytest

from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run
from tests.infosvc.conftest import Served

PERF = Producer("perf", "p", 5.0, Kind.PROCESSOR, keep=60.0, emits=("perf.confidence", "perf.spread"))


@pytest.fixture
def enrolled(service: Served) -> Served:
    """A service that knows the producer and one node."""
    service.client.put_producer(PERF)
    service.client.put_node("n1", "127.0.0.1:9")
    return service


def report(service: Served, sequence: int, **said: Any) -> None:
    run = Run("perf", said.pop("outcome", Outcome.OK), 0.1, **said)
    service.client.report("n1", Report("boot", sequence, "1", (run,)))


def text(service: Served, name: str) -> str | None:
    return service.client.data(name)[0].data_value


def test_its_own_value_stands_beside_what_it_emits(enrolled: Served) -> None:
    report(enrolled, 1, value="12.5", values={"perf.confidence": "0.5"})

    assert [text(enrolled, name) for name in ("perf", *PERF.emits)] == ["12.5", "0.5", None]


def test_an_agent_that_sends_the_count_or_nothing_says_how_many_came(enrolled: Served) -> None:
    report(enrolled, 1, value="1", values={"perf.confidence": "0.5"})
    assert text(enrolled, "perf") == "1"

    report(enrolled, 2, values={"perf.confidence": "0.5", "perf.spread": "2"})
    assert text(enrolled, "perf") == "2"


def test_its_own_value_may_come_alone(enrolled: Served) -> None:
    report(enrolled, 1, value="12.5", values={"perf.confidence": "0.5"})
    report(enrolled, 2, value="13", values={})

    assert text(enrolled, "perf") == "13"
    left = enrolled.client.data("perf.confidence")[0]
    assert (left.data_value, left.outcome) == ("0.5", Outcome.NO_DATA)


def test_its_own_values_are_kept_and_told(enrolled: Served) -> None:
    with enrolled.reader.events(["value"], names=["perf"]) as events:
        report(enrolled, 1, value="12.5", values={"perf.confidence": "0.5"})
        report(enrolled, 2, value="13.5", values={"perf.confidence": "0.6"})
        told = [next(events).data["data_value"] for _ in range(2)]

    assert told == ["12.5", "13.5"]
    assert [value for _, value in enrolled.client.history("perf", "n1").points] == ["12.5", "13.5"]


def test_a_run_that_brought_nothing_leaves_all_of_them(enrolled: Served) -> None:
    report(enrolled, 1, value="12.5", values={"perf.confidence": "0.5"})
    report(enrolled, 2, outcome=Outcome.FAILED, reason="no file")

    for name, value in {"perf": "12.5", "perf.confidence": "0.5"}.items():
        datum = enrolled.client.data(name)[0]
        assert (datum.data_value, datum.outcome, datum.reason) == (value, Outcome.FAILED, "no file")


@pytest.mark.parametrize("value", ["nan", "inf", "-1e999"])
def test_an_own_value_that_is_a_number_and_none_is_refused(enrolled: Served, value: str) -> None:
    with pytest.raises(InvalidInput, match=r"runs\[0\].value is "):
        report(enrolled, 1, value=value, values={"perf.confidence": "0.5"})

    assert enrolled.client.data("perf") == []


def test_to_emit_its_own_name_is_refused_with_what_to_do_instead(enrolled: Served) -> None:
    with pytest.raises(InvalidInput, match="leave it out, a line `self VALUE` is its own value without that"):
        enrolled.client.put_producer(Producer("self", "s", 5.0, emits=("self",)))
