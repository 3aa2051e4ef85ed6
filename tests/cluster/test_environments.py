"""Environments in a real HDFS: made once, the same each time, mounted for tasks, and damaged ones refused."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hdfs import InsecureClient

from boxes.cdi.finding import FOLDERS, find
from boxes.cdi.place import CdiError
from environments.ready import CACHED, DIGITS
from hadoop.local.lifecycle import Cluster
from hadoop.local.site import NODE_MEMORY_MB
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Kind, Producer
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskDecision, TaskState
from jobs.division import access_cost
from jobs.kinds.task.request import RUNNER_MEMORY_MB
from locality.cost import AccessCost, Rate
from tests.cluster.site import BROKEN, PICTURES, Site, applications, job_files, nodewise, succeed, until
from tests.cluster.small_network import small_network
from tests.cluster.task_platform import Platform, platform_of
from tests.recipes.pages import block

FIRST, OTHER = ("--package", "packaging==26.4"), ("--package", "hdfs-native==0.14.7")
PACKAGES = (*FIRST, *OTHER)
COLLECTOR = Path(__file__).resolve().parents[2] / "collectors" / "scripts" / "env_cached.sh"


def env(cluster: Cluster, *words: str) -> Any:
    """What `nodewise env` prints as JSON."""
    return json.loads(succeed(nodewise(cluster.home, "env", *words, "--json")))


@pytest.fixture(scope="module")
def platform(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with platform_of(cluster, tmp_path_factory.mktemp("platform")) as started:
        yield started


@pytest.fixture(scope="module")
def made(cluster: Cluster) -> Any:
    """The environment that tests share."""
    return env(cluster, "make", "plain", "--version", "1", *PACKAGES)


def test_what_is_made_again_is_there_already(cluster: Cluster, made: Any) -> None:
    again = env(cluster, "make", "plain", "--version", "1", *PACKAGES)

    assert (made["is_new"], again["is_new"], again["digest"]) == (True, False, made["digest"])
    assert {one["name"] for one in made["packages"]} > {"fsspec", "hdfs-native", "packaging"}
    assert "plain@1" in [one["name"] for one in env(cluster, "list") if "digest" in one]
    assert env(cluster, "verify", "plain@1") == {"damaged": []}


def test_a_version_means_what_it_was_made_of_last(cluster: Cluster) -> None:
    made = [env(cluster, "make", "moved", "--version", "1", *packages) for packages in (FIRST, OTHER, FIRST)]

    assert [one["is_new"] for one in made] == [True, True, False]
    assert env(cluster, "show", "moved@1")["digest"] == made[0]["digest"] == made[2]["digest"] != made[1]["digest"]
    words = ("--members", "1", "--output", "hdfs:///training/lacking", "--env", "moved@1", "--", "true")
    refused = nodewise(cluster.home, "train", "submit", *words).stderr.replace("\n", " ")
    assert "moved@1 lacks hdfs-native, which nodewise needs there" in refused
    succeed(nodewise(cluster.home, "env", "rm", "moved@1", "--force"))
    hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
    assert [name for name in hdfs.list("/nodewise/env/manifests/moved") if name] == []
    assert f"sha256-{made[1]['parts'][0]['sha256']}.sqfs" not in hdfs.list("/nodewise/env/blobs")
    assert "there is no environment moved" in nodewise(cluster.home, "env", "show", "moved").stderr


def test_a_lock_gives_the_same_bytes_without_any_registry(
    cluster: Cluster, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "plain.lock"
    lock.write_text(succeed(nodewise(cluster.home, "env", "show", "plain@1", "--lock")))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple")

    again = env(cluster, "make", "locked", "--version", "1", "--lock", str(lock))

    assert again["parts"] == made["parts"]


def test_a_task_has_the_packages_and_no_others(platform: Platform, cluster: Cluster, made: Any) -> None:
    program = "import sys, packaging, hdfs_native; print(packaging.__file__, sys.prefix); import numpy"
    task = platform.user.submit_task(TaskSpec(("python", "-c", program), env="plain@1"))

    ended = platform.ended(task.task_id)

    assert (ended.state, ended.exit_code) == (TaskState.FAILED, 1)
    assert platform.log(task.task_id) == "/opt/env/lib/python3.11/site-packages/packaging/__init__.py /opt/env\n"
    assert "No module named 'numpy'" in platform.log(task.task_id, "stderr")


def test_a_node_mounts_it_once_for_all(platform: Platform, cluster: Cluster, made: Any) -> None:
    mounted = f"sha256-{made['parts'][0]['sha256']}.sqfs is mounted"
    for _ in range(3):
        task = platform.user.submit_task(TaskSpec(("python", "-c", "import packaging"), env="plain@1"))
        assert platform.ended(task.task_id).state == TaskState.SUCCEEDED

    counts = [(cluster.logs / f"mounts-{node}.log").read_text().count(mounted) for node in cluster.nodes]

    assert set(counts) <= {0, 1} and any(counts)


def test_nodes_fetch_it_ahead_and_tell_that_they_have_it(site: Site, made: Any) -> None:
    node, *_ = site.cluster.nodes
    with site.client() as client:
        client.put_slot(node, CACHED, running=True, interval=2)
    warmed = json.loads(succeed(site.nodewise("env", "warm", "plain@1", "--node", node, "--json")))
    assert warmed["nodes"] == [node] and warmed["seconds"] > 0
    blob = f"sha256-{made['parts'][0]['sha256']}.sqfs"
    assert list((site.cluster.node_dir(node) / "local" / "filecache").glob(f"*/{blob}"))

    def has_it() -> bool:
        listed = json.loads(succeed(site.nodewise("env", "list", "--json")))
        return any(node in (one["nodes"] or ()) for one in listed if one.get("name") == "plain@1")

    until(has_it)
    ready = json.loads(succeed(site.nodewise("env", "fit", "plain@1", "--json")))["ready"]
    assert (ready[node]["missing_bytes"], ready[node]["seconds"], ready[node]["is_there"]) == (0, 0.0, True)


@pytest.fixture
def ahead(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """An environment, `ahead@1`, that no node has yet: the digits by which nodes tell of its part, and the bytes."""
    (part,) = env(cluster, "make", "ahead", "--version", "1", "--package", "six==1.17.0")["parts"]
    yield part["sha256"][:DIGITS], part["size_bytes"]
    succeed(nodewise(cluster.home, "env", "rm", "ahead@1", "--force"))


def find_cached(node: str) -> dict[str, int]:
    """What the collector finds that a node has: bytes by the first digits of the hash."""
    variables = {**os.environ, "NODE_NAME": node, "PROC_ROOT": "/proc"}
    done = subprocess.run([COLLECTOR], env=variables, capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


@contextmanager
def fetching_nothing(cluster: Cluster, node: str) -> Iterator[None]:
    """A node whose NodeManager finds a file where it keeps what it fetches."""
    folder = cluster.node_dir(node) / "local" / "filecache"
    aside = folder.rename(folder.with_name("aside"))
    folder.touch()
    try:
        yield
    finally:
        folder.unlink()
        aside.rename(folder)


def test_a_node_that_fails_is_named_and_what_others_have_got_they_keep(site: Site, ahead: tuple[str, int]) -> None:
    digits, size = ahead
    well, ill, *others = site.cluster.nodes
    assert not [node for node in site.cluster.nodes if digits in find_cached(node)]

    succeed(site.nodewise("env", "warm", "ahead@1", "--node", well))
    with fetching_nothing(site.cluster, ill):
        failed = site.nodewise("env", "warm", "ahead@1", "--node", well, "--node", ill)

    said = " ".join(failed.stderr.split())
    why = f"ahead@1 is on {well}, and does not get to others ({ill}: not started: its node cannot fetch"
    assert failed.returncode == 1 and why in said, said
    assert "Traceback" not in failed.stderr
    assert [find_cached(node).get(digits) for node in (well, ill)] == [size, None]

    warmed = json.loads(succeed(site.nodewise("env", "warm", "ahead@1", "--all", "--json")))

    assert sorted(warmed["nodes"]) == sorted(site.cluster.nodes)
    assert [find_cached(node)[digits] for node in (well, ill, *others)] == [size] * len(warmed["nodes"])
    assert [one["finalStatus"] for one in applications(site.cluster)[-3:]] == ["SUCCEEDED", "FAILED", "SUCCEEDED"]
    assert job_files(site.cluster) == set()


def test_what_cannot_be_laid_out_is_told_before_anything_is_submitted(site: Site, made: Any) -> None:
    node, *_ = site.cluster.nodes
    asked = {
        ("plain@1", "--node", "nobody"): (1, "nobody cannot have plain@1: no NodeManager accepts work there"),
        ("nothing@1", "--all"): (1, "there is no environment nothing"),
        ("plain@99", "--all"): (1, "take one of 1"),
        ("plain@1",): (2, "name nodes by --node, or take --all: one of these"),
        ("plain@1", "--all", "--node", node): (2, "name nodes by --node, or take --all: one of these"),
    }
    before = len(applications(site.cluster))
    for words, (code, said) in asked.items():
        done = site.nodewise("env", "warm", *words)
        assert (done.returncode, said in " ".join(done.stderr.split())) == (code, True), done
        assert "Traceback" not in done.stderr
    assert len(applications(site.cluster)) == before
    refused = site.nodewise("env", "warm", "plain@1", "--all", "--queue", "nobodys")  # by YARN itself
    assert refused.returncode == 1 and "nobodys" in " ".join(refused.stderr.split()), refused
    assert job_files(site.cluster) == set()


@contextmanager
def having(platform: Platform, part: Mapping[str, Any], node: str, seconds: float = 1.0) -> Iterator[None]:
    """One node tells that it has this part, and the network is slow: others would need so long for it."""
    nodes = platform.cluster.nodes
    way = Rate(part["size_bytes"] / seconds, 0.0)
    cost = AccessCost(pairs={(reader, holder): way for reader in nodes for holder in nodes if reader != holder})
    admin = platform.admin
    for name in (access_cost.DATA_NAME, CACHED):
        admin.put_producer(Producer(name, cmd="", time_max=3600, kind=Kind.PROGRAM))
    try:
        admin.put_value(access_cost.DATA_NAME, nodes[0], cost.to_json())
        for one in nodes:
            told = {part["sha256"][:DIGITS]: part["size_bytes"]} if one == node else {}
            admin.put_value(CACHED, one, json.dumps(told))
        yield
    finally:
        for name in (access_cost.DATA_NAME, CACHED):
            admin.delete_producer(name)


def run_on(platform: Platform, node: str, spec: TaskSpec) -> Task:
    """A task that has ended on the node that YARN was asked for first.

    YARN takes another after one look at each, and a task waits for this node no longer than that pays: on a busy
    machine the node may miss its turn, and then has two more.
    """
    for _ in range(3):
        task = platform.ended(platform.user.submit_task(spec).task_id)
        if task.node_name == node and "YARN was asked for" in find_decision(platform, task.task_id).said:
            break
    return task


def find_decision(platform: Platform, task_id: str) -> TaskDecision:
    """Why a task runs where it runs, once that is noted."""

    def look() -> TaskDecision | None:
        with suppress(NotFound):
            return platform.user.task_decision(task_id)
        return None

    found: TaskDecision = until(look)
    return found


def test_a_task_goes_where_its_environment_is_and_elsewhere_when_that_is_full(platform: Platform, made: Any) -> None:
    spec = TaskSpec(("python", "-c", "import packaging"), env="plain@1", memory_mb=128)
    first, *others, last = platform.cluster.nodes
    for node in (last, first):
        with having(platform, made["parts"][0], node):
            task = run_on(platform, node, spec)
        assert (task.state, task.node_name) == (TaskState.SUCCEEDED, node)
        said = find_decision(platform, task.task_id).said
        assert f"YARN was asked for {node} first, where the task would be done soonest. {node} had its" in said

    full = TaskSpec(("sleep", "900"), nodes=(last,), memory_mb=NODE_MEMORY_MB - RUNNER_MEMORY_MB)
    holder = platform.user.submit_task(full).task_id
    try:
        until(lambda: platform.user.task(holder).state is TaskState.RUNNING)
        with having(platform, made["parts"][0], last):
            task = platform.ended(platform.user.submit_task(spec).task_id)
    finally:
        platform.user.stop_task(holder)

    assert task.state is TaskState.SUCCEEDED and task.node_name in (first, *others)
    assert f"{task.node_name} gets its environment in about 1 s" in find_decision(platform, task.task_id).said
    platform.ended(holder)


def test_of_nodes_that_it_alone_may_use_a_task_gets_the_one_that_has_its_environment(
    platform: Platform, made: Any
) -> None:
    first, *_, last = platform.cluster.nodes
    spec = TaskSpec(("python", "-c", "import packaging"), env="plain@1", memory_mb=128, nodes=(first, last))
    for node in (last, first):
        with having(platform, made["parts"][0], node, seconds=20.0):
            task = run_on(platform, node, spec)
        decision = find_decision(platform, task.task_id)

        assert (task.state, task.node_name) == (TaskState.SUCCEEDED, node)
        assert f"YARN was asked for {node} first, where the task would be done soonest." in decision.said
        assert {one.node_name for one in decision.nodes if one.allowed} == {first, last}


def test_members_that_train_are_started_in_it(site: Site, made: Any, tmp_path: Path) -> None:
    program = tmp_path / "prefix.py"
    program.write_text("import sys, packaging; print(sys.prefix, packaging.__version__)")
    words = ("--members", "1", "--memory", "512", "--restarts", "0", "--output", "hdfs:///training/in-env", "--json")
    line = ("train", "submit", *words, "--env", "plain@1", "--file", str(program), "--", "python", program.name)
    job_id = json.loads(succeed(nodewise(site.cluster.home, *line, url=site.url)))["job_id"]
    until(lambda: [one for one in applications(site.cluster) if one["id"] == job_id and one["finishedTime"]])

    printed = succeed(nodewise(site.cluster.home, "train", "logs", job_id, url=site.url))

    assert "/opt/env 26.4" in printed


def test_the_recipes_of_the_manual(site: Site, platform: Platform, tmp_path: Path) -> None:
    for line in [*block("env-make").splitlines(), *block("env-fit").splitlines()]:
        printed = succeed(site.nodewise(*shlex.split(line)[1:]))
    assert all(host in printed for host in site.cluster.nodes) and "yes" in printed
    warmed = succeed(site.nodewise(*shlex.split(block("env-warm"))[1:]))
    assert all(host in warmed for host in site.cluster.nodes)
    task_id, *_ = succeed(platform.run(*shlex.split(block("env-task"))[2:])).split()
    assert platform.log(task_id) == "1.32.0\n"

    show, make = (shlex.split(line)[1:] for line in block("env-lock").splitlines())
    lock = tmp_path / "onnx.lock"
    lock.write_text(succeed(site.nodewise(*show[:4])))
    again = json.loads(succeed(site.nodewise(*make[:-1], str(lock), "--json")))
    assert again["parts"] == env(site.cluster, "show", "onnx@1.32")["parts"]
    assert succeed(site.nodewise("env", "rm", "onnx@again")) == "onnx@again removed\n"


@pytest.fixture
def card() -> Iterator[Path]:
    """A CDI file of this machine, where all nodes are, for one card of NVIDIA that is none."""
    with suppress(CdiError):
        find(["nvidia.com/gpu=0"])
        pytest.skip("this machine has a card")
    folder = Path(FOLDERS[1])
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    file = folder / "nodewise-test.json"
    edits = {"deviceNodes": [{"path": "/dev/nvidia0", "hostPath": "/dev/full"}], "env": ["CARD=0"]}
    devices = [{"name": "0", "containerEdits": edits}]
    file.write_text(json.dumps({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": devices}))
    yield file
    file.unlink(missing_ok=True)
    if is_new:
        folder.rmdir()


def test_a_task_has_a_device_of_its_node(site: Site, platform: Platform, made: Any, card: Path) -> None:
    succeed(site.nodewise(*shlex.split(block("env-make").splitlines()[0])[1:]))
    task_id, state = platform.run(*shlex.split(block("env-device"))[2:]).stdout.split()
    assert (state, platform.log(task_id)) == ("succeeded", "CPU\n")
    program = "import os, packaging; print(os.environ['CARD']); open('/dev/nvidia0', 'wb', 0).write(b'x')"
    spec = TaskSpec(("python", "-c", program), env="plain@1", devices=["nvidia.com/gpu=0"])

    ended = platform.ended(platform.user.submit_task(spec).task_id)
    card.unlink()
    without = platform.ended(platform.user.submit_task(spec).task_id)

    assert platform.log(ended.task_id) == "0\n"
    assert "No space left on device" in platform.log(ended.task_id, "stderr")
    assert without.state == TaskState.FAILED
    assert "no CDI file in /etc/cdi or /var/run/cdi describes nvidia.com/gpu=0" in (without.reason or "")


def test_a_job_whose_workers_have_nothing_of_the_node(site: Site) -> None:
    make, submit = block("env-job").splitlines()
    succeed(site.nodewise(*shlex.split(make)[1:]))

    words = shlex.split(submit.replace("/data/pictures", "/data/images"))[1:]
    done = site.nodewise(*words, "--capability-wait", "120", *small_network(site.cluster.home), "--json")

    report = json.loads(succeed(done))
    assert report["images"] == PICTURES + len(BROKEN)


@pytest.mark.usefixtures("only_when_long")
def test_a_pool_whose_workers_have_nothing_of_the_node(site: Site) -> None:
    make, _ = block("env-job").splitlines()
    succeed(site.nodewise(*shlex.split(make)[1:]))
    words = (*small_network(site.cluster.home), "--env", "workers@1", "--nodes", "2", "--idle", "0", "--wait", "--json")
    up = json.loads(succeed(site.nodewise("pool", "up", "enclosed", *words)))
    try:
        asked = ("--input", "hdfs:///data/images", "--output", "hdfs:///out/enclosed", "--capability", "perf_even")
        how = ("--capability-wait", "120", "--wait", "--json")
        done = site.nodewise("job", "submit", "--pool", "enclosed", *asked, *how)
        report = json.loads(succeed(done))
        shown = until(lambda: json.loads(succeed(site.nodewise("pool", "show", "enclosed", "--json")))["nodes"])
    finally:
        succeed(site.nodewise("pool", "down", "enclosed", "--now"))

    assert report["images"] == PICTURES + len(BROKEN)
    assert {one["node_name"] for one in report["nodes"] if one["images"]} <= {one["node_name"] for one in shown}
    until(lambda: [one for one in applications(site.cluster) if one["id"] == up["job_id"] and one["finishedTime"]])
    used = next(one for one in applications(site.cluster) if one["id"] == up["job_id"])
    assert "part=" in used["applicationTags"], "YARN tells that a pool uses it, so that it is not removed meanwhile"


def test_where_nothing_can_run_it_is_said_before_anything_is_submitted(
    site: Site, platform: Platform, made: Any
) -> None:
    succeed(site.nodewise("env", "make", "plain", "--version", "2", "--cuda", "12.1", *PACKAGES))
    before = len(applications(site.cluster))

    told = json.loads(succeed(site.nodewise("env", "fit", "plain", "--json")))
    assert set(told["nodes"].values()) == {"it has no card of NVIDIA whose driver is known"}
    assert told["newest_that_fits"] == "1"
    words = ("--members", "1", "--output", "hdfs:///training/unfit", "--env", "plain@2", "--", "true")
    refused = nodewise(site.cluster.home, "train", "submit", *words, url=site.url)
    assert refused.returncode == 1 and "can run plain@2: on " in " ".join(refused.stderr.split())
    assert "take plain@1, the newest version that runs on one of them" in " ".join(refused.stderr.split())
    assert len(applications(site.cluster)) == before
    task = platform.user.submit_task(TaskSpec(("true",), env="plain@2"))
    reason = platform.ended(task.task_id).reason or ""
    assert "can run plain@2: on " in reason and "take plain@1, the newest version" in reason


def test_what_cannot_be_made_or_found_is_told_in_one_sentence(cluster: Cluster, made: Any) -> None:
    asked = {
        ("make", "both", "--version", "1", "--package", "flatbuffers==1", "--package", "flatbuffers==2"): "go together",
        ("make", "Bad name", "--version", "1", *PACKAGES): "names no environment",
        ("make", "none", "--version", "1"): "one of these",
        ("make", "none", "--version", "1", "--debian", "hello", "--lock", __file__): "one of these",
        ("show", "plain@2"): "take one of 1",
        ("show", "nothing"): "there is no environment nothing",
    }
    for words, said in asked.items():
        done = nodewise(cluster.home, "env", *words)
        assert done.returncode and said in done.stderr, done
        assert "Traceback" not in done.stderr
