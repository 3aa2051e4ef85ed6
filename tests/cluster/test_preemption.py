"""A queue takes back what a job had borrowed: no image is lost, and the report tells it from a failure."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench.distributed_shell import places, running_shells, shell
from bench.info.errors import BenchError
from bench.stage import CAPABILITY, PATIENT, Stage, module_of, on_cluster, restart, until
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.errors import Conflict, InfoError, NotFound
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskDecision, TaskState
from tests.cluster.many_pictures import load_pictures
from tests.cluster.site import add_properties
from tests.cluster.small_network import small_network
from tests.cluster.standing import Standing
from tests.cluster.task_platform import Platform, platform_of
from tests.cluster.task_session import Tasks, session_of

PICTURES = 360
OUTPUT = "/bench/out/preempted"
OWNED = {
    "yarn.scheduler.capacity.root.queues": "guests,owner",
    "yarn.scheduler.capacity.root.guests.capacity": "20",
    "yarn.scheduler.capacity.root.guests.maximum-capacity": "100",
    "yarn.scheduler.capacity.root.guests.user-limit-factor": "5",
    "yarn.scheduler.capacity.root.guests.maximum-am-resource-percent": "1.0",
    "yarn.scheduler.capacity.root.owner.capacity": "80",
}
TAKES_BACK = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "500",
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "20000",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1.0",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1.0",
}


@pytest.fixture(scope="module")
def stage(standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Most of the shared cluster belongs to a queue that jobs do not run in."""
    standing.end_site()
    cluster = standing.cluster()
    load_pictures(cluster, tmp_path_factory.mktemp("pictures"), PICTURES)
    with on_cluster(cluster, PICTURES) as stage:
        stage.judge([1.0] * 4)
        standing.note_changed("resourcemanager")
        add_properties(stage.cluster.conf_dir / "capacity-scheduler.xml", OWNED)
        add_properties(stage.cluster.conf_dir / "yarn-site.xml", TAKES_BACK)
        restart(stage.cluster, "resourcemanager")
        yield stage


def test_what_another_queue_takes_back_is_done_elsewhere_and_speaks_against_no_node(stage: Stage) -> None:
    asked = ("--input", "/bench/pictures", "--output", OUTPUT, "--capability", CAPABILITY, "--batch", "8")
    how = (*small_network(stage.cluster.home), "--queue", "guests", "--lease-seconds", "600", "--wait", "--json")
    with stage.begin("job", "submit", *asked, *how) as client:
        try:
            with standing(stage):
                mine = {one.container for one in places(stage.cluster)}
                with shell(stage.cluster, ["sleep", "600"], 6, 128, "-queue", "owner"):
                    until(
                        lambda: not mine <= {one.container for one in places(stage.cluster)}, 240, "YARN took one back"
                    )
            said, complaint = client.communicate(timeout=600)
        finally:
            client.kill()

    assert client.returncode == 0, complaint
    report = json.loads(said)
    assert report["images"] == PICTURES and not report["errors"]
    preempted = [failure for failure in report["failures"] if failure["kind"] == "preempted"]
    assert preempted and not any(failure["counts"] for failure in preempted)


