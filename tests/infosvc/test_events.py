"""Events over HTTP: what is told, to whom, and what happens to those who fall behind, hang up or lose their token."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from infosvc.core.service import components_of
from infosvc.data import event_sources, events
from infosvc.data.events import Broker, Filter
from infosvc.http.api import events as api
from infosvc.settings import Clock
from infosvc.state.configuration import Configuration
from infosvc.state.transaction import Commit
from infosvc.state.value import Value
from infosvc.wire.answers import Event
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotReady, Revoked, Unreachable
from infosvc.wire.event_stream import EventStream, parse_event
from infosvc.wire.records import Outcome, Producer, Report, Role, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

Wait = Callable[[Callable[[], bool]], None]

CPU = Producer("cpu", "scripts/cpu.sh", 2.0)


@pytest.fixture
def served(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service that knows two names and one node."""
    with serve(sqlite_url, heartbeat=30.0, lost_after=120.0) as service:
        service.client.put_producer(CPU)
        service.client.put_producer(Producer("load", "scripts/load.sh", 2.0))
        service.client.put_node("n1", "127.0.0.1:9")
        yield service


def _broker(served: Served) -> Broker:
    found: Broker = components_of(served.server.app).broker
    return found


def _told(stream: EventStream, count: int) -> list[Any]:
    return [next(stream).data for _ in range(count)]


def test_values_are_told_as_they_come(served: Served) -> None:
    with served.reader.events(["value"]) as stream:
        runs = (Run("cpu", Outcome.OK, 0.1, "0.5"), Run("load", Outcome.FAILED, 0.1, reason="no file"))
        served.client.report("n1", Report("b", 1, "", runs))
        cpu, load = sorted(_told(stream, 2), key=lambda said: str(said["data_name"]))
    assert abs(cpu.pop("time") - time.time()) < 60
    assert cpu == {"data_name": "cpu", "node_name": "n1", "data_value": "0.5", "outcome": "ok"}
    assert (load["data_value"], load["outcome"]) == (None, "failed")


def test_a_forgotten_value_is_told_without_text(served: Served) -> None:
    served.client.put_value("cpu", "n1", 1)
    with served.reader.events(["value"]) as stream:
        served.client.delete_value("cpu", "n1")
        [said] = _told(stream, 1)
    assert (said["data_name"], said["data_value"], said["outcome"]) == ("cpu", None, None)


def test_who_watches_after_a_change_is_not_told_of_it(served: Served) -> None:
    # As when the thread that writes stands still for a moment once it has stored the change.
    components_of(served.server.app).writer.listeners.insert(0, lambda _commit: time.sleep(0.2))
    served.client.put_value("cpu", "n1", 1)
    with served.reader.events(["value"]) as stream:
        served.client.put_value("cpu", "n1", 2)
        assert [said["data_value"] for said in _told(stream, 1)] == ["2"]


def test_producers_and_slots_are_told_when_they_change(served: Served) -> None:
    with served.reader.events(["producer", "slot"]) as stream:
        served.client.put_slot("n1", "cpu", True, 7.0)
        served.client.delete_slot("n1", "cpu")
        served.client.delete_producer("cpu")
        told = [(event.type, dict(event.data)) for event in (next(stream) for _ in range(3))]
    slot = {"node_name": "n1", "data_name": "cpu"}
    assert told == [
        ("slot", slot | {"change": "put", "running": True, "interval": 7.0}),
        ("slot", slot | {"change": "deleted"}),
        ("producer", {"data_name": "cpu", "change": "deleted"}),
    ]


def test_a_nodes_state_is_told_when_it_changes(served: Served) -> None:
    with served.reader.events(["node"]) as stream:
        served.client.report("n1", Report("b", 1))
        states = (said for said in iter(lambda: next(stream).data, None) if said["node_name"] == "n1")
        assert "ready" in (said["state"] for said in states)


def test_a_node_that_is_removed_is_told_as_forgotten_however_short_it_was_there(served: Served) -> None:
    with served.reader.events(["node"], nodes=["n2"]) as stream:
        with components_of(served.server.app).watchdog._lock:  # no look of the watchdog's falls in between
            served.client.put_node("n2", "127.0.0.1:9")
            served.client.delete_node("n2")
        assert _told(stream, 1) == [{"node_name": "n2", "state": "forgotten"}]


def test_a_watcher_gets_only_the_names_and_nodes_it_asked_for(served: Served) -> None:
    with served.reader.events(names=["cpu"], nodes=["n1"]) as stream:
        served.client.put_value("load", "n1", 1)
        served.client.put_value("cpu", "n2", 2)
        served.client.put_value("cpu", "n1", 3)
        assert [said["data_value"] for said in _told(stream, 1)] == ["3"]


