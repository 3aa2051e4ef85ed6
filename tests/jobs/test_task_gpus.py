"""Tasks that ask for GPUs: what YARN counts for them, and which nodes are left out, by what a real service knows."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from boxes.gpus.cards import Wanted
from hadoop.rest.resourcemanager import NodeRoom, parse_room
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, Unreachable
from infosvc.wire.records import Kind, Producer
from infosvc.wire.task_spec import TaskSpec
from jobs.division.gpu_nodes import CARDS, GPU, MISSING, find_lacking, leave_out_lacking
from jobs.errors import JobError
from jobs.kinds.task.request import order, wanted_gpus
from jobs.kinds.task.settings import TaskSettings
from jobs.submitter.placing import Seat, consider

ID = "task_0f1e2d3c4b5a6978"
SPEC = TaskSpec(("train",), gpus=2, gpu_model="T4", gpu_memory_mb=16384, gpu_capability="7.5")


def tell(client: InfoClient, node: str, *cards: tuple[str, int, str]) -> None:
    """What a node's collector would tell: model, MB and compute capability of each card."""
    told = [
        {"index": index, "model": model, "memory_total_bytes": mb << 20, "compute_capability": capability}
        for index, (model, mb, capability) in enumerate(cards)
    ]
    client.put_producer(Producer(CARDS, "", 60, kind=Kind.PROGRAM))
    client.put_node(node, "127.0.0.1:9")
    client.put_value(CARDS, node, json.dumps(told))


def test_yarn_counts_the_gpus_and_the_runner_is_told_which_will_do() -> None:
    made = order(SPEC, ID, None, ["a", "b"])

    assert made.master.resources == {"yarn.io/gpu": 2}
    told = TaskSettings.from_json(json.loads(json.dumps(dict(made.settings))))
    assert told.gpus == {"count": 2, "model": "T4", "memory_mb": 16384, "capability": "7.5"}
    without = order(TaskSpec(("train",)), ID, None, ["a"])
    assert (without.master.resources, without.settings["gpus"]) == ({}, {})


def test_only_nodes_whose_cards_will_do_may_have_it(client: InfoClient) -> None:
    t4, p100 = ("Tesla T4", 15360, "7.5"), ("Tesla P100-PCIE-16GB", 16280, "6.0")
    tell(client, "good", t4, t4)
    tell(client, "mixed", t4, p100)
    tell(client, "few", t4)
    found = find_lacking(client, wanted_gpus(SPEC), {"good": 2, "mixed": 2, "few": 2, "silent": 2, "uncounted": 0})

    assert found == {
        "mixed": "1 of its 2 GPUs will do, and 2 are asked for: GPU 1, Tesla P100-PCIE-16GB, is not a T4",
        "few": "it has 1 GPU, and 2 are asked for",
        "silent": "it tells nothing of its GPUs",
        "uncounted": "YARN counts no GPUs, and 2 are asked for",
    }
    assert next(iter(found)) == "mixed", "it comes closest"
    nodes = ["few", "good", "mixed", "silent", "uncounted"]
    assert order(SPEC, ID, None, nodes, lacking=found).master.hosts == ["good"]
    with pytest.raises(JobError) as refused:
        order(replace(SPEC, not_nodes=("good",)), ID, None, nodes, lacking=found)
    assert str(refused.value) == (
        "none of the nodes that may run it has the GPUs that it asks for: on mixed, for example, 1 of its 2 GPUs "
        "will do, and 2 are asked for: GPU 1, Tesla P100-PCIE-16GB, is not a T4: ask for fewer by --gpus, or for "
        "others by --gpu-model, --gpu-memory and --gpu-capability"
    )
    with pytest.raises(JobError, match="that each container asks for: on silent, it tells nothing of its GPUs: ask"):
        leave_out_lacking(["silent"], found, "each container asks for")
    assert leave_out_lacking(["good", "silent"], found, "each container asks for") == ["good"]
    with pytest.raises(JobError, match=r"asks for \(few\): on few, it has 1 GPU, and 2 are asked for"):
        order(replace(SPEC, nodes=("few",)), ID, None, nodes, lacking=found)


def test_where_any_gpu_will_do_yarn_alone_knows_how_many_there_are(client: InfoClient) -> None:
    wanted = wanted_gpus(TaskSpec(("train",), gpus=1))

    assert find_lacking(client, wanted, {"silent": 1}) == {}, "nothing is registered under the name"
    assert find_lacking(client, wanted, {"n": None}) == {}, "YARN itself says that it counts none"
    tell(client, "told", ("Tesla T4", 15360, "7.5"))
    assert find_lacking(client, wanted, {"silent": 1, "told": 1}) == {}
    client.put_value(CARDS, "told", "no list")
    assert find_lacking(client, wanted, {"told": 1}) == {}


