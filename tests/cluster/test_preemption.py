"""A queue takes back what a job had borrowed: no picture is lost, and the report tells it from a failure."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bench.distributed_shell import places, shell
from bench.info.errors import BenchError
from bench.stage import CAPABILITY, Stage, restart, until
from bench.stage import stage as made_stage

PICTURES = 360
OUTPUT = "/bench/out/preempted"
OWNED = {
    "yarn.scheduler.capacity.root.queues": "guests,owner",
    "yarn.scheduler.capacity.root.guests.capacity": "20",
    "yarn.scheduler.capacity.root.guests.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.owner.capacity": "80",
}
TAKES_BACK = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "500",
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "1000",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1.0",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1.0",
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Most of the cluster belongs to a queue that jobs do not run in."""
    with made_stage(tmp_path_factory.mktemp("preemption"), PICTURES) as stage:
        stage.judge([1.0] * 4)
        _add(stage, "capacity-scheduler.xml", OWNED)
        _add(stage, "yarn-site.xml", TAKES_BACK)
        restart(stage.cluster, "resourcemanager")
        yield stage


def test_what_another_queue_takes_back_is_done_elsewhere_and_speaks_against_no_node(stage: Stage) -> None:
    words = (
        "--input",
        "/bench/pictures",
        "--output",
        OUTPUT,
        "--capability",
        CAPABILITY,
        "--batch",
        "8",
        "--queue",
        "guests",
    )
    client = stage.begin("job", "submit", *words, "--wait", "--json")
    until(lambda: len(places(stage.cluster)) == 4, 60, "all workers have their containers")
    mine = {one.container for one in places(stage.cluster)}

    with shell(stage.cluster, ["sleep", "600"], 6, 128, "-queue", "owner") as owner:
        until(lambda: not mine <= {one.container for one in places(stage.cluster)}, 60, "YARN took one back")
        said, complaint = client.communicate(timeout=240)
        assert owner.poll() is None

    assert client.returncode == 0, complaint
    report = json.loads(said)
    assert report["images"] == PICTURES and not report["errors"]
    preempted = [failure for failure in report["failures"] if failure["kind"] == "preempted"]
    assert preempted and not any(failure["counts"] for failure in preempted)


def test_a_queue_that_is_not_there_is_refused(stage: Stage) -> None:
    words = ("--input", "/bench/pictures", "--output", "/bench/out/none", "--capability", CAPABILITY)

    with pytest.raises(BenchError, match="unknown queue: default") as error:
        stage.nodewise("job", "submit", *words)

    assert "Traceback" not in str(error.value)


def _add(stage: Stage, name: str, entries: dict[str, str]) -> None:
    file = stage.cluster.conf_dir / name
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in entries.items()]
    file.write_text(file.read_text().replace("</configuration>", "\n".join([*lines, "</configuration>"])))
