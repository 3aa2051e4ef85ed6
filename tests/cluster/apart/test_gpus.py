"""GPUs on a real cluster: YARN counts them, and the node gives a task cards that nobody else uses.

The cards are played, as NVIDIA's tool would tell of them; the collector, the count, the locks and programs are real.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hdfs import InsecureClient
from PIL import Image

from bench.stage import PATIENT, START_SECONDS
from boxes.box import BoxError
from boxes.gpus.cards import Wanted
from boxes.gpus.locks import FOLDER, VARIABLE
from boxes.gpus.taking import take_cards
from hadoop.local import lifecycle
from hadoop.local.lifecycle import Cluster
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.queues import WaitingApplication
from infosvc.wire.records import Kind, Producer
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from jobs.dashboard.queue.shown import look
from jobs.division.gpu_nodes import CARDS, GPU
from tests.boxes.played_gpus import PlayedGpus, uuid
from tests.cluster.site import applications, give_containers, until
from tests.cluster.small_network import small_network
from tests.cluster.task_platform import ROOT, Platform, platform_of
from tests.recipes.pages import block
from tests.recipes.shell import Shell

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]
SEES = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.environ['NVIDIA_VISIBLE_DEVICES'], flush=True)\n"
WAITS = SEES + "import sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.1)\n"


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedGpus]:
    """Two cards of the machine on which all nodes are."""
    made = PlayedGpus(tmp_path_factory.mktemp("cards") / "gpus")
    made.have("Tesla T4, 15360, 100, 7.5", "Tesla T4, 15360, 15000, 7.5")
    yield made
    for file in Path("/run/lock").glob(f"nodewise-gpus.{uuid(0)[:-2]}*"):
        file.unlink()


@pytest.fixture(scope="module")
def cluster(gpus: PlayedGpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("gpus")
    try:
        with pytest.MonkeyPatch.context() as patch:
            give_containers(patch, f"NVIDIA_SMI={gpus.tool}")
            made = lifecycle.up(home, nodes=2, gpus=(2, 0), ready_seconds=START_SECONDS)
        yield made
    finally:
        lifecycle.down(home)


@pytest.fixture(scope="module")
def platform(cluster: Cluster, gpus: PlayedGpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with platform_of(cluster, tmp_path_factory.mktemp("platform")) as made:
        told = subprocess.run(
            [ROOT / "collectors" / "scripts" / "gpu_cards.sh"],
            env=os.environ | gpus.variables,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        made.admin.put_producer(Producer(CARDS, "", 30.0, Kind.PROGRAM))
        made.admin.put_node(cluster.nodes[0], "127.0.0.1:9")
        made.admin.put_value(CARDS, cluster.nodes[0], told.strip())
        yield made


@pytest.fixture
def shell(platform: Platform, tmp_path: Path) -> Shell:
    return Shell(tmp_path / "reader", tmp_path / "work", platform.variables)


def log_of(shell: Shell, cluster: Cluster, job_id: str) -> str:
    return shell.run(f"nodewise --home {cluster.home} job logs {job_id}")


def wait_for(platform: Platform, task: Task, state: TaskState) -> None:
    until(lambda: platform.user.task(task.task_id).state is state)


def test_the_page_s_task_gets_the_cards_and_sees_them_by_name(
    platform: Platform, gpus: PlayedGpus, tmp_path: Path
) -> None:
    shell = Shell(tmp_path / "reader", tmp_path / "work", platform.variables)
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "train.py").write_text(SEES)

    said = shell.run(block("task-gpus"))

    ended = platform.ended(said.split()[0])
    assert (ended.state, ended.node_name) == (TaskState.SUCCEEDED, platform.cluster.nodes[0]), ended.reason
    names = f"{uuid(1)},{uuid(0)}"  # the one with more free memory comes first
    assert platform.log(ended.task_id) == f"{names} {names}\n"
    assert '"model": "Tesla T4"' in said
    shown = shell.run(f"nodewise task show {ended.task_id}")
    assert re.search(r"^ *gpus +2 \(T4, 16384 MB, compute capability 7\.5\)", shown, re.MULTILINE)
    assert "1 (Tesla T4), 0 (Tesla T4)" in shell.run(
        f"nodewise --home {platform.cluster.home} job report {ended.application_id}"
    )


def _waiting(platform: Platform) -> Sequence[WaitingApplication]:
    """What waits in YARN's queues, as an admin is told of it."""
    manager = ResourceManager(platform.cluster.rm_http, platform.cluster.user, PATIENT)
    return look(manager, {}, list).answer.waiting


