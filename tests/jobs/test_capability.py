"""Judging nodes by a data name, asked of the real service."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, Unreachable
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess
from jobs.division import capability, speed_history
from jobs.errors import JobError
from jobs.kinds.classify.request import Request, choose_capability
from tests.jobs.stored import SETTINGS

TOKEN = "a-token-for-the-tests"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[InfoClient]:
    server = Server(Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=TOKEN), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    made = InfoClient(server.url, TOKEN)
    made.put_producer(Producer("weight", cmd="", time_max=100, kind=Kind.PROGRAM))
    yield made
    server.stop()
    thread.join()


def ask(client: InfoClient, *nodes: str, name: str = "weight", seconds: float = 0) -> dict[str, float]:
    return {node: datum.number() for node, datum in capability.wait(client, name, nodes, seconds).items()}


def test_the_fresh_values_of_the_nodes_asked_for_are_returned(client: InfoClient) -> None:
    for node, value in {"a": 1, "b": 2.5, "other": 9}.items():
        client.put_value("weight", node, value)

    assert ask(client, "a", "b") == {"a": 1.0, "b": 2.5}


def test_a_node_without_a_value_is_named(client: InfoClient) -> None:
    client.put_value("weight", "a", 1)

    with pytest.raises(JobError, match=r"no fresh weight for b \(no value\)"):
        ask(client, "a", "b")


def test_an_old_value_is_not_taken_for_a_fresh_one(client: InfoClient) -> None:
    client.put_producer(Producer("quick", cmd="", time_max=1, ttl=0.05, kind=Kind.PROGRAM))
    client.put_value("quick", "a", 1)
    deadline = time.monotonic() + 60
    while client.data("quick")[0].state == "fresh":
        assert time.monotonic() < deadline

    with pytest.raises(JobError, match=r"a \(stale, \d+ s old\)"):
        ask(client, "a", name="quick")


def test_a_failed_run_is_told_with_its_reason(client: InfoClient) -> None:
    client.put_node("a", "127.0.0.1:1")
    client.put_value("weight", "a", 1)
    client.report("a", Report("boot", 1, runs=(Run("weight", Outcome.FAILED, 0.1, reason="no sensor"),)))

    with pytest.raises(JobError, match=r"a \(failed, \d+ s old, last run: no sensor\)"):
        ask(client, "a")


def report_no_data(client: InfoClient, *nodes: str) -> None:
    """The producer of weight runs on these nodes, and has nothing to tell."""
    for number, node in enumerate(nodes):
        client.put_node(node, f"127.0.0.1:{number + 1}")
        client.report(node, Report("boot", 1, runs=(Run("weight", Outcome.NO_DATA, 0.1, reason="it ran nothing"),)))


def submission(client: InfoClient) -> Request:
    """A job that is judged by weight, and by level in its place."""
    client.put_producer(Producer("level", cmd="", time_max=100, kind=Kind.PROGRAM))
    settings = replace(SETTINGS, capability="weight", cold_start="level")
    return Request(settings, JobOptions(capability_wait=0), InfoAccess(client.url, TOKEN))


def test_a_first_job_is_judged_by_what_is_there_before_any_job(client: InfoClient) -> None:
    said: list[str] = []
    asked = submission(client)
    report_no_data(client, "a", "b")
    for node in ("a", "b"):
        client.put_value("level", node, 1)

    settings = choose_capability(asked, ["a", "b"], said.append)

    assert settings == replace(asked.settings, capability="level")
    assert said == ["no node has a weight yet (it ran nothing): level decides this time"]


def test_a_capability_that_any_node_has_or_may_soon_have_decides_itself(client: InfoClient) -> None:
    asked = submission(client)
    report_no_data(client, "a", "b")

    with pytest.raises(JobError, match="no fresh level for a"):
        choose_capability(asked, ["a", "b"], lambda _: None)
    with pytest.raises(JobError, match=r"no fresh weight for .*c \(no value\)"):
        choose_capability(asked, ["a", "b", "c"], lambda _: None)
    speed_history.prepare(client, asked.network.program, asked.settings.batch)
    speed_history.record(client, asked.network.program, asked.settings.batch, {"a": 2.0})
    with pytest.raises(JobError, match=r"no fresh weight for a .*it ran nothing"):
        choose_capability(asked, ["a", "b"], lambda _: None)


def test_whoever_waits_hears_of_the_same_nodes_once(client: InfoClient, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Sequence[str]] = []
    now = [0.0]

    class Played:
        """Time passes in the pauses alone, however long the service takes."""

        def monotonic(self) -> float:
            return now[0]

        def sleep(self, seconds: float) -> None:
            now[0] += seconds

    monkeypatch.setattr(capability, "time", Played())
    with pytest.raises(JobError):
        capability.wait(client, "weight", ["b", "a"], 1.2, heard.append)

    assert heard == [["a", "b"]]
    assert now[0] > 1, "it has looked more than once"


def test_a_name_nobody_produces_is_refused_with_what_is_close(client: InfoClient) -> None:
    with pytest.raises(JobError, match=r"'wieght'.*weight"):
        ask(client, "a", name="wieght")


def test_a_value_that_is_no_number_judges_nobody(client: InfoClient) -> None:
    client.put_value("weight", "a", "plenty")

    with pytest.raises(InvalidInput, match="plenty"):
        ask(client, "a")


def test_a_value_that_arrives_in_time_is_waited_for(client: InfoClient) -> None:
    missing: list[list[str]] = []

    def arrive(nodes: object) -> None:
        missing.append(list(nodes))  # type: ignore[call-overload]
        client.put_value("weight", "a", 3)

    found = capability.wait(client, "weight", ["a"], 30, arrive)

    assert found["a"].number() == 3
    assert missing == [["a"]]


def test_a_service_that_is_down_says_so() -> None:
    with pytest.raises(Unreachable, match="nodewise serve"):
        ask(InfoClient("http://127.0.0.1:9"), "a")


def confidences(client: InfoClient, *nodes: str, name: str = "weight") -> dict[str, float | None]:
    return {node: judged.confidence for node, judged in capability.wait(client, name, nodes, 0).items()}


def test_a_capability_tells_the_confidence_that_stands_beside_it(client: InfoClient) -> None:
    client.put_producer(Producer("weight.confidence", cmd="", time_max=100, kind=Kind.PROGRAM))
    for node, confidence in {"a": 0, "b": 0.75, "c": 1, "elsewhere": 0.5}.items():
        client.put_value("weight.confidence", node, confidence)
    for node in "abcd":
        client.put_value("weight", node, 3)

    assert confidences(client, "a", "b", "c", "d") == {"a": 0.0, "b": 0.75, "c": 1.0, "d": None}


def test_the_confidence_of_a_node_that_was_not_asked_for_stops_nothing(client: InfoClient) -> None:
    client.put_producer(Producer("weight.confidence", cmd="", time_max=100, kind=Kind.PROGRAM))
    client.put_value("weight", "a", 3)
    for node, confidence in {"a": "0.5", "gone": "7", "elsewhere": "plenty"}.items():
        client.put_value("weight.confidence", node, confidence)

    assert confidences(client, "a") == {"a": 0.5}


def test_the_longest_name_has_no_room_for_a_confidence(client: InfoClient) -> None:
    name = "w" * 128
    client.put_producer(Producer(name, cmd="", time_max=100, kind=Kind.PROGRAM))
    client.put_value(name, "a", 3)

    assert confidences(client, "a", name=name) == {"a": None}


def test_a_name_of_your_own_works_without_confidence(client: InfoClient) -> None:
    client.put_value("weight", "a", 1)

    assert confidences(client, "a") == {"a": None}


def test_a_judgement_is_the_datum_with_its_confidence(client: InfoClient) -> None:
    client.put_value("weight", "a", 1)
    [datum] = client.data("weight")

    judged = capability.wait(client, "weight", ["a"], 0)["a"].to_json()

    assert judged.pop("confidence") is None
    assert judged.pop("age") >= datum.to_json()["age"]
    assert judged == {key: value for key, value in datum.to_json().items() if key != "age"}


def test_an_old_confidence_is_none(client: InfoClient) -> None:
    client.put_producer(Producer("weight.confidence", cmd="", time_max=1, ttl=0.05, kind=Kind.PROGRAM))
    client.put_value("weight", "a", 1)
    client.put_value("weight.confidence", "a", 0.5)
    deadline = time.monotonic() + 60
    while client.data("weight.confidence")[0].state == "fresh":
        assert time.monotonic() < deadline

    assert confidences(client, "a") == {"a": None}


@pytest.mark.parametrize("told", ["1.5", "-0.1"])
def test_a_confidence_that_is_no_ratio_is_refused(client: InfoClient, told: str) -> None:
    client.put_producer(Producer("weight.confidence", cmd="", time_max=100, kind=Kind.PROGRAM))
    client.put_value("weight", "a", 1)
    client.put_value("weight.confidence", "a", told)

    with pytest.raises(JobError, match=rf"weight.confidence on a is {told}: .* between 0 and 1"):
        ask(client, "a")
