"""A job whose nodes have to fetch an environment first: those that begin later get less, and are told why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from environments.ready import CACHED
from hadoop.client.filesystem import Amount
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.fields import answer_of
from infosvc.wire.records import Kind, Producer
from jobs.application.coordinator import Knowledge
from jobs.division import speed_history, start_history
from jobs.division.decision import Decision
from jobs.division.explanation import explanation, heading
from jobs.division.replay import attempts, comparison, values_of
from jobs.division.starts import in_plan_time
from jobs.errors import JobError
from jobs.itemwork.deciding import decide as decide_job
from jobs.itemwork.messages import Item
from jobs.itemwork.snapshot import Snapshot, know
from jobs.kinds.pool.lives import ReadyNodes
from locality.cost import AccessCost
from locality.types import Block, Part
from tests.jobs.decisions import WEIGHTS, decide
from tests.jobs.stored import SETTINGS

SHA256 = "a1" * 32
PART = f"/nodewise/env/blobs/sha256-{SHA256}.sqfs"
SIZE = 10 * round(AccessCost().entry("alpha", "").bytes_per_second)
"""What a node fetches in ten seconds, as long as nothing is measured."""
SPEEDS = {node: 2 * weight for node, weight in WEIGHTS.items()}
IN_ENVIRONMENT = replace(SETTINGS, parts={"/opt/env": PART}, policy="maxflow")


class Files:
    """A NameNode that knows the size of the part."""

    def amount(self, name: str) -> Amount:
        if name != PART:
            raise HadoopError(f"{name} is not there")
        return Amount(1, SIZE)


class Cluster(Knowledge):
    """Three nodes that all have room."""

    def nodes(self) -> list[str]:
        return list(WEIGHTS)

    def racks(self) -> dict[str, str]:
        return {}


class Images:
    """Eight hundred images, any of which each node holds."""

    def blocks(self, input_path: str) -> Sequence[Block]:
        return [Block(f"{input_path}/{number}", 10, 1000, tuple(WEIGHTS)) for number in range(80)]

    def of(self, part: Part) -> Sequence[Item]:
        raise NotImplementedError


def tell(client: InfoClient, cached: dict[str, Any]) -> None:
    """The service knows the weights of the nodes, how fast each was with the program, and what they keep."""
    for name, unit, values in (("weight", "kg", WEIGHTS), (CACHED, "json", cached)):
        client.put_producer(Producer(name, cmd="", time_max=60, kind=Kind.PROGRAM, unit=unit))
        for node, value in values.items():
            client.put_value(name, node, value if name == "weight" else json.dumps(value))
    speed_history.prepare(client, IN_ENVIRONMENT.program.name, IN_ENVIRONMENT.program.batch)
    speed_history.record(client, IN_ENVIRONMENT.program.name, IN_ENVIRONMENT.program.batch, SPEEDS)


def known_by(client: InfoClient) -> Snapshot:
    return know(Cluster(cast("Any", Files()), client), Images(), IN_ENVIRONMENT)


def test_a_node_that_lacks_the_environment_gets_less_by_what_it_could_do_until_it_has_it(client: InfoClient) -> None:
    has_it = {SHA256[:16]: SIZE}
    tell(client, {"alpha": has_it, "beta": has_it, "gamma": {}})

    decision = decide_job("application_1_0001", IN_ENVIRONMENT, known_by(client), "images")

    # 800 images at 2 + 4 + 10 images per second, the last ones from the tenth second on: all ends after 56.25 s
    assert decision.start_seconds == {"gamma": pytest.approx(10.0)}
    assert decision.plan.loads() == {"alpha": 112, "beta": 225, "gamma": 463}
    assert decision.quality.makespan_over_bound == pytest.approx(1.0, abs=0.02)
    assert Decision.from_bytes(decision.to_bytes(), "decision.json") == decision


def test_nodes_that_do_not_tell_what_they_keep_count_as_without(client: InfoClient) -> None:
    tell(client, {"alpha": {SHA256[:16]: SIZE}})

    assert known_by(client).start_seconds == pytest.approx({"beta": 10.0, "gamma": 10.0})


def test_what_loading_took_is_counted_beside_what_has_to_be_fetched(client: InfoClient) -> None:
    tell(client, {"alpha": {SHA256[:16]: SIZE}, "beta": {SHA256[:16]: SIZE}, "gamma": {}})
    program = IN_ENVIRONMENT.program.name
    start_history.prepare(client, program)
    start_history.record(client, program, {"alpha": 4.0, "beta": 2.0, "elsewhere": 60.0})

    decision = decide_job("application_1_0001", IN_ENVIRONMENT, known_by(client), "images")

    # Nothing is known of gamma's loading, so it counts as the median; 2, 4 and 10 images per second from then on.
    assert decision.start_seconds == pytest.approx({"alpha": 4.0, "beta": 2.0, "gamma": 13.0})
    end = (800 + 2 * 4 + 4 * 2 + 10 * 13) / 16
    assert decision.plan.loads() == pytest.approx(
        {"alpha": 2 * (end - 4), "beta": 4 * (end - 2), "gamma": 10 * (end - 13)}, abs=1.0
    )


def test_a_pool_s_workers_have_loaded_it(client: InfoClient) -> None:
    tell(client, {"alpha": {}})
    start_history.prepare(client, SETTINGS.program.name)
    start_history.record(client, SETTINGS.program.name, {"alpha": 4.0})
    ready: Any = ReadyNodes(Cluster(cast("Any", Files()), client), cast("Any", None))

    assert known_by(client).start_seconds["alpha"] == 14.0
    assert ready.start_seconds({}, ["alpha"], SETTINGS.program.name) == {}


def test_without_an_environment_nothing_is_asked(client: InfoClient, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(client, {"alpha": {}})
    asked, read = list[str](), InfoClient.data

    def noted(self: InfoClient, name: str, **more: Any) -> Any:
        asked.append(name)
        return read(self, name, **more)

    monkeypatch.setattr(InfoClient, "data", noted)

    known = know(Cluster(cast("Any", Files()), client), Images(), SETTINGS)

    assert (known.start_seconds, CACHED in asked, "weight" in asked) == ({}, False, True)


def test_what_cannot_be_known_does_not_stop_the_job(client: InfoClient, capsys: pytest.CaptureFixture[str]) -> None:
    tell(client, {})
    elsewhere = replace(IN_ENVIRONMENT, parts={"/opt/env": "/gone/sha256-00.sqfs"})

    known = know(Cluster(cast("Any", Files()), client), Images(), elsewhere)

    assert known.start_seconds == {}
    assert "planned as if all nodes could begin at once: /gone/sha256-00.sqfs is not there" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("speeds", "counted"),
    [
        ({"alpha": 2.0, "beta": 4.0, "gamma": 10.0}, {"gamma": 20.0}),  # two images per second and unit of weight
        ({"beta": 6.0}, {"gamma": 30.0}),
        ({}, {}),
        ({"delta": 6.0}, {}),
        ({"alpha": 0.0}, {}),
    ],
)
def test_seconds_become_the_time_of_the_plan_by_what_speeds_tell(
    speeds: dict[str, float], counted: dict[str, float]
) -> None:
    assert in_plan_time({"gamma": 10.0, "gone": 10.0}, speeds, WEIGHTS) == counted


LATE = decide("maxflow", speeds=SPEEDS, start_seconds={"gamma": 1.0, "beta": 9.0})
"""40 images: alpha does two a second at once, gamma ten from the first second on, and beta nothing before the ninth."""


def why(decision: Decision, name: str) -> str:
    (node,) = explanation(decision, name).nodes
    return " ".join(node.why)


def test_the_explanation_says_who_begins_when_and_what_that_costs() -> None:
    assert LATE.plan.loads() == {"alpha": 8, "beta": 0, "gamma": 32}
    assert (
        "It needs about 1 s before it begins. In images / weight, it begins at 2, and all can be done at 8.333. "
        in why(LATE, "gamma")
    )
    assert "That makes 5 * (8.333 - 2) = 31.7 images by the formula, rounded to 32. It gets these 32." in why(
        LATE, "gamma"
    )
    assert "it begins at 0, and all can be done at 8.333. That makes 1 * (8.333 - 0) = 8.3 images" in why(LATE, "alpha")
    assert "It needs about 9 s before it begins." in why(LATE, "beta")
    assert "It gets none, because all can be done before it begins." in why(LATE, "beta")
    assert "Predicted makespan 4.2, lower bound 4.2, ratio 1.01; in seconds" in " ".join(heading(explanation(LATE)))


def test_the_figures_have_the_seconds_and_when_each_node_ends() -> None:
    nodes = {one["node_name"]: one for one in answer_of(explanation(LATE))["nodes"]}

    assert {name: one["start_seconds"] for name, one in nodes.items()} == {"alpha": 0.0, "beta": 9.0, "gamma": 1.0}
    assert {name: one["predicted"] for name, one in nodes.items()} == {"alpha": 4.0, "beta": None, "gamma": 4.2}


def test_where_nothing_tells_how_long_the_work_takes_that_is_said() -> None:
    unknown = decide("maxflow", start_seconds={"gamma": 1.0})

    assert unknown.plan == decide("maxflow").plan
    assert "It needs about 1 s before it begins, which does not count, as no speed of earlier jobs tells" in why(
        unknown, "gamma"
    )
    assert "That makes 40 * 5 / 8 = 25.0 images by the formula" in why(unknown, "gamma")


def test_a_replay_counts_it_in_the_unit_of_each_capability() -> None:
    stored = Decision.from_bytes(LATE.to_bytes(), "decision.json")
    assert stored == LATE

    made = attempts(stored, ["maxflow", "even"], {"weight": WEIGHTS, "level": values_of(stored, "level")})
    recorded, again, even, level, _ = comparison(stored, made)["plans"]

    assert again == {**recorded, "recorded": False, "planning_seconds": again["planning_seconds"]}
    assert (recorded["makespan"], recorded["lower_bound"]) == (4.2, pytest.approx(25 / 6))
    assert even["makespan"] == 9.0 + 13 / 4
    # One unit of level is worth four images a second, so beta would begin when two nodes have done all.
    assert level["images"] == {"alpha": 22, "beta": 0, "gamma": 18}


@pytest.mark.parametrize("seconds", [-1.0, 1e999])
def test_a_record_with_a_start_that_makes_no_sense_is_damaged(seconds: float) -> None:
    body = json.loads(LATE.to_bytes()) | {"start_seconds": {"gamma": seconds}}

    with pytest.raises(JobError, match="is a damaged decision record"):
        Decision.from_bytes(json.dumps(body).replace("Infinity", "1e999").encode(), "decision.json")
