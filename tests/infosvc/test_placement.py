"""Producers of scope cluster: placed by the service, kept on as many nodes as they have replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infosvc.core.service import components_of
from infosvc.management import watchdog
from infosvc.management.cluster_slots import ANYWHERE, choose
from infosvc.management.watchdog import Watchdog
from infosvc.state.configuration import Configuration, Machine, SlotRequest
from infosvc.wire.errors import Conflict, NotFound
from infosvc.wire.records import Kind, Outcome, Producer, Report, Run, Scope

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

DIST = Producer("dist", "processors/dist.py", 5.0, Kind.PROCESSOR, Scope.CLUSTER)


class Cluster:
    """A service whose time we turn, and nodes that report or are silent."""

    def __init__(self, service: Served, hands: Hands) -> None:
        self.service, self.hands, self.client = service, hands, service.client
        self.watchdog: Watchdog = components_of(service.server.app).watchdog
        self._sequence = 0

    def enrol(self, *names: str) -> None:
        for name in names:
            self.client.put_node(name, "127.0.0.1:1")
        self.pass_time(0, *names)

    def pass_time(self, seconds: int, *alive: str) -> None:
        """Let seconds pass, in which these nodes report and the watchdog does its work."""
        for second in range(seconds + 1):
            self.hands.turn(second > 0)
            for name in alive:
                self._sequence += 1
                self.client.report(name, Report("boot", self._sequence))
            self.watchdog.step()

    def where(self, name: str = "dist") -> list[str]:
        """The nodes with a slot of this name."""
        nodes = [node.node_name for node in self.client.nodes()]
        return [node for node in nodes if name in [slot.data_name for slot in self.client.slots(node).slots]]

    def start(self, producer: Producer = DIST, **said: Any) -> None:
        self.client.put_producer(producer)
        self.client.put_slot(ANYWHERE, producer.data_name, True, **said)


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No watchdog does its work but when a test says so: one that was stopped in its middle would see hands leap."""
    monkeypatch.setattr(watchdog, "STEP_SECONDS", 3600.0)


@pytest.fixture
def cluster(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Cluster]:
    with serve(sqlite_url, hands) as service:
        yield Cluster(service, hands)


