"""Types of resource beyond memory and cores in YARN's queues: in reasons, in expected starts, and in what is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from hadoop.rest.amounts import MEMORY, VCORES, Amounts
from hadoop.rest.resourcemanager import NodeRoom
from infosvc.wire.client import InfoClient
from infosvc.wire.queues import ClusterQueues, WaitingApplication, YarnQueue
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID
from jobs.dashboard.queue.line import parse_row
from jobs.dashboard.queue.outlook import held_by_master, hold
from tests.jobs.decisions import NODES
from tests.jobs.played import WAITING, Hadoop, ended_app, running_app

GPU = "yarn.io/gpu"
NOW = 1_700_000_060.0
OWN = {"applicationTags": f"task:{EXAMPLE_ID},kind=task,program:train"}


def resource(mb: int, vcores: int, gpus: int) -> dict[str, Any]:
    """A resource as YARN tells it."""
    rows = [{"name": MEMORY, "value": mb}, {"name": VCORES, "value": vcores}, {"name": GPU, "value": gpus}]
    return {"memory": mb, "vCores": vcores, "resourceInformations": {"resourceInformation": rows}}


def amounts(mb: int, vcores: int, gpus: int) -> Amounts:
    return {MEMORY: mb, VCORES: vcores, GPU: gpus}


def asks(mb: int, vcores: int, gpus: int) -> dict[str, Any]:
    """An application of the caller's that waits for so much."""
    (first,) = WAITING["resourceRequests"]
    return {**WAITING, **OWN, "resourceRequests": [{**first, "capability": resource(mb, vcores, gpus)}]}


def limit(hadoop: Hadoop, **figures: Any) -> None:
    (default, _) = hadoop.scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]
    default |= figures


def give(hadoop: Hadoop, **gpus: tuple[int, int]) -> None:
    """Nodes with so many GPUs in use, and so many free."""
    for node, (used, free) in gpus.items():
        hadoop.figures[node] = {"usedResource": resource(1536, 2, used), "availableResource": resource(512, 6, free)}
    whole = resource(6144, 24, sum(used + free for used, free in gpus.values()))
    limit(hadoop, maxEffectiveCapacity=whole, minEffectiveCapacity=whole)
    limit(hadoop, AMResourceLimit=whole, userAMResourceLimit=whole)


def ask(known: FlaskClient) -> WaitingApplication:
    answer = known.get("/api/v1/queue")
    assert answer.status_code == 200, answer.text
    (own,) = ClusterQueues.from_json(answer.get_json()).waiting
    return own


def test_what_it_asks_for_is_told_by_type(known: FlaskClient, hadoop: Hadoop) -> None:
    hadoop.app |= asks(768, 1, 2)
    own = ask(known)

    assert (own.memory_mb, own.vcores, own.resources) == (768, 1, {GPU: 2})
    assert WaitingApplication.from_json({"queue": "q", "position": 1}).resources is None, "as an older service answers"


def test_the_node_that_comes_closest_is_named_when_gpus_are_short(known: FlaskClient, hadoop: Hadoop) -> None:
    give(hadoop, beta=(2, 0), gamma=(1, 1))
    hadoop.app |= asks(256, 1, 2)

    assert ask(known).waits_for == (
        "room on a node: it asks for 256 MB, 1 vcore and 2 yarn.io/gpu, and gamma has the most free, 512 MB, 6 vcores "
        "and 1 yarn.io/gpu"
    )


def test_no_node_has_so_many_gpus(known: FlaskClient, hadoop: Hadoop) -> None:
    give(hadoop, beta=(2, 0), gamma=(1, 0))
    hadoop.app |= asks(256, 1, 3)

    assert ask(known).waits_for == (
        "a node that is large enough: it asks for 256 MB, 1 vcore and 3 yarn.io/gpu, and the largest that it may use, "
        "beta, has 2,048 MB, 8 vcores and 2 yarn.io/gpu"
    )


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            {"maxEffectiveCapacity": resource(6144, 3, 4)},
            "room in the queue root.default: it has 3 vcores of at most 3 vcores, and this asks for 1 vcore",
        ),
        (
            {"maxEffectiveCapacity": resource(1152, 8, 2), "resourcesUsed": resource(1152, 3, 1)},
            "room in the queue root.default: it has 1,152 MB of at most 1,152 MB and 1 yarn.io/gpu of at most "
            "2 yarn.io/gpu, and this asks for 256 MB and 2 yarn.io/gpu",
        ),
    ],
)
def test_each_type_of_which_the_queue_is_full_is_named(
    known: FlaskClient, hadoop: Hadoop, figures: dict[str, Any], said: str
) -> None:
    give(hadoop, beta=(0, 4))
    limit(hadoop, **figures)
    hadoop.app |= asks(256, 1, 2)

    assert ask(known).waits_for == said