@pytest.mark.usefixtures("only_when_long")
def test_a_worker_of_a_pool_that_is_taken_back_speaks_against_no_node_and_comes_again(stage: Stage) -> None:
    patient = ("--queue", "guests", "--idle", "0", "--lease-seconds", "600", "--container-wait", "600")
    words = (*small_network(stage.cluster.home), *patient, "--batch", "8", "--wait", "--json")
    pool = json.loads(stage.nodewise("pool", "up", "lent", *words))["job_id"]
    try:
        until(lambda: _find_ready(stage), 240, "each node has a worker that is ready")
        asked = ("--input", "/bench/pictures", "--output", "/bench/out/lent", "--capability", CAPABILITY)
        with standing(stage):
            given = json.loads(stage.nodewise("job", "submit", "--pool", "lent", *asked, "--json"))["job_id"]
            until(lambda: _status(stage, given)["status"]["state"] == "running", 240, "the job has a plan")
            mine = {one.container for one in places(stage.cluster)}
            with shell(stage.cluster, ["sleep", "600"], 6, 128, "-queue", "owner"):
                until(lambda: not mine <= {one.container for one in places(stage.cluster)}, 240, "YARN took one back")
        until(lambda: _status(stage, given)["final"] != "UNDEFINED", 600, "the job has ended")
        report = json.loads(stage.nodewise("job", "report", given, "--json"))
        nodes = until(lambda: _find_ready(stage), 240, "each node has one again")
    finally:
        stage.nodewise("pool", "down", "lent", "--now")
    manager = ResourceManager(stage.cluster.rm_http, stage.cluster.user, PATIENT)
    until(lambda: not manager.is_running(pool), 240, "the pool has given all back")

    assert report["images"] == PICTURES and not report["errors"]
    preempted = [failure for failure in report["failures"] if failure["kind"] == "preempted"]
    assert preempted and not any(failure["counts"] for failure in preempted)
    assert [one["failures"] for one in nodes] == [0] * stage.cluster.size


def _find_ready(stage: Stage) -> list[dict[str, Any]]:
    """The nodes of the pool once each has a worker that is ready; none before, or while its master does not answer."""
    nodes: list[dict[str, Any]] = json.loads(stage.nodewise("pool", "show", "lent", "--json"))["nodes"]
    ready = [one for one in nodes if one["worker"] in ("ready", "working")]
    return nodes if len(ready) == stage.cluster.size else []


