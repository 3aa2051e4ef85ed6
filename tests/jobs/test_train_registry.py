"""What a training run reads from the real information service, writes to it, and says of its shares."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden
from infosvc.wire.records import Kind, Producer, Role
from jobs.application.submit import InfoAccess
from jobs.division import speed_history
from jobs.kinds.train.registry import registry
from jobs.kinds.train.registry.share_history import MOST_CHANGES, ShareHistory
from jobs.kinds.train.registry.speeds import first_values, register
from jobs.kinds.train.request import TrainRequest, order
from learning.lead.calls import Doing, Done, Share
from learning.lead.leader import Member
from locality.training.explaining import ShareChange
from tests.jobs.test_train_coordinator import AWAY, STEPS, A, B, Scene
from tests.jobs.test_train_request import SETTINGS, submitter
from tests.threads import join_threads

SPEEDS = "samples_per_second:train"
BATCH = 128
ALIKE, UNEVEN, OTHER = {"a": 64, "b": 64}, {"a": 26, "b": 102}, {"a": 90, "b": 38}
C = "container_1_0001_01_000004"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values need no time until they show what happened, and a busy machine has enough."""
    monkeypatch.setattr(registry, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(registry, "FIRST_SECONDS", 60.0)
    monkeypatch.setattr(registry, "LAST_SECONDS", 60.0)


@pytest.fixture
def service(client: InfoClient) -> InfoClient:
    """Knows two nodes, and the speeds' name."""
    for node in ("a", "b"):
        client.put_node(node, "127.0.0.1:9")
    register(client, SPEEDS)
    return client


def write(client: InfoClient, name: str, **values: object) -> None:
    client.put_producer(Producer(name, "", 3600, kind=Kind.PROGRAM))
    for node, value in values.items():
        client.put_value(name, node, str(value))


def until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.01)
    return found


def begin(client: InfoClient, **settings: Any) -> Scene:
    """A run of `python train.py` in which two members begin to compute."""
    scene = Scene(client, files=["train.py"], **settings)
    scene.compute(1)
    return scene


def tell(scene: Scene, steps: int, shares: Mapping[str, int], gain: float | None = 1.5, guess: bool = False) -> None:
    """Both members compute by these shares from the step on."""
    for process, node in ((A, "a"), (B, "b")):
        share = Share(shares[node], BATCH, steps, guess, gain)
        scene.say(process, Doing.COMPUTES, Done(steps, STEPS, 10 * steps, 0.5 * steps, share=share))
    scene.tick()


def changes(scene: Scene) -> list[dict[str, Any]]:
    """As the report would have them now."""
    found: list[dict[str, Any]] = scene.train._registry.report()["shares"]
    return found


def reason(scene: Scene) -> str:
    """That of the newest change, once it is there."""

    def told() -> str:
        scene.tick(0.0)  # else members that say nothing meanwhile are silent for too long
        return str(changes(scene)[-1]["why"])

    return str(until(told))


def first_shares(scene: Scene) -> Mapping[str, float]:
    """By node, what members are judged by."""
    measures = scene.say(A, Doing.WAITS, Done(), number=0)["measures"]
    return {node: measures[process] for process, node in ((A, "a"), (B, "b")) if process in measures}


@pytest.mark.parametrize(
    ("values", "known", "judged_by"),
    [
        ({}, {}, ", all nodes alike"),
        ({"free": {"a": 0.9, "b": 0.3}}, {"a": 0.9, "b": 0.3}, ", by free"),
        ({SPEEDS: {"a": 40, "b": 160}, "free": {"a": 0.9}}, {"a": 40.0, "b": 160.0}, f", by {SPEEDS}"),
        ({SPEEDS: {"a": 40}, "free": {"a": 0.5, "b": 0.25}}, {"a": 40.0, "b": 20.0}, f", by {SPEEDS}"),
        ({SPEEDS: {"a": 40}}, {"a": 40.0}, f", by {SPEEDS}"),
        ({SPEEDS: {"a": "fast", "b": 1e300}, "free": {"a": 1e-300, "b": 0.5}}, {"b": 0.5}, ", by free"),
    ],
    ids=["nothing", "measure", "speeds", "a speed gives the scale", "one speed", "what is no speed"],
)
def test_what_the_service_knows_gives_the_first_shares(
    service: InfoClient, values: Mapping[str, Mapping[str, object]], known: Mapping[str, float], judged_by: str
) -> None:
    for name, by_node in values.items():
        write(service, name, **by_node)

    scene = begin(service, cold_start="free")

    assert first_shares(scene) == known
    tell(scene, 1, ALIKE)
    assert reason(scene) == f"the first shares{judged_by}"
    scene.begin()
    for process in (A, B):
        scene.start(process, scene.train._nodes[process])
    assert first_shares(scene) == known, "the next attempt judges alike"


