"""The management service over HTTP: nodes, slots, and the master's word to the agents."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.errors import Conflict, InvalidInput, NotFound
from infosvc.manage import nodes_for, split_address
from infosvc.records import Kind, Node, Outcome, Producer, Report, Run, Scope

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served

CPU = Producer("cpu", "scripts/cpu.sh", 2.0, timeout=4.0, sha256="b" * 64)


def _state(service: Served, node_name: str) -> str:
    return next(node.state for node in service.reader.nodes() if node.node_name == node_name)


def test_a_node_is_ready_then_stale_then_lost(service: Served, hands: Hands) -> None:
    assert service.client.put_node("n1", "127.0.0.1:9").state == "stale"
    service.client.report("n1", Report("boot", 1, "1.2"))
    [node] = service.reader.nodes()
    assert (node.state, node.agent_version, node.last_seen) == ("ready", "1.2", hands.epoch + hands.now)
    hands.turn(15)
    assert _state(service, "n1") == "ready"
    hands.turn(1)
    assert _state(service, "n1") == "stale"
    hands.turn(45)
    assert _state(service, "n1") == "lost"
    service.client.report("n1", Report("boot", 2))
    assert _state(service, "n1") == "ready"


def test_enrolling_again_moves_a_node_and_keeps_its_slots(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9", "1")
    service.client.put_slot("n1", "cpu", True)
    service.client.put_node("n1", "127.0.0.2:10")
    [node] = service.reader.nodes()
    assert (node.address, node.agent_version) == ("127.0.0.2:10", "1")
    assert [slot.data_name for slot in service.reader.slots("n1").slots] == ["cpu"]


def test_deleting_a_node_takes_its_slots_and_values_along(service: Served) -> None:
    service.client.put_producer(CPU)
    for name in ("n1", "n2"):
        service.client.put_node(name, "127.0.0.1:9")
        service.client.put_slot(name, "cpu", True)
        service.client.put_value("cpu", name, 1)
    service.client.delete_node("n1")
    assert [node.node_name for node in service.reader.nodes()] == ["n2"]
    assert [datum.node_name for datum in service.reader.data("cpu")] == ["n2"]
    with pytest.raises(NotFound, match="nodewise node add n1"):
        service.reader.slots("n1")
    with pytest.raises(NotFound):
        service.client.delete_node("n1")


def test_a_node_enrolled_anew_never_reuses_a_version(service: Served, hands: Hands) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.put_slot("n1", "cpu", True)
    old = service.reader.slots("n1").version
    service.client.delete_node("n1")
    hands.turn(60)
    service.client.put_node("n1", "127.0.0.1:9")
    assert service.reader.slots("n1").version > old


@pytest.mark.parametrize(
    "address", ["", "n1", "n1:", ":8410", "n1:0", "n1:65536", "n1:x", "a/b:1", "u@h:1", 8410, None]
)
def test_an_address_without_host_or_port_is_refused(service: Served, address: Any) -> None:
    answer = service.ask("PUT", "/api/v1/nodes/n1", {"address": address})
    assert (answer.status, answer.error["field"]) == (422, "address")


def test_an_address_may_be_a_bracketed_ipv6_one() -> None:
    assert split_address("[::1]:8410") == ("::1", 8410)


def test_a_slot_runs_as_its_producer_says_unless_it_has_an_interval(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.put_slot("n1", "cpu", True)
    [slot] = service.reader.slots("n1").slots
    assert (slot.cmd, slot.interval, slot.timeout, slot.sha256) == (CPU.cmd, 2.0, 4.0, "b" * 64)
    assert (slot.running, slot.outcome, slot.age) == (True, None, None)
    service.client.put_slot("n1", "cpu", False, 30)
    [slot] = service.reader.slots("n1").slots
    assert (slot.running, slot.interval) == (False, 30.0)
    assert service.ask("GET", "/api/v1/nodes/n1/slots").json["node_name"] == "n1"
    assert service.ask("GET", "/api/v1/nodes/n1/slots/cpu").json["interval"] == 30.0
    service.client.delete_slot("n1", "cpu")
    assert service.reader.slots("n1").slots == ()
    with pytest.raises(NotFound, match="nodewise slot start cpu --node n1"):
        service.client.delete_slot("n1", "cpu")


def test_a_slot_shows_how_its_last_run_ended(service: Served, hands: Hands) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    service.client.put_slot("n1", "cpu", True)
    service.client.report("n1", Report("b", 1, "", (Run("cpu", Outcome.TIMEOUT, 4.0, None, "killed", 1.0),)))
    hands.turn(2)
    [slot] = service.reader.slots("n1").slots
    assert (slot.outcome, slot.duration, slot.reason, slot.age) == (Outcome.TIMEOUT, 4.0, "killed", 3.0)


def test_wanted_version_grows_with_slots_and_their_producers_only(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_producer(Producer("other", "x", 1))
    service.client.put_node("n1", "127.0.0.1:9")
    versions = [service.reader.slots("n1").version]

    def note() -> bool:
        versions.append(service.reader.slots("n1").version)
        return versions[-1] > versions[-2]

    service.client.put_slot("n1", "cpu", True)
    assert note()
    service.client.put_slot("n1", "cpu", True)
    assert not note()
    service.client.put_producer(Producer("cpu", "scripts/cpu.sh", 9.0))
    assert note()
    service.client.put_producer(Producer("other", "y", 1))
    assert not note()
    service.client.delete_slot("n1", "cpu")
    assert note()
    assert service.client.report("n1", Report("b", 1)) == versions[-1]


def test_a_program_gets_no_slot(service: Served) -> None:
    service.client.put_producer(Producer("speed", "", 60, Kind.PROGRAM))
    service.client.put_node("n1", "127.0.0.1:9")
    with pytest.raises(Conflict, match="kind program"):
        service.client.put_slot("n1", "speed", True)
    service.client.put_producer(CPU)
    service.client.put_slot("n1", "cpu", True)
    service.client.put_producer(Producer("cpu", "", 60, Kind.PROGRAM))
    assert service.reader.slots("n1").slots == ()


@pytest.mark.parametrize(("field", "value"), [("running", "yes"), ("running", 1), ("interval", 0), ("interval", "5")])
def test_a_wrong_slot_is_refused_by_field(service: Served, field: str, value: Any) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    answer = service.ask("PUT", "/api/v1/nodes/n1/slots/cpu", {field: value})
    assert (answer.status, answer.error["field"]) == (422, field)
    assert service.ask("PUT", "/api/v1/nodes/n1/slots/nothing", {}).status == 404
    assert service.ask("PUT", "/api/v1/nodes/n2/slots/cpu", {}).status == 404


class Heard:
    """What a listening agent was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None, dict[str, Any]]] = []
        self.status = 204
        heard = self

        class Agent(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                heard.calls.append((self.path, self.headers["Authorization"], body))
                self.send_response(heard.status)
                self.end_headers()

            def log_message(self, *_said: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
        self.address = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def agent() -> Iterator[Heard]:
    """Something that listens where an agent would."""
    heard = Heard()
    thread = threading.Thread(target=heard.server.serve_forever, args=(0.02,))
    thread.start()
    yield heard
    heard.server.shutdown()
    thread.join()
    heard.server.server_close()


def test_the_master_tells_the_agent_each_change(
    service: Served, agent: Heard, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", agent.address)
    service.client.put_slot("n1", "cpu", True)
    version = service.reader.slots("n1").version
    eventually(lambda: any(body["version"] == version for _, _, body in agent.calls))
    path, token, body = next(call for call in agent.calls if call[2]["version"] == version)
    assert (path, token) == ("/api/v1/wanted", "Bearer a-token-for-the-tests")
    assert [slot["data_name"] for slot in body["slots"]] == ["cpu"]


def test_a_forgotten_node_s_agent_is_told_to_end_unless_another_node_has_its_address(
    service: Served, agent: Heard, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    for name in ("old", "new"):
        service.client.put_node(name, agent.address)
    service.client.delete_node("old")
    service.client.delete_node("new")
    eventually(lambda: any(path == "/api/v1/stop" for path, _, _ in agent.calls))

    assert [body for path, _, body in agent.calls if path == "/api/v1/stop"] == [{"node_name": "new"}]


def test_what_an_agent_refuses_is_logged(
    service: Served, agent: Heard, eventually: Callable[[Callable[[], bool]], None], caplog: pytest.LogCaptureFixture
) -> None:
    agent.status = 409
    service.client.put_node("n1", agent.address)
    service.client.delete_node("n1")
    eventually(lambda: "agent of n1 could not be stopped (it answered 409)" in caplog.text)


def test_a_notice_that_fails_holds_no_later_write_up(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = service.server.app.extensions["infosvc.writer"]
    monkeypatch.setattr(writer, "_told", lambda *_: [][0])
    service.client.put_node("n1", "127.0.0.1:1")
    service.client.put_node("n2", "127.0.0.1:1")


def test_an_agent_that_does_not_listen_holds_nothing_up(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:1")
    service.client.put_slot("n1", "cpu", True)
    assert [slot.data_name for slot in service.reader.slots("n1").slots] == ["cpu"]


def test_producers_start_where_their_scope_says() -> None:
    nodes = [Node("n3", "a:1", "ready"), Node("n1", "a:1", "lost"), Node("n2", "a:1", "ready")]
    assert nodes_for(CPU, nodes) == ["n1", "n2", "n3"]
    assert nodes_for(Producer("c", "x", 1, scope=Scope.CLUSTER), nodes) == ["n2"]
    assert nodes_for(Producer("c", "x", 1, scope=Scope.CLUSTER, replicas=2), nodes) == ["n2", "n3"]
    with pytest.raises(InvalidInput, match=r"needs 3 node\(s\) and 2"):
        nodes_for(Producer("c", "x", 1, scope=Scope.CLUSTER, replicas=3), nodes)
    with pytest.raises(InvalidInput):
        nodes_for(CPU, [])