def _status(stage: Stage, job_id: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(stage.nodewise("job", "status", job_id, "--json"))
    return status


@contextmanager
def standing(stage: Stage) -> Iterator[None]:
    """Workers stand still, lest the job ends before the other queue asks for anything."""
    stopped: dict[int, psutil.Process] = {}

    def stand() -> bool:
        """Each from its first moment: they do not all start at once."""
        for one in stage.working():
            if module_of(one) == "jobs.worker" and one.pid not in stopped:
                with suppress(psutil.NoSuchProcess):  # it has ended since it was found
                    one.suspend()
                    stopped[one.pid] = one
        return sum(_is_first(one, stopped) for one in stopped.values()) >= stage.cluster.size

    try:
        until(stand, 240, "all workers have started")
        yield
    finally:
        for one in stopped.values():
            with suppress(psutil.NoSuchProcess):
                one.resume()


def _is_first(one: psutil.Process, workers: Container[int]) -> bool:
    """Whether it is the first process of its worker, and not forked by another."""
    with suppress(psutil.NoSuchProcess):  # it has ended since it was found
        return one.ppid() not in workers
    return False


SAVES = """
cd $CHECKPOINT
[ ! -e saved ] || { echo "goes on from $(cat saved)"; exit 0; }
trap 'sleep 1; echo "start $ATTEMPT" > saved; echo good bye; exit 0' TERM
echo ready
while :; do sleep 0.1; done
"""
"""It takes longer to end than YARN waits between its two signals, and far less than it waits for its room here."""


def test_a_task_whose_room_is_taken_back_goes_on_from_what_it_saved_though_it_has_one_attempt(
    stage: Stage, tmp_path: Path
) -> None:
    with platform_of(stage.cluster, tmp_path) as platform:
        specs = [
            TaskSpec(["bash", "-c", SAVES], memory_mb=64, queue="guests", checkpoint=f"/checkpoints/taken/{number}")
            for number in range(4)
        ]
        begun = [platform.user.submit_task(spec).task_id for spec in specs]
        until(lambda: all(_printed(platform, task_id, 1) for task_id in begun), 240, "all four run")
        with shell(stage.cluster, ["sleep", "600"], 6, 128, "-queue", "owner"):
            until(lambda: any(len(platform.applications(task_id)) == 2 for task_id in begun), 240, "one waits again")
        again = [task_id for task_id in begun if len(platform.applications(task_id)) == 2]
        for task_id in set(begun) - set(again):
            with suppress(Conflict):  # its room was taken back, too, and it has ended since
                platform.user.stop_task(task_id)
        for task_id in again:
            until(partial(_has_saved, platform, task_id), 60, f"the program of {task_id} saves before YARN kills it")
        ended = [platform.ended(task_id) for task_id in again]
        for task_id in set(begun) - set(again):  # with the submitter away, they would take room from the next test
            platform.ended(task_id)

        for task in ended:
            assert (task.state, task.attempt) == (TaskState.SUCCEEDED, 2), task.reason
            assert _printed(platform, task.task_id, 2) == "goes on from start 1\n"
            assert until(partial(_decision, platform, task.task_id), 240, "it is noted").node_name == task.node_name


def _has_saved(platform: Platform, task_id: str) -> bool:
    return _printed(platform, task_id, 1) == "ready\ngood bye\n"


def _decision(platform: Platform, task_id: str) -> TaskDecision | None:
    with suppress(NotFound):
        return platform.user.task_decision(task_id, 2)
    return None


def _printed(platform: Platform, task_id: str, start: int) -> str:
    with suppress(InfoError):
        return platform.user.task_log(task_id, "stdout", attempt=start).text
    return ""


@pytest.mark.timeout(2400)
def test_when_yarn_does_without_the_room_the_program_goes_on_where_it_was(stage: Stage) -> None:
    spared: dict[str, dict[str, Any]] = {}
    with session_of(stage.cluster) as tasks:
        for attempt in range(3):  # on a busy machine it may take all the room before the other queue needs none
            spared = spared or _spared(stage, tasks, f"/checkpoints/left/{attempt}")

    assert spared
    for task_id, found in spared.items():
        assert (found["final"], found["attempt"]) == ("SUCCEEDED", 1), found["diagnostics"]
        assert tasks.log(task_id, "stdout.1") == b"ready\ngood bye\ngoes on from start 1\n"
        assert "Seconds" not in found["record"]["section"], "which would be the time of a part alone"


def _spared(stage: Stage, tasks: Tasks, checkpoints: str) -> dict[str, dict[str, Any]]:
    """What became of tasks whose programs ended because YARN was to take their room, and did without."""
    begun = [
        tasks.submit("bash", "-c", SAVES, queue="guests", checkpoint=f"{checkpoints}/{number}") for number in range(4)
    ]

    def that_have_ended() -> list[tuple[str, str]]:
        return [each for each in begun if b"good bye" in tasks.log(each[0], "stdout.1")]

    def applications() -> list[dict[str, Any]]:
        return [tasks.ask("application", job_id) for _, job_id in begun]

    def are_running() -> bool:
        """Whether all do; BenchError when one has ended, such as on a node that was lost: it is not started again."""
        if any(one["final"] != "UNDEFINED" for one in applications()):
            raise BenchError("one has ended before all four run")
        return all(tasks.log(task_id, "stdout.1") for task_id, _ in begun)

    try:
        until(are_running, 200, "all four run")
    except BenchError as error:
        print(error, applications())
        for _, job_id in begun:
            tasks.ask("kill", job_id)
        return {}
    with shell(stage.cluster, ["sleep", "600"], 6, 128, "-queue", "owner"):
        until(that_have_ended, 240, "one has ended")
        for application in running_shells(stage.cluster):  # by a JVM that runs: YARN's patience is short
            tasks.ask("kill", application)
    ended = {task_id: tasks.ask("wait", job_id) for task_id, job_id in that_have_ended()}
    for task_id, job_id in begun:
        if task_id not in ended:
            tasks.ask("kill", job_id)
    return {task_id: found for task_id, found in ended.items() if "preempted" not in found["diagnostics"]}


def test_a_queue_that_is_not_there_is_refused(stage: Stage) -> None:
    words = ("--input", "/bench/pictures", "--output", "/bench/out/none", "--capability", CAPABILITY)

    with pytest.raises(BenchError, match="unknown queue: default") as error:
        stage.nodewise("job", "submit", *words)

    assert "Traceback" not in str(error.value)
