"""Capabilities and what stands beside them, from a real agent to the real service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from collectors.processors import perf_history
from infosvc.shipping.bundle import catalog
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Datum, Kind, Outcome, Producer, State
from locality.capability import Sample, from_jobs

pytestmark = pytest.mark.timeout(900)  # on a busy machine each start of an agent takes many seconds

Wait = Callable[[Callable[[], Any]], Any]

SPEEDS = "images_per_second:mxnet.alexnet:32"
TOKEN = "a-token-of-the-tests"


def ship(service: InfoClient, name: str, **changed: Any) -> None:
    """Register a producer as it ships, but to run often, and for as long as it takes on a busy machine."""
    [shipped] = [entry.producer for entry in catalog() if entry.producer.data_name == name]
    service.put_producer(replace(shipped, **({"time_max": 0.5, "timeout": 60.0, "ttl": 60.0} | changed)))


def program(service: InfoClient, name: str, **values: float) -> None:
    """Register a name that the test writes, and its values."""
    service.put_producer(Producer(name, "", 60.0, kind=Kind.PROGRAM))
    for node, value in values.items():
        service.put_value(name, node, value)


def on_n1(service: InfoClient, *names: str) -> list[Datum | None]:
    found = service.data_many(names, node="n1")
    return [next(iter(found[name]), None) for name in names]


def told(service: InfoClient, *names: str) -> list[float]:
    """The numbers of n1, none of them until all are fresh."""
    numbers = [datum.number() for datum in on_n1(service, *names) if datum and datum.state is State.FRESH]
    return numbers if len(numbers) == len(names) else []


@pytest.fixture
def judging(node: Any, service: InfoClient) -> InfoClient:
    """n1 runs perf_history as it ships; the test says what is measured and how fast jobs were."""
    service.put_producer(next(entry.producer for entry in catalog() if entry.producer.data_name == SPEEDS))
    program(service, "perf_cpu")
    ship(service, "perf_history")
    service.put_slot("n1", "perf_history", running=True)
    node.launch()
    return service


FORMER = "images_per_second:mxnet_alexnet:32"
HISTORY = ("perf_history", "perf_history.confidence", "perf_history.count")


def test_a_line_of_its_own_name_is_the_value_and_without_it_the_count_is(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    for name, script in {"own": "echo own 0.7; echo own.part 3", "counted": "echo counted.part 3"}.items():
        kept = Producer(name, node.script(f"{name}.sh", script), 0.5, emits=(f"{name}.part",), keep=60, ttl=60.0)
        service.put_producer(kept)
        service.put_slot("n1", name, running=True)
    node.launch()

    assert wait_for(lambda: told(service, "own", "own.part")) == [0.7, 3]
    assert wait_for(lambda: told(service, "counted", "counted.part")) == [1, 3]
    assert {value for _, value in service.history("own", "n1").points} == {"0.7"}
    assert {run.value for run in service.slot_log("n1", "own")} == {"0.7"}


def test_configured_and_measured_capabilities_carry_their_confidence(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    program(service, "cpu_free_ratio", n1=0.2)
    for name in ("perf_even", "perf_cpu"):
        ship(service, name)
        service.put_slot("n1", name, running=True)
    node.launch()

    assert wait_for(lambda: told(service, "perf_even", "perf_even.confidence")) == [1, 1]
    capability, confidence = wait_for(lambda: told(service, "perf_cpu", "perf_cpu.confidence"))
    assert capability == 0.4
    assert 0 < confidence <= 1
    wait_for(lambda: (now := told(service, "perf_cpu.confidence")) and now[0] < confidence)  # what it read grows old


def test_a_program_registered_under_another_name_answers_under_that(
    node: Any, service: InfoClient, wait_for: Wait
) -> None:
    ship(service, "perf_even", data_name="mine", emits=("mine.confidence",))
    ship(service, "perf_even", data_name="bare", emits=())
    for name in ("mine", "bare"):
        service.put_slot("n1", name, running=True)
    node.launch()

    assert wait_for(lambda: told(service, "mine", "mine.confidence", "bare")) == [1, 1, 1]


def test_while_no_node_ran_the_program_there_is_no_capability_and_no_0(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_value("perf_cpu", "n1", 1)

    [datum] = wait_for(lambda: [each for each in on_n1(judging, "perf_history") if each and each.outcome])
    assert (datum.outcome, datum.data_value) == (Outcome.NO_DATA, None)
    assert "no job has run here yet" in datum.reason


def test_a_new_node_is_judged_on_the_scale_of_the_others_and_then_by_itself(
    judging: InfoClient, wait_for: Wait
) -> None:
    for node, speed, free in (("n2", 20, 1), ("n3", 10, 0.25), ("n4", 6, 0.5), ("n5", 99, 0)):
        judging.put_value(SPEEDS, node, speed)
        judging.put_value("perf_cpu", node, free)
    judging.put_value(SPEEDS, "n6", 1000)  # ran it, but tells nothing of its CPU
    judging.put_value("perf_cpu", "n1", 0.5)

    # 20, 40 and 12 images per second for a whole CPU: half of 20, by three nodes. The first run may have seen fewer.
    wait_for(lambda: told(judging, *HISTORY) == [10, 0.075, 0])
    [spread] = on_n1(judging, "perf_history.spread")
    assert spread is not None and (spread.outcome, spread.data_value) == (Outcome.NO_DATA, None)

    judging.put_value(SPEEDS, "n1", 31)
    wait_for(lambda: told(judging, *HISTORY)[::2] == [31, 1])
    assert 0.1 < told(judging, "perf_history.confidence")[0] < 0.5501


class LateMeasure(InfoClient):
    """A service whose node n1 is measured after it was asked about."""

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        found = super().data(data_name, node, max_age)
        if (data_name, node) == ("perf_cpu", "n1"):
            self.put_value("perf_cpu", "n1", 0.5)
        return found


def test_a_new_node_waits_for_its_measure_and_not_for_its_next_run(service: InfoClient) -> None:
    program(service, SPEEDS, n2=20)
    program(service, "perf_cpu", n2=1)
    with LateMeasure(service.url, TOKEN, 60) as late:
        found = perf_history.estimate(late, SPEEDS, "n1")

    assert found is not None
    assert found.value == 10


def test_without_a_fresh_measure_a_new_node_is_not_judged(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_value(SPEEDS, "n2", 20)
    judging.put_value("perf_cpu", "n2", 1)

    [datum] = wait_for(lambda: [each for each in on_n1(judging, "perf_history") if each and each.outcome])
    assert (datum.outcome, datum.data_value) == (Outcome.NO_DATA, None)


def test_several_jobs_are_averaged_as_the_formula_says(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_value(SPEEDS, "n1", 30)
    wait_for(lambda: told(judging, *HISTORY[::2]) == [30, 1])
    judging.put_value(SPEEDS, "n1", 10)

    wait_for(lambda: told(judging, "perf_history.count") == [2])
    expected = from_jobs([Sample(0, 10), Sample(1, 30)])
    assert expected is not None
    assert told(judging, "perf_history", "perf_history.spread") == pytest.approx(
        [expected.value, expected.spread],  # (10 + 0.7 * 30) / 1.7
        rel=1e-4,
    )


def test_of_speeds_that_are_not_kept_the_last_job_counts(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_producer(replace(judging.producer(SPEEDS), keep=0.0))
    for speed in (30, 10):
        judging.put_value(SPEEDS, "n1", speed)
    for name, other in {"perf_cpu": 1, SPEEDS: 99}.items():
        judging.put_value(name, "n2", other)

    wait_for(lambda: told(judging, *HISTORY[::2]) == [10, 1])


def test_a_speed_that_is_none_is_a_failure_with_its_remedy(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_value(SPEEDS, "n1", 0)

    [datum] = wait_for(lambda: [e for e in on_n1(judging, "perf_history") if e and e.outcome is Outcome.FAILED])
    assert f"0.0 is not a speed: it must be a finite number above 0; `nodewise data rm {SPEEDS} n1`" in datum.reason

    judging.delete_value(SPEEDS, "n1")
    judging.put_value(SPEEDS, "n1", 5)
    wait_for(lambda: told(judging, *HISTORY[::2]) == [5, 1])


def test_speeds_under_the_former_name_of_the_program_count(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_producer(replace(judging.producer(SPEEDS), data_name=FORMER, version=0))
    judging.put_value(FORMER, "n1", 30)
    wait_for(lambda: told(judging, *HISTORY[::2]) == [30, 1])
    judging.put_value(SPEEDS, "n1", 10)

    wait_for(lambda: told(judging, "perf_history.count") == [2])
    assert told(judging, "perf_history") == pytest.approx([(10 + 0.7 * 30) / 1.7], rel=1e-3)


def test_what_is_no_speed_is_forgotten_under_the_name_it_was_found_under(service: InfoClient) -> None:
    program(service, SPEEDS, n1=30)
    service.put_producer(replace(service.producer(SPEEDS), data_name=FORMER, keep=60, version=0))
    service.put_value(FORMER, "n1", 0)

    with pytest.raises(ValueError, match=f"0.0 is not a speed: .*; `nodewise data rm {FORMER} n1` forgets"):
        perf_history.estimate(service, SPEEDS, "n1")


def test_beside_the_experience_stands_what_judges_a_node_without_any(judging: InfoClient, wait_for: Wait) -> None:
    judging.put_value("perf_cpu", "n1", 0.5)
    judging.put_value(SPEEDS, "n1", 30)

    assert wait_for(lambda: told(judging, "perf_history", "perf_history.measure")) == [30, 0.5]
