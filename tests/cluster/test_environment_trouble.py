"""Environments in trouble on a real cluster: damaged, in use while they are removed, and without room on a node."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from hdfs import InsecureClient

from bench.stage import START_SECONDS
from hadoop.local import daemons, lifecycle
from hadoop.local.lifecycle import Cluster
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from tests.cluster.site import nodewise, succeed, until
from tests.cluster.task_platform import Platform, platform_of

pytestmark = pytest.mark.usefixtures("kept_commands")
PACKAGE = ("--package", "hdfs-native==0.14.7")
LOST_SECONDS, GONE_SECONDS = 15, 120
"""Until YARN gives up a node that is silent, and what then still ends there may take."""


@pytest.fixture(scope="module")
def platform(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with platform_of(cluster, tmp_path_factory.mktemp("platform")) as started:
        yield started


def make(cluster: Cluster, name: str) -> str:
    """Make an environment that no other has a part of; the name of its part."""
    words = ("env", "make", name, "--version", "1", *PACKAGE, "--json")
    made = json.loads(succeed(nodewise(cluster.home, *words)))
    return f"sha256-{made['parts'][0]['sha256']}.sqfs"


def run_on(platform: Platform, node: str, env: str) -> Task:
    """A task in an environment on a node, once it has ended."""
    spec = TaskSpec(("python", "-c", "import hdfs_native"), env=env, nodes=[node])
    return platform.ended(platform.user.submit_task(spec).task_id)


def cached(cluster: Cluster, node: str, part: str) -> list[Path]:
    """Where a node has a part."""
    return list((cluster.node_dir(node) / "local" / "filecache").glob(f"*/{part}"))


def damage(file: Path) -> None:
    """Change bytes in its middle, and nothing that is told of it."""
    with file.open("r+b") as content:
        content.seek(file.stat().st_size // 2)
        content.write(b"damaged")


@pytest.fixture(scope="module")
def first_part(cluster: Cluster) -> Iterator[str]:
    """The environment used@1, which is removed in the end; the name of its part."""
    yield make(cluster, "used")
    nodewise(cluster.home, "env", "rm", "used@1", "--force")


@pytest.fixture
def part(cluster: Cluster, first_part: str) -> str:
    """Of that environment, which is made again where a test has removed it, or left it damaged."""
    if nodewise(cluster.home, "env", "verify", "used@1").returncode == 0:
        return first_part
    nodewise(cluster.home, "env", "rm", "used@1", "--force")
    return make(cluster, "used")


def test_what_programs_use_is_not_removed(platform: Platform, cluster: Cluster, part: str) -> None:
    running = platform.user.submit_task(TaskSpec(("sleep", "3600"), env="used@1"))
    waiting = platform.user.submit_task(TaskSpec(("true",), env="used", after=[running.task_id]))
    application = until(lambda: platform.user.task(running.task_id).application_id)
    remove = ("env", "rm", "used@1", "--token-file", str(platform.user_file))

    refused = nodewise(cluster.home, *remove, url=platform.url)
    platform.user.stop_task(running.task_id)
    platform.ended(running.task_id)
    platform.ended(waiting.task_id)

    said = " ".join(refused.stderr.split())
    assert refused.returncode == 1
    assert f"used@1 is used by {application}, {waiting.task_id}: end them by" in said and "Traceback" not in said
    assert succeed(nodewise(cluster.home, *remove, url=platform.url)) == "used@1 removed\n"
    hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
    assert part not in hdfs.list("/nodewise/env/blobs")


def test_a_part_that_is_damaged_on_a_node_is_named_and_fetched_again(
    platform: Platform, cluster: Cluster, part: str
) -> None:
    node, *_ = cluster.nodes
    assert run_on(platform, node, "used@1").state == TaskState.SUCCEEDED
    before = cached(cluster, node, part)  # also what YARN keeps of an environment that was removed and made again
    for file in before:
        damage(file)

    failed, again = run_on(platform, node, "used@1"), run_on(platform, node, "used@1")

    assert failed.state == TaskState.FAILED
    assert f"{part} is damaged on this node, and is deleted there" in (failed.reason or "")
    assert again.state == TaskState.SUCCEEDED
    assert set(cached(cluster, node, part)) - set(before)


def test_what_hdfs_holds_wrongly_is_refused_on_each_node_and_told_by_verify(
    platform: Platform, cluster: Cluster, part: str
) -> None:
    hdfs, path = InsecureClient(cluster.namenode_http, user=cluster.user), f"/nodewise/env/blobs/{part}"
    with hdfs.read(path) as reader:
        content = bytearray(reader.read())
    content[len(content) // 2] ^= 255
    hdfs.write(path, data=bytes(content), overwrite=True)

    failed = run_on(platform, cluster.nodes[1], "used@1")
    verified = nodewise(cluster.home, "env", "verify", "used@1")

    assert failed.state == TaskState.FAILED
    assert f"{part} is damaged on this node" in (failed.reason or "")
    assert (verified.returncode, "".join(verified.stdout.split())) == (1, f"{path}isdamaged")
    refused = nodewise(cluster.home, "env", "rm", "used@1")
    said = " ".join(refused.stderr.split())
    assert refused.returncode == 1 and "not known whether tasks wait to start in used@1" in said
    succeed(nodewise(cluster.home, "env", "rm", "used@1", "--force"))
    assert make(cluster, "used") == part
    assert run_on(platform, cluster.nodes[1], "used@1").state == TaskState.SUCCEEDED


def test_a_replica_that_is_damaged_is_mended_from_another(cluster: Cluster, part: str) -> None:
    size = InsecureClient(cluster.namenode_http, user=cluster.user).status(f"/nodewise/env/blobs/{part}")["length"]

    def replicas() -> dict[Path, bytes]:
        found = {}
        for node in cluster.nodes:
            for file in (cluster.node_dir(node) / "data").rglob("finalized/**/blk_*"):
                with suppress(FileNotFoundError):  # HDFS deletes later what was removed before
                    if file.suffix != ".meta" and file.stat().st_size == size:
                        found[file] = file.read_bytes()
        return found

    until(lambda: len(replicas()) == 2)
    whole = set(replicas().values())
    assert len(whole) == 1
    spoilt = next(iter(replicas()))
    damage(spoilt)

    def is_mended() -> bool:
        verified = json.loads(succeed(nodewise(cluster.home, "env", "verify", "used@1", "--json")))
        assert verified == {"damaged": []}
        found = replicas()
        return set(found.values()) == whole and len(found) == 2

    assert set(replicas().values()) != whole
    until(is_mended)


def test_a_node_without_room_is_told(platform: Platform, cluster: Cluster, part: str) -> None:
    node, cache = cluster.nodes[2], cluster.node_dir(cluster.nodes[2]) / "local" / "filecache"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=200k,mode=755,uid={os.getuid()}", "room", cache], check=False
    )
    if mounted.returncode:
        pytest.skip("nothing may be mounted here")
    try:
        failed = run_on(platform, node, "used@1")
    finally:
        subprocess.run(["umount", "--lazy", cache], check=True)

    assert (failed.state, failed.reason) == (TaskState.FAILED, f"its node cannot fetch {part}: No space left on device")
    assert run_on(platform, node, "used@1").state == TaskState.SUCCEEDED


def named(mark: str) -> list[psutil.Process]:
    """Processes with this mark in their words: a program, and all that stands between it and its box."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it has ended
            if process.status() != psutil.STATUS_ZOMBIE and any(mark in word for word in process.cmdline()):
                found.append(process)
    return found


def test_a_nodemanager_that_is_killed_leaves_no_program_in_an_environment_and_its_task_has_a_reason(
    platform: Platform, cluster: Cluster, part: str
) -> None:
    node, mark = cluster.nodes[0], secrets.token_hex(8)
    program = f"import time, hdfs_native; print('runs', flush=True); time.sleep(3600) # {mark}"
    spec = TaskSpec(("python", "-c", program), env="used@1", nodes=[node], attempts=1)
    task_id = platform.user.submit_task(spec).task_id
    until(lambda: platform.log(task_id) == "runs\n")
    assert len(named(mark)) > 1
    try:
        daemons.find_running(cluster)[daemons.Daemon(cluster, "nodemanager", node)].kill()

        until(lambda: not named(mark), LOST_SECONDS + GONE_SECONDS)
        ended = platform.ended(task_id)
    finally:
        lifecycle.up(cluster.home, ready_seconds=START_SECONDS)

    assert (ended.state, ended.reason) == (TaskState.FAILED, "its node was lost")
    assert (again := run_on(platform, node, "used@1")).state is TaskState.SUCCEEDED, again.reason
