"""With the plug-in YARN places containers of an application that knows nothing of it where the measured values say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.distributed_shell import order_named
from bench.stage import restart
from hadoop.local import site
from hadoop.local.site import NODE_MEMORY_MB
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Kind, Producer
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from jobs.kinds.task.request import RUNNER_MEMORY_MB
from tests.cluster.placing import Placing, placing_on
from tests.cluster.site import add_properties, nodewise, succeed, until
from tests.cluster.task_session import node_of, session_of
from tests.recipes.pages import block

Eventually = Callable[..., None]
ATTRIBUTES = """
service = http://{master}:8400
my_class = my_order: high >= 0.5, low
my_value = my_order: *
"""
STEPS = """import os, sys, time
for step in range(20):
    print(f"nodewise: loss=1 step={step}", flush=True)
    time.sleep(0.02 if os.environ["NODE_NAME"] == sys.argv[1] else 0.5)
"""
"""A program that is faster on the node that it is told."""
SORTING = "yarn.scheduler.capacity.multi-node-sorting.policy"
TWO_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default,odd",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.odd.capacity": "50",
    "yarn.scheduler.capacity.root.odd.multi-node-sorting.policy": "second",
    f"{SORTING}.names": "first,second",
    f"{SORTING}.second.class": "nodewise.yarn.SecondOrder",
    f"{SORTING}.second.sorting-interval.ms": "500",
}


@pytest.fixture(scope="module")
def placing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placing]:
    with placing_on(tmp_path_factory.mktemp("plugin"), nodes=4) as made:
        yield made


def test_containers_fill_the_best_node_then_the_next(placing: Placing) -> None:
    _, second, _, fourth = placing.cluster.nodes
    placing.settle(0.2, 0.9, 0.4, 0.6)

    with placing.shell(3) as where:  # a node has two cores, and the master takes one of the best
        until(lambda: where().total() == 3)

        assert where() == {second: 1, fourth: 2}


def test_values_that_change_while_containers_are_asked_for_are_followed(placing: Placing) -> None:
    first, _, third, _ = placing.cluster.nodes
    placing.settle(0.9, 0.1, 0.2, 0.3)
    with placing.shell(1) as where:
        until(lambda: where().total() == 1)
        assert where() == {first: 1}
        placing.settle(0.9, 0.1, 0.8, 0.3)
        with placing.shell(1) as more:
            until(lambda: more().total() == 2)
            assert more() == {first: 1, third: 1}


def test_a_node_that_a_task_prefers_comes_before_the_order_and_when_it_is_full_the_order_says_who(
    placing: Placing,
) -> None:
    first, *_, fourth = placing.cluster.nodes
    placing.settle(0.1, 0.2, 0.3, 0.9)
    with session_of(placing.cluster) as tasks:
        assert node_of(tasks.run("true")) == fourth
        assert node_of(tasks.run("true", prefers=[first])) == first
        _, holder = tasks.submit("sleep", "900", nodes=[first], memory_mb=NODE_MEMORY_MB - RUNNER_MEMORY_MB)
        try:
            until(lambda: tasks.ask("application", holder)["state"] == "RUNNING")
            assert node_of(tasks.run("true", prefers=[first])) == fourth
        finally:
            tasks.ask("kill", holder)


def test_when_the_service_is_away_yarn_goes_on_as_without_the_plug_in_and_comes_back(placing: Placing) -> None:
    placing.settle(0.1, 0.2, 0.3, 0.9)
    placing.stop()
    until(lambda: (found := placing.health())["StockOrder"] and "gives no values" in found["Complaint"])
    with placing.shell(3) as where:
        until(lambda: where().total() == 3)

    placing.serve()
    until(lambda: not (found := placing.health())["StockOrder"] and found["Complaint"] == "")


def test_two_programs_have_opposite_orders_of_the_same_nodes_at_the_same_time(placing: Placing) -> None:
    first, *_, last = placing.cluster.nodes
    for program, values in {"up": (0.1, 0.3, 0.5, 0.9), "down": (0.9, 0.5, 0.3, 0.1)}.items():
        placing.client.put_producer(Producer(f"speed:{program}", cmd="", time_max=3600, kind=Kind.PROGRAM))
        for node, value in zip(placing.cluster.nodes, values, strict=True):
            placing.client.put_value(f"speed:{program}", node, value)

    tag, wanted = "-application_tags", {("program:up", last): 2, ("program:down", first): 2}
    for _ in range(2):  # for the order of a program that is new to it the plug-in waits two seconds, which may not do
        with placing.shell(1, tag, "program:up") as where, placing.shell(1, tag, "program:down"):  # each fills a node
            until(lambda: where().total() == 2)
            found = placing.programs()
        if found == wanted:
            break
    assert found == wanted, "masters and containers"
    said = nodewise(placing.cluster.home, "job", "run", "--program", "up", "--memory", "64", "--wait", "--json", "true")
    (job,) = [one for one in placing.applications() if one["id"] == json.loads(succeed(said))["job_id"]]
    assert (job["amHostHttpAddress"].split(":")[0], "program:up" in job["applicationTags"]) == (last, True)
    shown = order_named(placing.cluster, "program.up")["First"]
    assert [line.split(":")[0] for line in shown] == list(reversed(placing.cluster.nodes))


def replayed(placing: Placing, tasks: Iterable[Task], policy: Path) -> list[str]:
    """Where this policy would have had each of them run, by what is noted of it after its end."""
    url = f"http://{placing.cluster.master}:8400"
    words = ["--policy-file", str(policy), "--json"]
    found = []
    for one in tasks:
        until(partial(is_explained, placing, one))
        said = nodewise(placing.cluster.home, "task", "replay", one.task_id, *words, url=url)
        found.append(json.loads(succeed(said))["first"])
    return found


def is_explained(placing: Placing, task: Task) -> bool:
    """Whether it is noted why a task ran where it ran."""
    with suppress(NotFound):
        return bool(placing.client.task_decision(task.task_id))
    return False


def test_tasks_of_two_programs_go_where_each_was_seen_to_be_faster(placing: Placing, tmp_path: Path) -> None:
    one, *_, other = placing.cluster.nodes
    placing.stop()
    policy = placing.cluster.conf_dir / site.POLICY_FILE
    before = policy.read_text()
    rule = block("task-rule").replace("; cpu_free_ratio higher 0..0.25", "")  # nobody measures it here
    said = [line for line in before.splitlines() if not line.startswith("program.score")]
    policy.write_text("\n".join([*said, rule]))
    placing.serve("--submit")
    for node in placing.cluster.nodes:
        placing.client.put_node(node, "127.0.0.1:9")

    def ask(program: str, *nodes: str) -> Task:
        argv = ("python3", "-c", STEPS, one if program == "reads" else other)
        return placing.client.submit_task(TaskSpec(argv, program=program, nodes=nodes, memory_mb=64))

    def fastest(program: str) -> str | None:
        """By what is learned; None before anything is."""
        with suppress(NotFound):
            data = placing.client.data(f"training_speed:{program}")
            return max(data, key=Datum.number).node_name if data else None
        return None

    programs = ("reads", "thinks")
    runs = [ask(program, node) for program in programs for node in (one, other)]
    until(lambda: all(placing.client.task(task.task_id).state is TaskState.SUCCEEDED for task in runs))
    until(lambda: [fastest(program) for program in programs] == [one, other])
    until(lambda: [placing.best_of(program) for program in programs] == [one, other])
    until(lambda: not placing.programs())  # what has ended leaves its node
    free = [ask(program) for program in programs]
    until(lambda: all(placing.client.task(task.task_id).state is TaskState.SUCCEEDED for task in free))
    assert [placing.client.task(task.task_id).node_name for task in free] == [one, other]
    assert replayed(placing, free, policy) == [one, other]
    slowest = tmp_path / "slowest.properties"
    slowest.write_text(policy.read_text().replace("higher", "lower"))
    assert replayed(placing, free, slowest) == [other, one]
    policy.write_text(before)
    placing.stop()
    placing.serve()


def test_the_service_explains_the_order(placing: Placing) -> None:
    placing.settle(0.1, 0.4, 0.3, 0.2)
    with urlopen(f"http://{placing.cluster.master}:8400/api/v1/explain", timeout=60) as answer:
        said = json.load(answer)
    order = [line.split(":")[0] for line in placing.health()["First"]]
    assert [node["node_name"] for node in said["policies"][0]["nodes"]] == order


def test_constraints_can_name_classes_of_values(placing: Placing) -> None:
    first, second, third, fourth = placing.cluster.nodes
    for node in placing.cluster.nodes:
        file = site.conf_dir(placing.cluster, node) / site.ATTRIBUTES_FILE
        file.write_text(ATTRIBUTES.format(master=placing.cluster.master))
    placing.settle(0.7, 0.4, 0.8, 0.2)
    high = {"my_class": "high"}
    until(
        lambda: (
            placing.attributes()
            == {
                first: high | {"my_value": "0.7"},
                second: {"my_class": "low", "my_value": "0.4"},
                third: high | {"my_value": "0.8"},
                fourth: {"my_class": "low", "my_value": "0.2"},
            }
        )
    )

    with placing.shell(2, "-placement_spec", "any(2),nm.yarn.io/my_class=low") as where:
        until(lambda: where().total() == 2)

        assert set(where()) <= {second, fourth}


def test_two_queues_can_have_opposite_orders(placing: Placing) -> None:
    first, _, _, fourth = placing.cluster.nodes
    add_properties(placing.cluster.conf_dir / "capacity-scheduler.xml", TWO_QUEUES)
    restart(placing.cluster, "resourcemanager")
    placing.settle(0.9, 0.6, 0.4, 0.1)

    with placing.shell(1) as where:
        until(lambda: where().total() == 1)
        assert where() == {first: 1}
    with placing.shell(1, "-queue", "odd") as where:
        until(lambda: where().total() == 1)
        assert where() == {fourth: 1}


def test_without_the_plug_in_values_change_nothing(placing: Placing) -> None:
    cluster = replace(placing.cluster, plugin=False)
    site.render(cluster)
    restart(cluster, "resourcemanager")
    assert not placing.health()
    for best in 2 * cluster.nodes:
        placing.put(*(0.9 if node == best else 0.1 for node in cluster.nodes))
        with placing.shell(1) as where:
            until(where)
            if where() != {best: 1}:
                return
    pytest.fail("eight times the container went to the node with the best value")
