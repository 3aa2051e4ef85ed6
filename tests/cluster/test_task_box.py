"""Tasks in boxes of Docker on the real cluster: an image from HDFS, its log and output, and kills of everybody."""

from __future__ import annotations

import io
import json
import platform as machine
import secrets
import shlex
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from bench.docker_here import DockerHere
from hadoop.local.lifecycle import Cluster
from tests.boxes.test_docker_pull import with_layer
from tests.cluster.node_docker import docker_of
from tests.cluster.site import nodewise, succeed, until
from tests.cluster.task_platform import platform_of
from tests.cluster.task_session import Tasks
from tests.cluster.test_task_runner import runner_of
from tests.recipes.pages import block
from tests.recipes.shell import Shell

LIBRARIES = ("libdl.so.2", "libgcc_s.so.1", "libpthread.so.0", "librt.so.1", "libstdc++.so.6")
"""What packages of Python need of a system beside what Python needs."""
LINGER = "trap '' TERM; (setsid sleep 3600.75 &) ; echo ready; while :; do sleep 0.2; done"


@pytest.fixture(scope="module")
def docker(cluster: Cluster) -> Iterator[DockerHere]:
    """Docker and a broker where nodes look for it, and an image in HDFS that the broker allows."""
    with docker_of(cluster) as made:
        added = nodewise(cluster.home, "task", "image", "add", str(made.archive), "--name", "here", "--json")
        assert json.loads(succeed(added))["id"] == made.image
        yield made


@pytest.fixture
def words(tmp_path: Path) -> Path:
    (tmp_path / "words.txt").write_text("some words\n")
    with tarfile.open(tmp_path / "files.tar", "w") as made:
        made.add(tmp_path / "words.txt", "words.txt")
    return tmp_path / "files.tar"


@pytest.fixture(autouse=True)
def _nothing_is_left(docker: DockerHere) -> Iterator[None]:
    yield
    until(lambda: docker.containers() == [])


def boxed(tasks: Tasks, docker: DockerHere, script: str, **spec: Any) -> tuple[str, str]:
    return tasks.submit("bash", "-c", script, image=f"here@{docker.image}", **spec)


def test_an_image_is_listed_until_it_is_removed(tasks: Tasks, docker: DockerHere) -> None:
    home = tasks.cluster.home

    (kept,) = json.loads(succeed(nodewise(home, "task", "image", "list", "--json")))

    assert (kept["name"], kept["id"], kept["layers"]) == ("here", docker.image, 1)
    assert 0 < kept["size_bytes"] < docker.archive.stat().st_size, "it is compressed"
    assert docker.image in succeed(nodewise(home, "task", "image", "list"))


def test_the_commands_of_the_page_do_what_it_says(tasks: Tasks, docker: DockerHere, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "operator", tmp_path / "work", {"HADOOP_CONF_DIR": str(tasks.cluster.conf_dir)})
    (shell.folder / "torch.tar").symlink_to(docker.archive)

    printed = shell.run(block("task-image"))

    assert f"torch@{docker.image}" in printed
    (kept,) = json.loads(succeed(nodewise(tasks.cluster.home, "task", "image", "list", "--json")))
    assert kept["name"] == "torch", "it is the same image under another name"


def test_a_file_that_is_no_image_is_not_added(tasks: Tasks, docker: DockerHere, tmp_path: Path) -> None:
    (tmp_path / "words.tar").write_text("words")

    refused = nodewise(tasks.cluster.home, "task", "image", "add", str(tmp_path / "words.tar"))

    assert refused.returncode != 0
    assert "words.tar cannot be added: it is not a tar archive of an image" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_task_in_an_image_that_its_node_does_not_have_yet(tasks: Tasks, docker: DockerHere, words: Path) -> None:
    docker.forget_image()
    output = f"/out/{secrets.token_hex(4)}"
    script = "cat words.txt; echo $MARK $SEED $HOME; ls / 2>&1; echo 7 > $OUTPUT/seven"

    task_id, job_id = boxed(tasks, docker, script, archive=words, output=output, variables={"SEED": "3"})
    ended = tasks.ask("wait", job_id)

    assert ended["final"] == "SUCCEEDED", ended
    with_image = docker.engine.ask("GET", f"/images/{docker.image}/json")
    assert with_image["RepoDigests"][0].startswith("127.0.0.1:"), "Docker has pulled it"
    printed = tasks.log(task_id, "stdout.1").decode().splitlines()
    assert printed[:1] == ["some words"] and printed[1].startswith("one 3 ") and printed[1].endswith("/work")
    with tasks.hdfs.read(f"{output}/seven") as reader:
        assert reader.read() == b"7\n"