def test_a_service_that_is_away_costs_the_first_shares_and_no_more() -> None:
    scene = begin(AWAY, cold_start="free")

    assert first_shares(scene) == {}


def test_what_was_learned_is_what_the_next_run_begins_with(service: InfoClient) -> None:
    _, text = service.create_token("job", Role.PROCESSOR)
    with InfoClient(service.url, text) as job:
        scene = begin(job)
        scene.tell(STEPS, Doing.DONE)
        scene.train.finish()

        assert speed_history.read(service, SPEEDS)["a"].number() == pytest.approx(48.0)
        assert first_values(job, SPEEDS, None, ["a", "b"]) == (SPEEDS, {"a": 48.0, "b": 16.0})
    assert not any("speeds" in line for line in scene.train.progress().news)


def test_speeds_are_written_once_a_minute_while_a_run_goes_on(service: InfoClient) -> None:
    scene = begin(service)
    scene.tell(10)
    for _ in range(14):
        scene.tick(10.0)
        until(scene.train._registry._writing.done)

    points = service.history(SPEEDS, "a").points
    assert [float(speed) for _, speed in points] == [48.0, 48.0], "after 60 and 120 of 140 seconds"


@pytest.mark.parametrize("role", [Role.READER, None], ids=["may not write", "away"])
def test_a_run_that_cannot_write_its_speeds_succeeds_and_says_so_once(service: InfoClient, role: Role | None) -> None:
    client = InfoClient(service.url, service.create_token("reader", role)[1]) if role else AWAY
    scene = begin(client)
    for _ in range(3):
        scene.tick(61.0)
        until(scene.train._registry._writing.done)
    scene.tell(STEPS, Doing.DONE)

    assert scene.train.finish().message.startswith("64 steps are done")
    lines = [line for line in scene.train.progress().news if "speeds of this run" in line]
    assert len(lines) == 1
    assert "the speeds of this run cannot be kept: " in lines[0]
    assert speed_history.read(service, SPEEDS) == {}


def test_the_name_of_the_speeds_is_registered_with_the_job_when_its_owner_may(service: InfoClient) -> None:
    made = order(submitter(), TrainRequest(replace(SETTINGS, argv=["python", "my net.py"]), access=InfoAccess("u")))

    made.prepare(service)
    known = service.producer("samples_per_second:my_net")
    assert (known.kind, known.unit) == (Kind.PROGRAM, "samples/second")
    _, text = service.create_token("reader", Role.READER)
    with InfoClient(service.url, text) as reader, pytest.raises(Forbidden):
        register(reader, "samples_per_second:other")
    with InfoClient(service.url, text) as reader:
        register(reader, SPEEDS)  # it is known: nothing to write


def test_a_change_names_the_value_that_moved_most_on_its_node(service: InfoClient) -> None:
    write(service, "free", a=0.98, b=0.9)
    write(service, "load", a=0.5, b=0.5)
    write(service, SPEEDS, a=90, b=100)
    scene = begin(service)
    tell(scene, 1, ALIKE)
    assert reason(scene) == f"the first shares, by {SPEEDS}"

    write(service, "free", a=0.21, b=0.9)
    write(service, "load", a=0.6, b=9.0)
    write(service, SPEEDS, a=1, b=100)
    tell(scene, 40, UNEVEN)
    assert reason(scene) == "free of a fell from 0.98 to 0.21"

    tell(scene, 60, ALIKE)
    assert reason(scene) == "unexplained", "nothing moved since, the own speeds are no reason"
    first, second, third = changes(scene)
    assert (first["step"], first["shares"], second["shares"]) == (1, ALIKE, UNEVEN)
    assert (second["step"], second["gain"], second["step_seconds"]) == (40, 1.5, {"a": 0.5, "b": 0.5})
    assert third["at_seconds"] > second["at_seconds"] > 0
    line = "from step 40 on, a computes 26 samples of 128 in place of 64: free of a fell from 0.98 to 0.21"
    assert any(line in said for said in scene.train.progress().news)


def test_what_always_moves_explains_nothing(service: InfoClient) -> None:
    scene = begin(service)
    for at, load in enumerate([1.0, 4.0, 2.0, 0.5, 3.0]):
        write(service, "load", a=load, b=load)
        tell(scene, 10 * at + 1, [ALIKE, UNEVEN][at % 2])
        reason(scene)
    write(service, "load", a=1.0, b=1.0)
    tell(scene, 60, UNEVEN)

    assert reason(scene) == "unexplained"