def test_replicas_go_to_ready_nodes_with_the_fewest_placed_slots(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2", "n3")
    cluster.client.put_node("n0", "127.0.0.1:1")
    cluster.start(replace(DIST, data_name="other"))
    cluster.start(replace(DIST, replicas=2))

    assert cluster.where("other") == ["n1"]
    assert cluster.where() == ["n2", "n3"]
    assert cluster.service.ask("GET", "/api/v1/nodes/*/slots/dist").json == {
        "data_name": "dist",
        "node_name": "*",
        "running": True,
        "interval": 5.0,
        "replicas": 2,
        "nodes": ["n2", "n3"],
    }


def test_on_fewer_nodes_than_replicas_it_runs_on_those_and_is_completed_later(cluster: Cluster) -> None:
    cluster.enrol("n1")
    cluster.start(replace(DIST, replicas=3))
    assert cluster.where() == ["n1"]
    cluster.enrol("n2")
    assert cluster.where() == ["n1", "n2"]
    cluster.enrol("n3", "n4")
    assert cluster.where() == ["n1", "n2", "n3"]


def test_without_a_ready_node_one_waits_until_a_ready_one_comes(cluster: Cluster) -> None:
    cluster.client.put_node("n1", "127.0.0.1:1")
    cluster.start()
    assert cluster.where() == ["n1"]
    cluster.client.put_node("n2", "127.0.0.1:1")
    cluster.pass_time(16, "n2")
    assert cluster.where() == ["n2"]


def test_a_replica_leaves_a_lost_node_and_does_not_come_back(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start(interval=9.0)
    cluster.pass_time(15, "n2")
    assert cluster.where() == ["n1"]
    cluster.pass_time(1, "n2")
    assert cluster.where() == ["n2"]
    [slot] = cluster.client.slots("n2").slots
    assert (slot.running, slot.interval) == (True, 9.0)
    cluster.pass_time(20, "n1", "n2")
    assert cluster.where() == ["n2"]


def test_a_node_that_is_back_in_time_keeps_its_replica(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start()
    version = cluster.client.slots("n1").version
    cluster.pass_time(14, "n2")
    cluster.pass_time(14, "n1", "n2")
    cluster.pass_time(14, "n2")
    assert cluster.where() == ["n1"]
    assert cluster.client.slots("n1").version == version


def test_a_replica_stays_on_a_lost_node_while_no_other_can_take_it(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start(replace(DIST, replicas=2))
    cluster.pass_time(30, "n2")
    assert cluster.where() == ["n1", "n2"]
    cluster.client.put_node("n3", "127.0.0.1:1")
    cluster.pass_time(1, "n2", "n3")
    assert cluster.where() == ["n2", "n3"]


def test_replicas_grow_and_shrink_with_the_registration(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2", "n3")
    cluster.start()
    cluster.client.put_producer(replace(DIST, replicas=3))
    cluster.watchdog.step()
    assert cluster.where() == ["n1", "n2", "n3"]
    cluster.client.put_producer(replace(DIST, replicas=2))
    cluster.watchdog.step()
    assert cluster.where() == ["n1", "n2"]


def test_of_too_many_replicas_the_lost_one_goes_first(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start(replace(DIST, replicas=2))
    cluster.pass_time(20, "n2")
    cluster.client.put_producer(DIST)
    cluster.watchdog.step()
    assert cluster.where() == ["n2"]


def test_what_was_started_by_name_stays_and_shares_no_node(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2", "n3")
    cluster.client.put_producer(replace(DIST, replicas=2))
    cluster.client.put_slot("n1", "dist", True)
    cluster.client.put_slot(ANYWHERE, "dist", True)
    assert cluster.where() == ["n1", "n2", "n3"]
    cluster.pass_time(20, "n2", "n3")
    assert cluster.where() == ["n1", "n2", "n3"]
    cluster.client.delete_slot(ANYWHERE, "dist")
    assert cluster.where() == ["n1"]


def test_putting_a_placed_slot_by_name_pins_it_and_another_takes_its_place(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2", "n3")
    cluster.start(replace(DIST, replicas=2))
    cluster.client.put_slot("n1", "dist", False)
    cluster.watchdog.step()
    assert cluster.where() == ["n1", "n2", "n3"]
    assert [slot.running for slot in cluster.client.slots("n1").slots] == [False]


def test_stopped_replicas_stay_where_they_are_until_they_are_started(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start()
    cluster.client.put_slot(ANYWHERE, "dist", False)
    cluster.pass_time(20, "n2")
    assert (cluster.where(), cluster.client.slots("n1").slots[0].running) == (["n1"], False)
    assert cluster.service.ask("PUT", "/api/v1/nodes/*/slots/dist", {"interval": 3}).json["interval"] == 3.0
    cluster.pass_time(1, "n2")
    assert (cluster.where(), cluster.client.slots("n2").slots[0].running) == (["n2"], True)


def test_a_placement_that_cannot_be_is_refused_with_the_remedy(cluster: Cluster) -> None:
    cluster.client.put_producer(DIST)
    with pytest.raises(Conflict, match="no node can take dist: add one with `nodewise node add`"):
        cluster.client.put_slot(ANYWHERE, "dist", True)
    cluster.enrol("n1")
    with pytest.raises(NotFound, match="start it with `nodewise slot start dist`"):
        cluster.client.put_slot(ANYWHERE, "dist", False)
    with pytest.raises(NotFound, match="start it with `nodewise slot start dist`"):
        cluster.client.delete_slot(ANYWHERE, "dist")
    cluster.client.put_producer(Producer("cpu", "c", 1.0))
    with pytest.raises(Conflict, match="cpu has scope node"):
        cluster.client.put_slot(ANYWHERE, "cpu", True)
    cluster.client.put_producer(Producer("prog", "", 1.0, Kind.PROGRAM, Scope.CLUSTER))
    with pytest.raises(Conflict, match="kind program"):
        cluster.client.put_slot(ANYWHERE, "prog", True)
    with pytest.raises(NotFound, match="no producer"):
        cluster.client.put_slot(ANYWHERE, "nobody", True)
    assert cluster.service.ask("PUT", "/api/v1/nodes/*/slots/dist", {}).status == 201
    assert cluster.service.ask("PUT", "/api/v1/nodes/*/slots/dist", {}).status == 200


def test_a_lift_reaches_every_replica(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start(replace(DIST, replicas=2))
    for name in ("n1", "n2"):
        cluster.client.report(name, Report("other", 1, "", (Run("dist", Outcome.QUARANTINED, 0.1, None, "bad"),)))
    cluster.client.put_slot(ANYWHERE, "dist", True, lift=True)
    slots = [slot for name in ("n1", "n2") for slot in cluster.client.slots(name).slots]
    assert [(slot.epoch, slot.outcome) for slot in slots] == [(1, Outcome.FAILED)] * 2
    cluster.pass_time(20, "n2")
    assert cluster.where() == ["n1", "n2"]


def test_the_slot_of_a_forgotten_node_goes_to_another_and_ends_with_the_last(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start(interval=7.0)
    cluster.client.delete_node("n1")
    cluster.watchdog.step()
    assert cluster.where() == ["n2"]
    assert cluster.client.slots("n2").slots[0].interval == 7.0
    cluster.client.delete_node("n2")
    cluster.watchdog.step()
    cluster.enrol("n3")
    assert cluster.where() == []


def test_a_pause_of_the_service_itself_moves_nothing(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start()
    cluster.hands.turn(3600)
    cluster.pass_time(10, "n2")
    assert cluster.where() == ["n1"]
    cluster.pass_time(10, "n2")
    assert cluster.where() == ["n2"]


def test_a_service_that_starts_again_first_waits_for_its_nodes(
    sqlite_url: str, serve: Serving, hands: Hands, stack: ExitStack
) -> None:
    with serve(sqlite_url, hands) as service:
        before = Cluster(service, hands)
        before.enrol("n1", "n2")
        before.start()
    hands.turn(600)
    after = Cluster(stack.enter_context(serve(sqlite_url, hands)), hands)
    after.pass_time(10, "n2")
    assert after.where() == ["n1"]
    after.pass_time(10, "n1", "n2")
    assert after.where() == ["n1"]
    after.pass_time(16, "n2")
    assert after.where() == ["n2"]


def test_moves_stand_in_the_audit_log_and_states_are_told(cluster: Cluster) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []
    cluster.watchdog.listeners.append(lambda kind, said: heard.append((kind, said)))
    cluster.enrol("n1", "n2")
    cluster.start()
    cluster.pass_time(16, "n2")
    cluster.client.delete_node("n1")
    cluster.watchdog.step()

    assert [kind for kind, _ in heard] == ["node"] * len(heard)
    states = [said["state"] for _, said in heard if said["node_name"] == "n1"]
    assert states[-4:] == ["ready", "stale", "lost", "forgotten"]
    [entry] = [entry for entry in cluster.client.audit() if entry.who == "nodewise"]
    assert (entry.call, entry.detail) == ("PLACE dist", "to n2, off n1")


def test_a_node_that_readers_see_gone_before_the_watchdog_hears_of_it_is_told_once(cluster: Cluster) -> None:
    heard: list[str] = []
    cluster.watchdog.listeners.append(lambda _, said: heard.append(said["state"]))
    cluster.enrol("n1")
    components_of(cluster.service.server.app).writer.listeners.insert(0, lambda _: cluster.watchdog.step())
    cluster.client.delete_node("n1")
    cluster.watchdog.step()
    cluster.watchdog.step()

    assert heard.count("forgotten") == 1


def test_history_older_than_it_is_kept_goes_within_a_minute(cluster: Cluster) -> None:
    cluster.client.put_producer(Producer("cpu", "c", 1.0, keep=100.0))
    cluster.client.put_producer(Producer("load", "c", 1.0, keep=10_000.0))
    cluster.enrol("n1")
    for name in ("cpu", "load"):
        cluster.client.put_value(name, "n1", 1)
    cluster.hands.turn(90)
    cluster.client.put_value("cpu", "n1", 2)
    cluster.watchdog.step()

    def kept(name: str) -> list[str]:
        return [value for _, value in cluster.client.history(name, "n1", since=0).points]

    assert (kept("cpu"), kept("load")) == (["1", "2"], ["1"])
    cluster.hands.turn(61)
    cluster.watchdog.step()
    assert (kept("cpu"), kept("load")) == (["2"], ["1"])


STATES = st.sampled_from(["ready", "stale", "lost"])
SLOTS = st.sampled_from(["none", "placed", "by hand"])


@given(nodes=st.lists(st.tuples(STATES, SLOTS), max_size=8), replicas=st.integers(1, 9))
def test_every_choice_keeps_the_rules(nodes: list[tuple[str, str]], replicas: int) -> None:
    names = [f"n{number}" for number in range(len(nodes))]
    state = {name: nodes[number][0] for number, name in enumerate(names)}
    slots = {name: nodes[number][1] for number, name in enumerate(names)}
    configuration = Configuration(
        {"dist": replace(DIST, replicas=replicas)},
        {name: Machine(name, "", 1) for name in names},
        {name: {"dist": SlotRequest(True, placed=slots[name] == "placed")} for name in names if slots[name] != "none"},
    )

    def is_in(wanted: str) -> Callable[[str], bool]:
        return lambda node_name: state[node_name] == wanted

    moves = choose(configuration, configuration.producers["dist"], is_in("ready"), is_in("lost"))
    before = {name for name in names if slots[name] == "placed"}
    after = (before | set(moves.to)) - set(moves.off)
    living = [name for name in after if state[name] != "lost"]
    free = [name for name in names if slots[name] == "none" and state[name] == "ready"]

    assert set(moves.to) <= set(free) and set(moves.off) <= before
    assert len(living) == min(replicas, len(free) + len([name for name in before if state[name] != "lost"]))
    assert len(after) == min(replicas, max(len(before), len(before | set(moves.to))))
    if len(before) <= replicas:
        assert all(state[name] == "lost" for name in moves.off)
    assert not (moves.off and not moves.to and len(before) <= replicas)


def test_a_lift_everywhere_takes_an_interval(cluster: Cluster) -> None:
    cluster.enrol("n1", "n2")
    cluster.start(replace(DIST, replicas=2), interval=9.0)
    cluster.client.put_slot(ANYWHERE, "dist", True, lift=True)
    assert [cluster.client.slots(node).slots[0].interval for node in ("n1", "n2")] == [9.0, 9.0]
    cluster.client.put_slot(ANYWHERE, "dist", True, 3.0, lift=True)
    slots = [cluster.client.slots(node).slots[0] for node in ("n1", "n2")]
    assert [(slot.interval, slot.epoch) for slot in slots] == [(3.0, 2)] * 2