def test_an_image_that_an_earlier_version_has_kept_is_loaded(tasks: Tasks, docker: DockerHere) -> None:
    (known,) = json.loads(succeed(nodewise(tasks.cluster.home, "task", "image", "list", "--json")))
    folder = f"/user/{tasks.cluster.user}/.nodewise/images/{docker.image.removeprefix('sha256:')}"
    succeed(nodewise(tasks.cluster.home, "task", "image", "rm", docker.image))
    with docker.archive.open("rb") as archive:
        tasks.hdfs.write(f"{folder}.tar", archive, overwrite=True)
    about = json.dumps({"id": docker.image, "name": "old", "size_bytes": 1})
    tasks.hdfs.write(f"{folder}.json", about.encode(), overwrite=True)
    docker.forget_image()
    try:
        ended = tasks.ask("wait", boxed(tasks, docker, "true")[1])
        assert ended["final"] == "SUCCEEDED", ended
        assert not docker.engine.ask("GET", f"/images/{docker.image}/json")["RepoDigests"]
    finally:
        succeed(nodewise(tasks.cluster.home, "task", "image", "add", str(docker.archive), "--name", known["name"]))


def libraries() -> bytes:
    """A layer of this machine's."""
    made, folder = io.BytesIO(), Path(f"/usr/lib/{machine.machine()}-linux-gnu")
    with tarfile.open(fileobj=made, mode="w") as write:
        for name in LIBRARIES:
            write.add((folder / name).resolve(), str(folder / name))
    return made.getvalue()


@pytest.fixture
def allow(tasks: Tasks, docker: DockerHere) -> Iterator[Callable[[str], None]]:
    """Have the operator allow an image by NAME@ID; afterwards HDFS has none but the shared one."""
    kept = docker.images.read_text()
    yield lambda image: cast("None", docker.images.write_text(f"{kept}{image.partition('@')[2]}\n"))
    docker.images.write_text(kept)
    for one in json.loads(succeed(nodewise(tasks.cluster.home, "task", "image", "list", "--json"))):
        if one["id"] != docker.image:
            succeed(nodewise(tasks.cluster.home, "task", "image", "rm", one["id"]))


def test_a_task_has_the_files_of_an_environment_as_the_page_says(
    tasks: Tasks, docker: DockerHere, tmp_path: Path, allow: Callable[[str], None]
) -> None:
    def operate(line: str) -> str:
        words = shlex.split(line, comments=True)[1:]
        return succeed(nodewise(tasks.cluster.home, *words)).strip()

    with_layer(docker, tmp_path / "debian.tar", libraries())
    of_base, of_environment = block("env-docker-image").replace("debian.tar", str(tmp_path / "debian.tar")).splitlines()
    operate(block("env-make").splitlines()[0])
    operate(of_base)
    submit = shlex.split(block("env-docker-task"))[2:]
    with platform_of(tasks.cluster, tmp_path / "platform") as platform:
        refused = platform.user.task(platform.run(*submit).stdout.split()[0])
        assert "there is no image of onnx@1.32 as it is now" in (refused.reason or "")
        added = operate(of_environment)
        assert operate(of_environment) == added
        unallowed = platform.user.task(platform.run(*submit).stdout.split()[0])
        assert f"the image {added.partition('@')[2]} is not allowed here" in (unallowed.reason or "")
        allow(added)

        task_id, *_ = succeed(platform.run(*submit)).split()

        assert platform.log(task_id) == "1.32.0\n"