def test_a_service_that_is_away_explains_nothing_and_delays_nothing() -> None:
    scene = begin(AWAY)
    tell(scene, 1, ALIKE)
    reason(scene)
    tell(scene, 40, UNEVEN)

    assert reason(scene) == "unexplained: the service was away"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a service that takes calls and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    join_threads("aside")  # it prints that it was hung up on, which no later test is to hear


def test_a_service_that_never_answers_holds_up_nothing(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FIRST_SECONDS", 0.1)
    monkeypatch.setattr(registry, "LAST_SECONDS", 0.1)
    scene = begin(InfoClient(silent, timeout=600, retries=0))
    tell(scene, 1, ALIKE)
    tell(scene, 40, UNEVEN)
    scene.tell(STEPS, Doing.DONE)
    scene.train.finish()

    assert [one["shares"] for one in scene.report()["shares"]] == [ALIKE, UNEVEN]
    assert any("the speeds of this run may be lost" in line for line in scene.train.progress().news)


def test_the_first_measured_steps_are_a_reason_of_their_own() -> None:
    scene = begin(AWAY)
    tell(scene, 1, ALIKE, gain=None, guess=True)
    tell(scene, 2, UNEVEN)

    assert reason(scene) == "the first steps were measured"


def test_the_next_attempt_knows_the_changes_and_notes_none_twice(service: InfoClient) -> None:
    write(service, "free", a=0.5, b=0.5)
    scene = begin(service)
    tell(scene, 1, ALIKE)
    reason(scene)
    tell(scene, 40, UNEVEN)
    reason(scene)
    known = [(one["step"], one["why"]) for one in changes(scene)]
    until(lambda: scene.train._registry._explaining.done())

    scene.begin()
    for process in (A, B):
        scene.start(process, scene.train._nodes[process])
    tell(scene, 40, UNEVEN)
    assert [(one["step"], one["why"]) for one in changes(scene)] == known
    until(lambda: scene.train._registry._has_looked and scene.train._registry._explaining.done())
    write(service, "free", a=0.1, b=0.5)
    tell(scene, 60, OTHER)
    assert reason(scene) == "free of a fell from 0.5 to 0.1"


def test_a_change_shortly_before_the_end_is_in_the_journal_while_members_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SETTLE_SECONDS", 3600.0)
    scene = begin(AWAY)
    tell(scene, 1, ALIKE)
    scene.tell(STEPS, Doing.DONE)

    kept = until(lambda: [record.body["changes"] for record in scene.journal if record.kind == registry.SHARES])
    assert [change["shares"] for change in kept[0]] == [ALIKE]


def test_a_change_that_the_journal_does_not_take_is_told_and_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(record: object) -> None:
        raise HadoopError("the journal is closed")

    scene = begin(AWAY)
    monkeypatch.setattr(scene, "append", refuse)
    capsys.readouterr()
    tell(scene, 1, ALIKE)

    said = until(lambda: capsys.readouterr().out)
    assert said.rstrip() == "not in the journal: 1 change of shares (the journal is closed)"
    assert [one["shares"] for one in changes(scene)] == [ALIKE]


def member(samples: int, since: int = 0, batch: int = BATCH) -> Member:
    return Member(Doing.COMPUTES, Done(share=Share(samples, batch, since)))


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({A: member(64), B: member(64)}, ALIKE),
        ({A: member(64, 5), B: member(64)}, None),
        ({A: member(64)}, None),
        ({A: member(64), B: member(32)}, None),
        ({A: member(0, batch=0), B: member(0, batch=0)}, None),
        ({A: member(64), B: member(64), C: member(32)}, ALIKE),
    ],
    ids=["all", "one has older ones", "one is silent", "some are missing", "none yet", "one is no member"],
)
def test_shares_count_once_all_members_have_told_the_same(told: Mapping[str, Member], found: Any) -> None:
    change = ShareHistory({A: "a", B: "b", C: "c"}).find_change({A, B}, told, 3.0)

    assert (change.shares if change else None) == found


def test_the_memory_of_changes_is_bounded() -> None:
    history = ShareHistory({})
    for step in range(MOST_CHANGES + 5):
        history.add(ShareChange(step, 0.0, {"a": step}))

    assert [one["step"] for one in history.report()] == list(range(5, MOST_CHANGES + 5))
