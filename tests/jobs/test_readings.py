"""A job of another program than that of the capability's speeds is planned by its own, read from the real service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from jobs.division import speed_history
from jobs.division.decision import Decision
from jobs.division.readings import RECORDED, Program, read_capability
from jobs.engines.network import choose
from jobs.errors import JobError
from jobs.itemwork import deciding
from jobs.itemwork.snapshot import know, know_later, note
from locality.capability import Sample, from_jobs
from locality.program_names import speed_name
from tests.jobs.decisions import make_blocks
from tests.jobs.stored import SETTINGS, SPEC

NODES = ("alpha", "beta", "gamma")
JUDGE = "judge"
OWN = Program("onnx.own", 8)


@pytest.fixture
def alexnets(client: InfoClient) -> InfoClient:
    """A service with a capability that is made from AlexNet's speeds, of which gamma's is by far the highest."""
    speed_history.prepare(client, "mxnet.alexnet", 32)
    speeds = speed_name("mxnet.alexnet", 32)
    client.put_producer(Producer(JUDGE, "judge.py", 60, kind=Kind.PROCESSOR, inputs=(speeds,), unit="images/second"))
    for node, value in zip(NODES, (10, 10, 500), strict=True):
        client.put_value(JUDGE, node, value)
    return client


def record(client: InfoClient, program: Program, **speeds: float) -> None:
    speed_history.prepare(client, program.name, program.batch)
    speed_history.record(client, program.name, program.batch, speeds)


def measure(client: InfoClient, **values: float) -> None:
    client.put_producer(Producer(f"{JUDGE}.measure", "", 60, kind=Kind.PROGRAM))
    for node, value in values.items():
        client.put_value(f"{JUDGE}.measure", node, value)


def numbers(client: InfoClient, program: Program = OWN) -> dict[str, float]:
    return read_capability(client, JUDGE, program, NODES, 0).numbers()


def decide(client: InfoClient, **given: Any) -> Decision:
    """What a job decides by the capability, as its application master does, with this service."""
    settings = replace(SETTINGS, capability=JUDGE, **given)
    knowledge: Any = SimpleNamespace(client=client, nodes=lambda: list(NODES), racks=dict, start_seconds=lambda *_: {})
    images: Any = SimpleNamespace(blocks=lambda _: make_blocks())
    return deciding.decide(SPEC.job_id, settings, know(knowledge, images, settings), "images")


def loads(decision: Decision) -> Sequence[int]:
    return [decision.plan.loads()[node] for node in NODES]


def test_a_job_with_an_onnx_file_is_planned_by_its_own_speeds(alexnets: InfoClient, tmp_path: Path) -> None:
    file = tmp_path / "own.onnx"
    file.write_bytes(b"some model")
    network = choose("onnx", str(file))
    record(alexnets, Program(network.program, 8), alpha=30, beta=5, gamma=5)

    decision = decide(alexnets, engine="onnx", model=network.model, batch=8)

    assert loads(decision) == [30, 5, 5]
    said = f"{JUDGE} tells only of mxnet.alexnet in batches of 32: nodes are judged by the speeds that they had with "
    assert note(decision) == f"{said}{network.program} in batches of 8"
    again = Decision.from_bytes(decision.to_bytes(), "decision.json")
    assert note(again) == note(decision)
    assert (again.readings.kind, again.readings.produced_by) == (RECORDED, speed_name(network.program, 8))
    once = from_jobs([Sample(0, 30)])
    assert once is not None
    assert again.readings.nodes["alpha"].confidence == pytest.approx(once.confidence, rel=0.01)


def test_alexnet_itself_is_judged_by_the_capability_as_it_is(alexnets: InfoClient) -> None:
    record(alexnets, Program("mxnet.alexnet", 32), alpha=30, beta=5, gamma=5)

    decision = decide(alexnets, engine="mxnet", batch=32)

    assert decision.readings.numbers() == {"alpha": 10, "beta": 10, "gamma": 500}
    assert note(decision) == ""
    assert numbers(alexnets, Program("mxnet_alexnet", 32)) == decision.readings.numbers()


def test_another_batch_is_another_program(alexnets: InfoClient) -> None:
    record(alexnets, Program("mxnet.alexnet", 8), alpha=3, beta=2, gamma=1)

    assert numbers(alexnets, Program("mxnet.alexnet", 8)) == {"alpha": 3, "beta": 2, "gamma": 1}


def test_several_own_jobs_are_averaged_as_experience_is(alexnets: InfoClient) -> None:
    for speed in (30, 10):
        record(alexnets, OWN, alpha=speed, beta=5, gamma=5)

    assert numbers(alexnets)["alpha"] == pytest.approx((10 + 0.7 * 30) / 1.7, rel=1e-4)


def test_a_node_that_is_new_to_the_program_is_guessed_by_its_measure_on_the_others_scale(alexnets: InfoClient) -> None:
    record(alexnets, OWN, alpha=20, beta=10)
    measure(alexnets, alpha=1, beta=0.5, gamma=0.25)

    found = read_capability(alexnets, JUDGE, OWN, NODES, 0)

    assert found.numbers() == {"alpha": 20, "beta": 10, "gamma": 5}
    assert (found.nodes["gamma"].state, found.nodes["alpha"].state) == ("guessed", "fresh")
    assert found.help.endswith("onnx.own in batches of 8; new to it, and guessed by the others: gamma")


def test_a_node_that_comes_when_the_others_have_begun_is_put_on_their_scale(alexnets: InfoClient) -> None:
    record(alexnets, OWN, alpha=20, beta=10)
    measure(alexnets, alpha=1, beta=0.5, gamma=0.25)
    settings = replace(SETTINGS, capability=JUDGE, engine="onnx", model="own", batch=8)
    known = read_capability(alexnets, JUDGE, OWN, NODES[:2], 0)

    assert know_later(alexnets, settings, known, NODES[2:]) == {"gamma": 5}


def test_without_a_measure_a_new_node_counts_as_the_middle_of_the_others(alexnets: InfoClient) -> None:
    record(alexnets, OWN, alpha=20, beta=10)

    assert numbers(alexnets)["gamma"] == 15


def test_as_long_as_no_node_has_run_it_measures_judge_and_without_them_all_are_alike(alexnets: InfoClient) -> None:
    assert loads(decide(alexnets, engine="onnx", batch=8)) == [14, 13, 13]
    measure(alexnets, alpha=1, beta=0.5, gamma=0.5)

    assert numbers(alexnets) == {"alpha": 1, "beta": 0.5, "gamma": 0.5}
    said = read_capability(alexnets, JUDGE, OWN, NODES, 0).help
    assert said.endswith("no node has run onnx.own in batches of 8 yet, so nodes are judged without experience of it")


def test_as_long_as_no_node_has_run_it_the_capability_has_to_be_there(alexnets: InfoClient) -> None:
    alexnets.delete_value(JUDGE, "beta")

    with pytest.raises(JobError, match=f"no fresh {JUDGE} for beta"):
        numbers(alexnets)
    with pytest.raises(JobError, match="capability 'nothing'"):
        read_capability(alexnets, "nothing", OWN, NODES, 0)


def test_what_is_made_of_no_speeds_judges_every_program(alexnets: InfoClient) -> None:
    alexnets.put_producer(replace(alexnets.producer(JUDGE), inputs=()))
    record(alexnets, OWN, alpha=1, beta=1, gamma=1)

    assert numbers(alexnets)["gamma"] == 500