def test_a_task_that_needs_more_memory_than_it_has_fails_with_the_figure(tasks: Tasks, docker: DockerHere) -> None:
    _, job_id = tasks.submit("python3", "-c", "x = b'x' * 400_000_000", image=docker.image)

    ended = tasks.ask("wait", job_id)

    assert "was killed by SIGKILL: it needed more than 64 MB" in ended["diagnostics"]


def test_a_runner_that_is_killed_takes_its_box_along_and_the_next_attempt_commits(
    tasks: Tasks, docker: DockerHere
) -> None:
    output = f"/out/{secrets.token_hex(4)}"
    script = f'echo "$ATTEMPT" > "$OUTPUT/by"; [ "$ATTEMPT" = 2 ] || {{ {LINGER}; }}'
    task_id, job_id = boxed(tasks, docker, script, attempts=2, output=output)
    until(lambda: tasks.log(task_id, "stdout.1") == b"ready\n")
    (first,) = docker.containers()
    runner = runner_of(job_id)
    assert runner

    runner.kill()
    until(lambda: first not in docker.containers())

    assert (ended := tasks.ask("wait", job_id))["final"] == "SUCCEEDED", ended
    with tasks.hdfs.read(f"{output}/by") as reader:
        assert reader.read() == b"2\n"


def test_a_kill_of_the_application_leaves_no_box(tasks: Tasks, docker: DockerHere) -> None:
    task_id, job_id = boxed(tasks, docker, LINGER)
    until(lambda: tasks.log(task_id, "stdout.1") == b"ready\n")

    tasks.ask("kill", job_id)

    until(lambda: docker.containers() == [])


@pytest.mark.parametrize("victim", ["broker", "docker"])
def test_a_task_that_loses_its_box_is_started_again(victim: str, tasks: Tasks, docker: DockerHere) -> None:
    task_id, job_id = boxed(tasks, docker, f'[ "$ATTEMPT" = 2 ] || {{ {LINGER}; }}', attempts=2)
    until(lambda: tasks.log(task_id, "stdout.1") == b"ready\n")

    if victim == "broker":
        for one in psutil.Process(docker.broker.pid).children():
            with suppress(psutil.NoSuchProcess):  # its caller has left
                one.kill()
    else:
        docker.broker.send_signal(signal.SIGSTOP)  # the next attempt is not to ask for a box before Docker is back
        try:
            docker.kill_docker()
            docker.start_docker()
        finally:
            docker.broker.send_signal(signal.SIGCONT)

    ended = tasks.ask("wait", job_id)
    assert (ended["final"], ended["attempt"]) == ("SUCCEEDED", 2), json.dumps(ended)


def test_what_cannot_run_in_a_box_is_refused(tasks: Tasks, docker: DockerHere) -> None:
    other = "sha256:" + "1" * 64
    cases: list[tuple[dict[str, Any], str]] = [
        ({"image": other}, f"there is no image {other}: `nodewise task image list` shows which there are"),
        ({"box": "docker"}, "a box of kind docker needs an image: name one by --image"),
        ({"box": "process", "image": docker.image}, "a box of kind process shows the node and no image"),
        ({"box": "chest"}, "there is no box 'chest': choose one of docker, process"),
    ]
    for spec, sentence in cases:
        with pytest.raises(AssertionError) as refused:
            tasks.submit("true", **spec)
        assert sentence in str(refused.value)


def test_an_image_that_no_operator_allows_does_not_run(tasks: Tasks, docker: DockerHere) -> None:
    kept = docker.images.read_text()
    docker.images.write_text("")
    try:
        ended = tasks.ask("wait", boxed(tasks, docker, "echo never")[1])
    finally:
        docker.images.write_text(kept)

    assert f"the image {docker.image} is not allowed here" in ended["diagnostics"]