def test_masters_that_have_all_the_gpus_they_may_are_said_to(known: FlaskClient, hadoop: Hadoop) -> None:
    give(hadoop, beta=(0, 4))
    limit(hadoop, usedAMResource=resource(1152, 3, 1), AMResourceLimit=resource(6144, 24, 2))
    hadoop.app |= asks(256, 1, 2) | {"diagnostics": "is not yet activated. Queue's AM resource limit exceeded."}

    assert ask(known).waits_for == (
        "room for application masters in root.default, tasks included: they have 1 of at most 2 yarn.io/gpu, and it "
        "asks for 2 yarn.io/gpu"
    )


def masters(known: FlaskClient) -> tuple[str, int, int, bool]:
    """The limit of application masters that is told of the first queue."""
    told = ClusterQueues.from_json(known.get("/api/v1/queue").get_json()).queues[0].masters
    return told.resource, told.used, told.most, told.is_full


@pytest.mark.parametrize(
    ("used", "most", "waits", "expected"),
    [
        ((1152, 3, 1), (6144, 24, 2), (256, 1, 2), (GPU, 1, 2, True)),
        ((1152, 3, 1), (6144, 24, 2), (256, 1, 1), (GPU, 1, 2, False)),
        ((6000, 3, 1), (6144, 24, 2), (256, 1, 1), (MEMORY, 6000, 6144, True)),
        ((1152, 12, 0), (6144, 24, 0), (256, 1, 0), (VCORES, 12, 24, False)),
        ((0, 0, 0), (6144, 24, 2), (7000, 1, 1), (MEMORY, 0, 6144, False)),
    ],
    ids=["gpus", "half of the gpus", "memory", "cores", "the first one is let in"],
)
def test_the_limit_of_masters_that_is_nearest_is_told(
    known: FlaskClient,
    hadoop: Hadoop,
    used: tuple[int, int, int],
    most: tuple[int, int, int],
    waits: tuple[int, int, int],
    expected: tuple[str, int, int, bool],
) -> None:
    limit(hadoop, usedAMResource=resource(*used), AMResourceLimit=resource(*most), userAMResourceLimit=resource(*most))
    hadoop.app |= asks(*waits)

    assert masters(known) == expected


def test_where_yarn_goes_by_memory_its_limit_is_told(known: FlaskClient, hadoop: Hadoop) -> None:
    most = resource(6144, 1, 0)
    for queue in hadoop.scheduler["scheduler"]["schedulerInfo"]["queues"]["queue"]:
        queue |= {"usedAMResource": resource(1152, 3, 0), "AMResourceLimit": most, "userAMResourceLimit": most}

    assert masters(known) == (MEMORY, 1152, 6144, False)


def test_a_service_of_an_earlier_version_tells_the_limit_of_memory() -> None:
    figures = {"capacity": 1.0, "used": 0.5, "maximum": 1.0, "masters_mb": 1, "masters_most_mb": 2}
    found = YarnQueue.from_json({"name": "q", "state": "RUNNING", "running": 0, "waiting": 0, "users": [], **figures})

    assert (found.masters.resource, found.masters.used, found.masters.most) == (MEMORY, 1, 2)