def test_what_yarn_counts_is_not_given_twice_and_strangers_are_waited_for(
    platform: Platform, gpus: PlayedGpus, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    gpus.use({1: [4711]})
    spec = TaskSpec(("python3", "-c", WAITS, str(end)), memory_mb=128, gpus=1)
    first, second, third = [platform.user.submit_task(spec) for _ in range(3)]
    order = [first, second, third]

    until(lambda: sorted(platform.user.task(one.task_id).state for one in order) == ["queued", "running", "starting"])
    found = {platform.user.task(one.task_id).state: platform.user.task(one.task_id) for one in order}
    until(lambda: platform.log(found[TaskState.RUNNING].task_id) == f"{uuid(0)} {uuid(0)}\n")
    others = "process 4711, which is not of a task or job, uses GPU 1, a task or job has GPU 0"
    said = f"waiting for GPUs: none of 1 is free, {others}"
    until(lambda: platform.user.task(found[TaskState.STARTING].task_id).reason == said)
    gpus.use({})
    wait_for(platform, found[TaskState.STARTING], TaskState.RUNNING)
    assert platform.user.task(found[TaskState.QUEUED].task_id).state is TaskState.QUEUED
    room = re.compile(r"2 of at most 2 yarn\.io/gpu|and 0 yarn\.io/gpu$")
    until(lambda: [one for one in _waiting(platform) if room.search(one.waits_for or "")])
    assert [one.resources for one in _waiting(platform)] == [{GPU: 1}]

    end.touch()
    ended = [platform.ended(one.task_id) for one in order]
    assert [one.state for one in ended] == [TaskState.SUCCEEDED] * 3
    assert {platform.log(one.task_id) for one in order} <= {f"{name} {name}\n" for name in (uuid(0), uuid(1))}


def test_a_task_that_waits_for_cards_stops_when_it_is_asked_to(platform: Platform, gpus: PlayedGpus) -> None:
    gpus.use({0: [4711], 1: [4711]})
    task = platform.user.submit_task(TaskSpec(("true",), memory_mb=128, gpus=1))
    until(lambda: platform.user.task(task.task_id).reason.startswith("waiting for GPUs: none of 1 is free, process "))

    platform.user.stop_task(task.task_id)

    ended = platform.ended(task.task_id)
    assert (ended.state, ended.reason) == (TaskState.STOPPED, "it was stopped")
    gpus.use({})


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"gpus": 3}, "on {}, for example, YARN counts 2 GPUs, and 3 are asked for: ask for fewer by --gpus, or"),
        (
            {"gpus": 1, "gpu_model": "H100"},
            "on {}, for example, none of its 2 GPUs will do, and 1 is asked for: GPU 0, Tesla T4",
        ),
        ({"gpus": 1, "not_nodes": ["{}"]}, "YARN counts no GPUs, and 1 is asked for"),
    ],
)
def test_what_no_node_can_give_fails_at_once(platform: Platform, asked: dict[str, object], why: str) -> None:
    has = platform.cluster.nodes[0]
    given = {name: [has] if name == "not_nodes" else value for name, value in asked.items()}
    task = platform.user.submit_task(TaskSpec(("true",), memory_mb=128, **given))  # type: ignore[arg-type]

    ended = platform.ended(task.task_id)

    assert ended.state is TaskState.FAILED
    assert why.format(has) in ended.reason
    assert "none of the nodes that may run it has the GPUs that it asks for" in ended.reason
    assert platform.applications(task.task_id) == []