@pytest.mark.parametrize(("types", "passes"), [({"node", "value"}, True), ({"value"}, False), (set(), False)])
def test_events_of_nodes_pass_a_filter_of_names_if_their_type_is_asked_for(types: set[str], passes: bool) -> None:
    broker = Broker(Clock(), 1)
    watcher = broker.watch(Filter(frozenset(types), frozenset({"cpu"})))
    broker.publish("node", {"node_name": "n1", "state": "lost"})
    broker.publish("slot", {"node_name": "n1", "data_name": "load", "change": "deleted"})
    assert [event.type for event in watcher.events(0)] == ["node"] * passes


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [("?type=values", {}, "type"), ("", {"Last-Event-ID": "-1"}, "Last-Event-ID")],
)
def test_what_cannot_be_asked_is_refused(served: Served, query: str, headers: dict[str, str], field: str) -> None:
    answer = served.ask("GET", f"/api/v1/events{query}", headers=headers)
    assert answer.status == 422
    assert answer.error["field"] == field
    assert _broker(served).watching == 0


def test_a_stream_that_breaks_goes_on_where_it_broke(served: Served) -> None:
    with served.reader.events(["value"]) as stream:
        served.client.put_value("cpu", "n1", 1)
        assert [said["data_value"] for said in _told(stream, 1)] == ["1"]
        stream._opened[-1][1].close()  # as if the network had gone
        for number in (2, 3):
            served.client.put_value("cpu", "n1", number)
        assert [said["data_value"] for said in _told(stream, 2)] == ["2", "3"]