def test_a_node_with_a_cdi_file_from_before_an_upgrade_is_left_out(client: InfoClient) -> None:
    old = "/etc/cdi/nodewise-nvidia.json names /usr/lib/libcuda.so.550.54, which is not there"
    for node in ("old", "new", "lately"):
        tell(client, node, ("Tesla T4", 15360, "7.5"))
    client.put_producer(Producer(MISSING, "", 60, kind=Kind.PROGRAM))
    for node in ("old", "lately"):
        client.put_value(MISSING, node, old)
    client.put_value(MISSING, "new", "none")

    found = find_lacking(client, Wanted(1), {"old": 1, "new": 1, "lately": 1, "silent": 1})

    assert found == dict.fromkeys(("lately", "old"), f"{old}, so an operator has to write the CDI file anew")
    client.put_value(MISSING, "lately", "none")
    assert list(find_lacking(client, Wanted(1), {"old": 1, "lately": 1})) == ["old"]
    client.put_producer(Producer(MISSING, "", 60, ttl=1e-3, kind=Kind.PROGRAM))
    time.sleep(0.01)
    assert not find_lacking(client, Wanted(1), {"old": 1}), "it may have been written anew since"


def test_a_task_without_gpus_asks_nobody_for_values() -> None:
    nobody = InfoClient("http://127.0.0.1:1")

    assert find_lacking(nobody, wanted_gpus(TaskSpec(("true",))), {"a": 0}) == {}


def test_where_any_card_will_do_the_count_of_yarn_is_enough_without_the_service() -> None:
    nobody = InfoClient("http://127.0.0.1:1")

    found = find_lacking(nobody, Wanted(1), {"a": 0, "b": 1})
    assert found == {"a": "YARN counts no GPUs, and 1 is asked for"}
    with pytest.raises(Unreachable):
        find_lacking(nobody, Wanted(1, model="T4"), {"a": 0, "b": 1})


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"gpus": 0, "gpu_model": "T4"}, "gpu_model"),
        ({"gpus": 0, "gpu_memory_mb": 1}, "gpu_memory_mb"),
        ({"gpus": 0, "gpu_capability": "7.5"}, "gpu_capability"),
        ({"gpus": -1}, "gpus"),
        ({"gpus": 65}, "gpus"),
        ({"gpus": 1, "gpu_model": "T4;"}, "gpu_model"),
        ({"gpus": 1, "gpu_model": "T4\n"}, "gpu_model"),
        ({"gpus": 1, "gpu_capability": "7"}, "gpu_capability"),
        ({"gpus": 1, "gpu_memory_mb": 0}, "gpu_memory_mb"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(client: InfoClient, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        client.submit_task(TaskSpec(("train",), **asked))

    assert refused.value.field == field


def test_a_task_again_asks_for_the_same_gpus(client: InfoClient) -> None:
    first = client.submit_task(SPEC)
    client.stop_task(first.task_id)

    assert client.task_again(first.task_id).spec == client.task(first.task_id).spec == SPEC


def test_what_a_node_has_of_other_types_is_read_from_what_yarn_tells() -> None:
    def told(gpus: int) -> dict[str, Any]:
        usual = [{"name": "memory-mb", "value": 1024}, {"name": "vcores", "value": 1}]
        return {"resourceInformations": {"resourceInformation": [*usual, {"name": GPU, "value": gpus}]}}

    figures = {"availMemoryMB": 1, "usedMemoryMB": 2, "availableVirtualCores": 3, "usedVirtualCores": 4}
    node = {"nodeHostName": "a", **figures}

    room = parse_room(node | {"availableResource": told(1), "usedResource": told(2)})
    assert (dict(room.free), dict(room.total)) == ({GPU: 1}, {GPU: 3})
    assert parse_room(node).free == {}


def test_a_node_has_room_only_with_as_many_free_gpus() -> None:
    seat = Seat("task_1", "own", 1, 512, 1, resources={GPU: 2})
    there = [NodeRoom(node, 4096, 2, free={GPU: free}) for node, free in (("own", 0), ("one", 1), ("two", 2))]

    assert {one.node_name: one.has_room for one in consider(seat, there, None)} == {
        "own": True,
        "one": False,
        "two": True,
    }