def test_a_member_that_trains_has_a_card_for_itself_while_it_runs(
    platform: Platform, cluster: Cluster, gpus: PlayedGpus, shell: Shell, tmp_path: Path
) -> None:
    end, program = tmp_path / "end", tmp_path / "waits.py"
    program.write_text(WAITS)
    words = f"--members 1 --memory 512 --restarts 0 --gpus 1 --gpu-model T4 --output hdfs:///out/train --file {program}"
    has, lacks = cluster.nodes

    said = shell.run(f"nodewise --home {cluster.home} train submit {words} -- python waits.py {end} 2>&1")

    job_id = re.findall(r"application_\d+_\d+", said)[0]
    assert f"{lacks} is left out: YARN counts no GPUs, and 1 is asked for" in said
    seen = f"{uuid(1)} {uuid(1)}"
    until(lambda: seen in log_of(shell, cluster, job_id))
    assert "GPUs: 1 (Tesla T4)" in log_of(shell, cluster, job_id)
    manager = ResourceManager(cluster.rm_http, cluster.user, PATIENT)
    assert {room.node_name: room.free["yarn.io/gpu"] for room in manager.rooms()} == {has: 1, lacks: 0}
    locks = os.environ.get(VARIABLE, FOLDER)
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(BoxError, match="1 of 2 is free, a task or job has GPU 1"),
    ):
        patch.setenv("NVIDIA_SMI", str(gpus.tool))
        patch.setenv(VARIABLE, str(locks))
        with take_cards(Wanted(2), seconds=0):
            pass
    end.touch()
    until(lambda: not manager.is_running(job_id))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NVIDIA_SMI", str(gpus.tool))
        with take_cards(Wanted(2), seconds=240) as mine:
            assert len(mine.cards) == 2


def test_a_worker_of_a_job_has_a_card(platform: Platform, cluster: Cluster, shell: Shell, tmp_path: Path) -> None:
    has, lacks = cluster.nodes
    hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
    for number in range(4):
        Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / f"{number}.png")
        hdfs.upload(f"/data/few/{number}.png", str(tmp_path / f"{number}.png"))
    platform.admin.put_node(lacks, "127.0.0.1:9")
    platform.admin.put_producer(Producer("worth", "", 300.0, Kind.PROGRAM))
    for node in cluster.nodes:
        platform.admin.put_value("worth", node, "1")
    network = " ".join(small_network(tmp_path))
    words = f"--input hdfs:///data/few --output hdfs:///out/few --capability worth {network} --gpus 1 --wait --json"

    said = shell.run(f"nodewise --home {cluster.home} job submit {words} 2> {tmp_path}/told")

    report = json.loads(said[said.index("{") :])
    assert (report["images"], [one["node_name"] for one in report["nodes"]]) == (4, [has])
    assert "GPUs: 1 (Tesla T4)" in log_of(shell, cluster, report["application_id"])
    assert f"{lacks} is left out" in (tmp_path / "told").read_text()


def test_jobs_that_no_node_has_the_cards_for_are_refused_before_they_are_submitted(
    platform: Platform, cluster: Cluster, shell: Shell
) -> None:
    before = len(applications(cluster))
    words = "--members 1 --output hdfs:///out/none --gpus 1 --gpu-model H100 -- python none.py"

    said = shell.run(f"nodewise --home {cluster.home} train submit {words} 2>&1 || echo refused with $?")

    told = " ".join(said.split())
    assert "none of the nodes that may run it has the GPUs that each of its containers asks for" in told
    assert "none of its 2 GPUs will do, and 1 is asked for: GPU 0, Tesla T4, is not a H100" in told
    assert said.rstrip().endswith("refused with 1") and len(applications(cluster)) == before