def test_a_restarted_service_tells_that_something_was_missed(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as first, first.reader.events(["producer"]) as stream:
        first.client.put_producer(CPU)
        last_id = next(stream).id
    with serve(sqlite_url) as second:
        answer = _first_block(second, str(last_id))
    assert (answer["event"], json.loads(answer["data"])) == ("gap", {"missed": None})


def _first_block(served: Served, last_id: str) -> dict[str, str]:
    """The first event after an id."""
    connection = http.client.HTTPConnection(str(urlsplit(served.url).hostname), urlsplit(served.url).port, timeout=60)
    try:
        connection.request("GET", "/api/v1/events", headers={"Last-Event-ID": last_id})
        response = connection.getresponse()
        blocks: dict[str, str] = {}
        while "data" not in blocks:
            key, _, text = response.readline().decode().rstrip("\n").partition(": ")
            blocks[key] = text
        response.close()
        return blocks
    finally:
        connection.close()


def test_a_caller_that_hangs_up_is_forgotten(served: Served, eventually: Wait, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "HEARTBEAT_SECONDS", 0.1)
    stream = served.reader.events()
    assert _broker(served).watching == 1
    stream.close()
    assert list(stream) == []
    eventually(lambda: _broker(served).watching == 0)


def test_a_caller_that_asks_only_for_the_headers_watches_nothing(served: Served, eventually: Wait) -> None:
    assert served.ask("HEAD", "/api/v1/events").status == 200
    eventually(lambda: _broker(served).watching == 0)


def test_too_many_watchers_are_refused_and_places_come_free(
    sqlite_url: str, serve: Serving, eventually: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "HEARTBEAT_SECONDS", 0.1)
    with serve(sqlite_url, watchers=1) as served:
        with served.reader.events(["producer"]), pytest.raises(NotReady, match="watch events already"):
            InfoClient(served.url, retries=0).events()
        eventually(lambda: _broker(served).watching == 0)
        served.reader.events().close()


def test_a_silent_stream_says_that_it_lives(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "HEARTBEAT_SECONDS", 0.1)
    with served.reader.events(["slot"]) as stream:
        lines = [stream._block() for _ in range(3)]
    assert lines[0][0].startswith("id: ") and lines[1:] == [[": still here"]] * 2


def test_a_revoked_token_ends_its_streams(served: Served) -> None:
    token, text = served.client.create_token("dashboard", Role.READER)
    with InfoClient(served.url, text).events(["slot"]) as stream:
        served.client.revoke_token(token.token_id)
        with pytest.raises(Revoked):
            next(stream)


def test_open_streams_do_not_keep_the_service_from_ending(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as served:
        stream = EventStream(served.reader._connections, "/api/v1/events", None, patience=0.0)
    with pytest.raises(Unreachable):
        next(stream)


@pytest.mark.parametrize("wake", ["the service ends", "a token changes"])
def test_a_waiting_watcher_looks_up_at_once_when(wake: str) -> None:
    broker = Broker(Clock(), 1)
    watcher = broker.watch(Filter())
    waiting = threading.Thread(target=lambda: list(watcher.events(60)), daemon=True)
    waiting.start()
    if wake == "the service ends":
        broker.close()
    else:
        broker.hear(Commit(Configuration(), Configuration(), {("tokens", ("t1",))}, {}))
    waiting.join(20)
    assert not waiting.is_alive()
    assert watcher.has_ended == (wake == "the service ends")


def test_whoever_falls_behind_is_told_how_much_was_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_EVENTS", 5)
    broker = Broker(Clock(), 1)
    watcher = broker.watch(Filter())
    for number in range(12):
        broker.publish("node", {"number": number})
    gap, *rest = watcher.events(0)
    assert (gap.type, gap.data) == ("gap", {"missed": 7})
    assert [event.data["number"] for event in rest] == [7, 8, 9, 10, 11]
    assert [event.id for event in (gap, *rest)] == list(range(gap.id, gap.id + 6))
    assert list(watcher.events(0)) == []


def test_the_log_holds_no_more_text_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_TEXT", 100)
    broker = Broker(Clock(), 1)
    watcher = broker.watch(Filter(frozenset({"value"})))
    for number in range(4):
        broker.hear(_commit(f"{number}" * 40))
    told = list(watcher.events(0))
    assert [event.data.get("missed") or event.data["data_value"][0] for event in told] == [2, "2", "3"]


def test_nothing_is_kept_while_nobody_watches() -> None:
    broker = Broker(Clock(), 1)
    broker.hear(_commit("1"))
    assert not broker._log


def test_events_after_the_last_watcher_left_are_told_when_it_returns_soon() -> None:
    now = [1000.0]
    broker = Broker(Clock(lambda: now[0], lambda: now[0]), 1)
    first = broker.watch(Filter())
    broker.publish("node", {"number": 1})
    [seen] = first.events(0)
    first.close()
    broker.publish("node", {"number": 2})
    second = broker.watch(Filter(), seen.id)
    assert [event.data for event in second.events(0)] == [{"number": 2}]
    second.close()
    now[0] += events.RESUME_SECONDS + 1
    broker.publish("node", {"number": 3})
    assert [event.data for event in broker.watch(Filter(), seen.id + 1).events(0)] == [{"missed": None}]


@pytest.mark.parametrize(
    ("wanted", "watched"),
    [
        (Filter(), True),
        (Filter(frozenset({"job", "value"}), frozenset({"cpu"})), True),
        (Filter(frozenset({"value", "node"})), False),
        (Filter(names=frozenset({"cpu"})), False),
        (Filter(nodes=frozenset({"n1"})), False),
    ],
)
def test_jobs_are_watched_only_by_those_who_would_be_told_of_them(wanted: Filter, watched: bool) -> None:
    broker = Broker(Clock(), 4)
    watcher = broker.watch(wanted)
    broker.publish("job", {"job_id": "application_1_1"})
    assert (broker.is_watched("job"), [event.type for event in watcher.events(0)]) == (watched, ["job"] * watched)
    watcher.close()
    assert not broker.is_watched("job")


def test_a_source_that_fails_is_looked_at_again(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(event_sources, "LOOK_SECONDS", 0.01)
    looks = iter([RuntimeError("no answer")])

    def look(tell: event_sources.Tell) -> None:
        for failure in looks:
            raise failure
        tell({"job_id": "application_1_1"})

    broker = Broker(Clock(), 1)
    reader = event_sources.SourceReader(broker)
    reader.start(event_sources.EventSource("job", look))
    first = next(iter(broker.watch(Filter(frozenset({"job"}))).events(60)))
    broker.close()
    reader.close()
    assert (first.type, first.data) == ("job", {"job_id": "application_1_1"})
    assert "events of type job could not be looked for" in caplog.text


def test_many_watchers_see_everything_in_order_while_others_publish() -> None:
    broker = Broker(Clock(), 8)
    watchers = [broker.watch(Filter()) for _ in range(8)]
    seen: list[list[int]] = [[] for _ in watchers]

    def read(place: int) -> None:
        while len(seen[place]) < 2000:
            seen[place] += [event.data["number"] for event in watchers[place].events(5)]

    threads = [threading.Thread(target=read, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        broker.publish("node", {"number": number})
    for thread in threads:
        thread.join(120)
    assert seen == [list(range(2000))] * 8


@pytest.mark.parametrize("lines", [[], [": still here"], ["id: 7"], ["id: x", "event: a", "data: {}"], ["data: {}"]])
def test_a_block_that_is_no_event_is_passed_over(lines: list[str]) -> None:
    assert parse_event(lines) is None


def test_what_is_encoded_is_read_again() -> None:
    event = Event(7, "value", {"data_value": "two\nlines: \u00e4"})
    assert parse_event(api.encode(event).decode().splitlines()) == event


def _commit(text: str) -> Commit:
    value = Value(text, 1.0, Outcome.OK, None, 1.0)
    return Commit(Configuration(), Configuration(), set(), {("cpu", "n1"): value})
