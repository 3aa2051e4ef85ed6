"""The management service over HTTP: nodes, slots, and the master's word to the agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.access.roles import sha256
from infosvc.core.service import components_of
from infosvc.management.agent_client import NOTICE
from infosvc.management.nodes import split_address
from infosvc.management.notifier import Notifier
from infosvc.state.configuration import Configuration
from infosvc.state.transaction import Commit
from infosvc.wire.errors import Conflict, NotFound
from infosvc.wire.records import Kind, Outcome, Producer, Report, Role, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Heard, Served, Serving

CPU = Producer("cpu", "scripts/cpu.sh", 2.0, timeout=4.0, sha256="b" * 64)


@pytest.fixture
def service(database: str, hands: Hands, serve: Serving) -> Iterator[Served]:
    """A service that waits for agents also on a busy machine."""
    with serve(database, hands, notice_timeout=60.0) as served:
        yield served


def _state(service: Served, node_name: str) -> str:
    return next(node.state for node in service.reader.nodes() if node.node_name == node_name)


def test_a_node_is_ready_then_stale_then_lost(service: Served, hands: Hands) -> None:
    assert service.client.put_node("n1", "127.0.0.1:9").state == "stale"
    service.client.report("n1", Report("boot", 1, "1.2"))
    [node] = service.reader.nodes()
    assert (node.state, node.agent_version, node.last_seen) == ("ready", "1.2", hands.epoch + hands.now)
    hands.turn(7.5)
    assert _state(service, "n1") == "ready"
    hands.turn(0.5)
    assert _state(service, "n1") == "stale"
    hands.turn(7)
    assert _state(service, "n1") == "stale"
    hands.turn(0.5)
    assert _state(service, "n1") == "lost"
    service.client.report("n1", Report("boot", 2))
    assert _state(service, "n1") == "ready"


def test_a_node_that_never_reports_is_lost_after_a_while_and_again_after_a_restart(
    sqlite_url: str, hands: Hands, serve: Serving
) -> None:
    with serve(sqlite_url, hands) as service:
        assert service.client.put_node("n1", "127.0.0.1:9").state == "stale"
        hands.turn(15)
        assert _state(service, "n1") == "stale"
        hands.turn(0.5)
        assert _state(service, "n1") == "lost"
        service.client.delete_node("n1")
        assert service.client.put_node("n1", "127.0.0.1:9").state == "stale"
    with serve(sqlite_url, hands) as service:
        assert _state(service, "n1") == "stale"
        hands.turn(15.5)
        assert _state(service, "n1") == "lost"
        service.client.report("n1", Report("boot", 1))
        assert _state(service, "n1") == "ready"
        service.client.delete_node("n1")
        assert service.client.put_node("n1", "127.0.0.1:9").state == "stale"


def test_a_node_that_only_has_values_is_no_node_and_can_be_forgotten(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_value("cpu", "elsewhere", 1)
    assert service.ask("GET", "/api/v1/nodes/elsewhere").status == 404
    assert [node.node_name for node in service.client.nodes()] == []
    service.client.delete_node("elsewhere")
    assert service.client.data("cpu") == []
    assert service.ask("DELETE", "/api/v1/nodes/elsewhere").status == 404


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
        service.client.put_value("cpu", name, 1)
        service.client.put_slot(name, "cpu", True)
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
def test_an_address_without_host_or_port_is_refused(shared_service: Served, address: Any) -> None:
    answer = shared_service.ask("PUT", "/api/v1/nodes/n1", {"address": address})
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
    assert service.client.report("n1", Report("b", 1)).wanted_version == versions[-1]


def test_a_program_gets_no_slot(service: Served) -> None:
    service.client.put_producer(Producer("speed", "", 60, Kind.PROGRAM))
    service.client.put_node("n1", "127.0.0.1:9")
    with pytest.raises(Conflict, match="kind program"):
        service.client.put_slot("n1", "speed", True)
    service.client.put_producer(CPU)
    service.client.put_slot("n1", "cpu", True)
    service.client.put_producer(Producer("cpu", "", 60, Kind.PROGRAM))
    assert service.reader.slots("n1").slots == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("running", "yes"), ("running", 1), ("interval", 0), ("interval", "5"), ("interval", 1e-6), ("interval", 0.09)],
)
def test_a_wrong_slot_is_refused_by_field(shared_service: Served, field: str, value: Any) -> None:
    shared_service.client.put_producer(CPU)
    shared_service.client.put_node("n1", "127.0.0.1:9")
    answer = shared_service.ask("PUT", "/api/v1/nodes/n1/slots/cpu", {field: value})
    assert (answer.status, answer.error["field"]) == (422, field)
    assert shared_service.ask("PUT", "/api/v1/nodes/n1/slots/nothing", {}).status == 404
    assert shared_service.ask("PUT", "/api/v1/nodes/n2/slots/cpu", {}).status == 404


def test_an_interval_shorter_than_any_agent_keeps_is_refused_with_the_shortest(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:9")
    answer = service.ask("PUT", "/api/v1/nodes/n1/slots/cpu", {"interval": 0.09})
    assert (answer.status, answer.error["field"]) == (422, "interval")
    assert "0.1" in answer.error["message"]
    assert service.reader.slots("n1").slots == ()
    assert service.ask("PUT", "/api/v1/nodes/n1/slots/cpu", {"interval": 0.1}).status == 201


def test_the_master_tells_the_agent_of_each_change_and_never_what_it_is(
    service: Served, agent: Heard, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", agent.address)
    eventually(lambda: len(agent.calls) == 1)
    service.client.put_slot("n1", "cpu", True)
    eventually(lambda: len(agent.calls) == 2)
    assert [(call.method, call.path, call.body) for call in agent.calls] == [("POST", NOTICE, b"")] * 2


def test_the_master_signs_with_what_it_keeps_of_the_agent_s_token_and_shows_neither(
    service: Served, agent: Heard, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    service.client.put_node("n1", agent.address)
    eventually(lambda: len(agent.calls) == 1)
    _, old = service.client.create_token("agent of n1", Role.AGENT, "n1")
    service.client.put_producer(CPU)
    service.client.put_slot("n1", "cpu", True)
    eventually(lambda: len(agent.calls) == 2)
    service.client.delete_node("n1")
    eventually(lambda: len(agent.calls) == 3)

    assert [call.path for call in agent.calls] == [NOTICE] * 3
    for call, key in zip(agent.calls, ["", sha256(old), sha256(old)], strict=True):
        assert call.is_signed_with(key)
        assert old not in call.authorization
        assert sha256(old) not in call.authorization


def test_a_forgotten_node_s_agent_is_told_to_ask_unless_another_node_has_its_address(
    service: Served,
    agent: Heard,
    eventually: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[str] = []
    stop_one = Notifier._stop_one

    def look(notifier: Notifier, before: Configuration, node_name: str) -> None:
        stop_one(notifier, before, node_name)
        looked_at.append(node_name)

    monkeypatch.setattr(Notifier, "_stop_one", look)
    tokens = {}
    for name in ("old", "new"):
        _, tokens[name] = service.client.create_token(f"agent of {name}", Role.AGENT, name)
        service.client.put_node(name, agent.address)
    eventually(lambda: len(agent.calls) == 2)
    agent.calls.clear()
    service.client.delete_node("old")
    eventually(lambda: looked_at == ["old"])  # which happens in the background, and while the other is there
    service.client.delete_node("new")
    eventually(lambda: looked_at == ["old", "new"] and bool(agent.calls))

    assert [call.is_signed_with(sha256(tokens["new"])) for call in agent.calls] == [True]


def test_what_an_agent_refuses_is_logged(
    service: Served, agent: Heard, eventually: Callable[[Callable[[], bool]], None], caplog: pytest.LogCaptureFixture
) -> None:
    agent.status = 409
    service.client.put_node("n1", agent.address)
    service.client.delete_node("n1")
    eventually(lambda: "agent of n1 was not told to end" in caplog.text)
    assert "it answered 409" in caplog.text


def test_a_notice_that_fails_holds_no_later_write_up(service: Served) -> None:
    def fail(_commit: Commit) -> None:
        raise RuntimeError("planted")

    components_of(service.server.app).writer.listeners.insert(0, fail)
    service.client.put_node("n1", "127.0.0.1:1")
    service.client.put_node("n2", "127.0.0.1:1")


def test_an_agent_that_does_not_listen_holds_nothing_up(service: Served) -> None:
    service.client.put_producer(CPU)
    service.client.put_node("n1", "127.0.0.1:1")
    service.client.put_slot("n1", "cpu", True)
    assert [slot.data_name for slot in service.reader.slots("n1").slots] == ["cpu"]
