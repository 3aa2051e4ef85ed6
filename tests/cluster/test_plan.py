"""`nodewise locality plan` on a real cluster: every policy over the same blocks, values and racks; nothing starts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infosvc.wire.records import Kind, Producer
from locality.policies import POLICIES
from tests.cluster.site import BROKEN, PICTURES, Site, succeed

pytestmark = pytest.mark.cluster

IMAGES = PICTURES + len(BROKEN)
PATH = "hdfs:///data/images"
CAPABILITY = "planned_weight"


@pytest.fixture(scope="module")
def site(site: Site) -> Site:
    client = site.client()
    client.put_producer(Producer(CAPABILITY, cmd="", time_max=3600, kind=Kind.PROGRAM))
    for weight, node in enumerate(site.cluster.nodes):
        client.put_value(CAPABILITY, node, weight)
    return site


@pytest.fixture(scope="module")
def body(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        succeed(site.nodewise("locality", "plan", PATH, "--capability", CAPABILITY, "--json"))
    )
    return found


def test_every_policy_divides_all_pictures_of_the_path(site: Site, body: dict[str, Any]) -> None:
    assert [plan["policy"] for plan in body["plans"]] == list(POLICIES)
    assert body["images"] == IMAGES
    assert all(sum(plan["loads"].values()) == IMAGES for plan in body["plans"])
    assert body["values"] == {node: float(weight) for weight, node in enumerate(site.cluster.nodes)}


def test_a_node_without_capability_gets_nothing_and_the_shares_follow_the_values(
    site: Site, body: dict[str, Any]
) -> None:
    loads = {plan["policy"]: plan["loads"] for plan in body["plans"]}

    assert list(loads["algorithm1"].values()) == [0, 7, 14, 21]
    assert all(load[site.cluster.nodes[0]] == 0 for load in loads.values())


def test_what_moves_is_told_picture_by_picture_with_its_reason(body: dict[str, Any]) -> None:
    for plan in body["plans"]:
        foreign = sum(move["images"] for move in plan["moves"])
        assert foreign == round((1 - plan["locality_ratio"]) * IMAGES)
        assert all(move["to"] not in move["from"] and move["text"] for move in plan["moves"])


def test_maxflow_moves_the_fewest_bytes_and_no_more_than_algorithm1(body: dict[str, Any]) -> None:
    plans = {plan["policy"]: plan for plan in body["plans"]}

    assert plans["maxflow"]["bytes_moved"] == plans["maxflow"]["bytes_moved_optimal"]
    assert plans["maxflow"]["bytes_moved"] <= plans["algorithm1"]["bytes_moved"]


def test_a_person_reads_shares_and_reasons(site: Site) -> None:
    words = ("--capability", CAPABILITY, "--policy", "algorithm1", "--policy", "maxflow", "--explain")
    text = succeed(site.nodewise("locality", "plan", PATH, *words))

    assert all(node in text for node in site.cluster.nodes)
    assert "algorithm1 moves" in text
    assert "maxflow moves" in text


REFUSALS = {
    "policy": (["--policy", "best"], 2, "'best' is not one of 'algorithm1'"),
    "epsilon": (["--epsilon", "-0.1"], 2, "-0.1 is not in the range"),
    "path": ([], 1, "/no/such/path is not in HDFS"),
    "value": (["--capability", "never_heard_of"], 1, "never_heard_of"),
}


@pytest.mark.parametrize(("words", "status", "named"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_be_planned_is_refused(site: Site, words: list[str], status: int, named: str) -> None:
    path = "hdfs:///no/such/path" if not words else PATH
    done = site.nodewise("locality", "plan", path, "--capability", CAPABILITY, *words)

    assert done.returncode == status
    assert named in done.stderr
    assert "Traceback" not in done.stderr