@pytest.mark.parametrize(
    ("diagnostics", "said"),
    [
        (WAITING["diagnostics"], "room on a node with the label gpu: it asks for"),
        (
            "is not yet activated. Queue's AM resource limit exceeded.",
            "room for application masters in root.default on nodes with the label gpu, tasks included",
        ),
    ],
)
def test_limits_of_nodes_without_a_label_do_not_count_for_those_with_one(
    known: FlaskClient, hadoop: Hadoop, diagnostics: str, said: str
) -> None:
    give(hadoop, beta=(2, 0))
    hadoop.figures["beta"] |= {"nodeLabels": ["gpu"]}
    limit(hadoop, maxEffectiveCapacity=resource(6144, 24, 0), AMResourceLimit=resource(6144, 24, 0))
    hadoop.app |= asks(256, 1, 2) | {"amNodeLabelExpression": "gpu", "diagnostics": diagnostics}

    assert str(ask(known).waits_for).startswith(said)


@pytest.mark.parametrize(("gpus", "waits"), [(0, False), (1, True)])
def test_an_expected_start_waits_for_gpus_that_are_held(
    known: FlaskClient, hadoop: Hadoop, gpus: int, waits: bool
) -> None:
    give(hadoop, beta=(2, 0))
    held = {
        "resourceUsagesByPartition": [
            {"partitionName": "", "used": resource(1536, 1, 2), "amUsed": resource(512, 1, 2)}
        ]
    }
    hadoop.others = [running_app(10 + number, node, 1536) for number, node in enumerate(NODES)]
    hadoop.others[1]["resourceInfo"] = held
    hadoop.ended = [ended_app(number, 400.0 + number) for number in range(40)]
    hadoop.app |= asks(256, 1, gpus)

    own = ask(known)

    assert own.start and (own.start.earliest > NOW + 60) == waits


@pytest.mark.parametrize(("most", "waits"), [(8, False), (4, True)])
def test_an_expected_start_waits_where_cores_of_the_queue_alone_are_short(
    known: FlaskClient, hadoop: Hadoop, most: int, waits: bool
) -> None:
    hadoop.others = [running_app(10 + number, node, 128) for number, node in enumerate(NODES)]
    hadoop.ended = [ended_app(number, 400.0 + number) for number in range(40)]
    limit(hadoop, maxEffectiveCapacity=resource(6144, most, 0))
    hadoop.app |= asks(256, 2, 0)

    own = ask(known)

    assert own.start and (own.start.earliest > NOW + 60) == waits


def test_what_a_master_asks_for_is_read_from_what_yarn_says_where_it_tells_no_request() -> None:
    said = "AM Resource Request = <memory:768, vCores:1, yarn.io/gpu: 2, example.com/disk: 30G>; Queue Resource Limit"
    row = parse_row({**running_app(1, ""), "diagnostics": said}, 0.0)

    assert row.asks == {MEMORY: 768, VCORES: 1, GPU: 2, "example.com/disk": 30}
    assert parse_row(running_app(1, ""), 0.0).asks is None


def test_members_have_the_gpus_of_a_job_whose_master_has_none() -> None:
    used = {"partitionName": "", "used": resource(2560, 3, 2), "amUsed": resource(512, 1, 0)}
    app = running_app(1, "alpha", 2560, allocatedVCores=3, runningContainers=3)
    row = parse_row({**app, "resourceInfo": {"resourceUsagesByPartition": [used]}}, 0.0)
    rooms = [
        NodeRoom("alpha", 0, 0, 8192, 8),
        NodeRoom("beta", 512, 6, 2048, 8, free={GPU: 0}, total={GPU: 1}),
        NodeRoom("gamma", 512, 6, 2048, 8, free={GPU: 0}, total={GPU: 1}),
    ]

    found = {one.node_name: one.amounts for one in hold([row], rooms)[row.job_id]}

    member = amounts(1024, 1, 1)
    assert found == {"alpha": amounts(512, 1, 0), "beta": member, "gamma": member}
    assert held_by_master(parse_row({**app, "allocatedMB": 3000}, 0.0)) == {MEMORY: 1000, VCORES: 1}


def test_the_command_shows_what_it_asks_for(
    users_client: InfoClient, queue_command: Callable[..., str], hadoop: Hadoop
) -> None:
    task = users_client.submit_task(TaskSpec(["train"], name="mnist"), "one")
    hadoop.app |= asks(768, 1, 2) | {"applicationTags": f"task:{task.task_id},kind=task"}

    printed = re.sub(r"\s+", " ", queue_command())

    assert "768 MB, 1 vcore, 2 yarn.io/gpu" in printed
