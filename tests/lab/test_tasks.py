"""Tasks on the cluster that the playbook has made: its submitter gives them to YARN, its workers run them in images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from bench.image_here import make_image
from lab.commands import call
from lab.keys import CONFIG
from tests.lab.playbooks import changes, play, ran

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

WORKERS = ("worker1", "worker2", "worker3", "worker4")
LOOK = "echo $MARK; [ -e /opt ] || echo nothing; id -u"


@pytest.fixture(scope="module")
def image(cluster: list[lab.Machine], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image in HDFS that the playbook has allowed on all workers; afterwards none is."""
    archive = tmp_path_factory.mktemp("image") / "here.tar"
    allow([f"{make_image(archive)} here"])
    added = json.loads(add(archive))
    yield f"here@{added['id']}"
    lab.nodewise("task", "image", "rm", added["id"])
    allow([])
    assert lab.run("worker1", ["cat", "/etc/nodewise/images"]) == ""


def allow(images: list[str]) -> None:
    run = play("site.yml", "--tags", "boxes", "-e", json.dumps({"boxes_images": images}))
    assert changes(run) == {"master": 0} | dict.fromkeys(WORKERS, 1)


def add(archive: Path) -> str:
    call(["scp", "-q", "-F", CONFIG, archive, "master:/tmp/here.tar"])
    try:
        return lab.nodewise("task", "image", "add", "/tmp/here.tar", "--name", "here", "--json")
    finally:
        lab.run("master", ["rm", "/tmp/here.tar"])


def test_a_task_of_kind_process_runs_on_a_worker() -> None:
    printed, node = ran("--", "cat", "/etc/hostname")

    assert printed.strip() == node in WORKERS


def test_a_task_finds_the_files_of_its_folder() -> None:
    lab.run("master", ["sh", "-euc", "mkdir -p /tmp/src/deep; echo told > /tmp/src/deep/a; ln -s deep/a /tmp/src/b"])
    printed, _ = ran("--folder", "/tmp/src", "--", "cat", "b")
    lab.run("master", ["rm", "-r", "/tmp/src"])

    assert printed == "told\n"


@pytest.mark.parametrize("name", WORKERS[:2])
def test_a_task_in_an_image_sees_nothing_of_its_worker(image: str, name: str) -> None:
    printed, node = ran("--image", image, "--node", name, "--", "bash", "-c", LOOK)

    assert node == name
    assert printed.split() == ["one", "nothing", lab.run(name, ["id", "-u", "yarn"]).strip()]
    assert lab.run(name, ["sudo", "docker", "ps", "--all", "--quiet"]) == ""


@pytest.mark.parametrize("name", WORKERS)
def test_nobody_but_root_speaks_to_docker(name: str) -> None:
    assert lab.run(name, ["sudo", "stat", "-c", "%a %U %G", "/run/docker.sock"]).split()[:2] == ["660", "root"]
    assert lab.run(name, ["getent", "group", "docker"]).strip().endswith(":")
