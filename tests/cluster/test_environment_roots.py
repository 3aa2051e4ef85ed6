"""Environments with a root of their own on a real cluster: programs see it, and not the system of their node."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hadoop.local.lifecycle import Cluster
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskState
from tests.cluster.site import nodewise, succeed
from tests.cluster.task_platform import Platform, platform_of
from tests.environments.image_archives import Entry, file, other, programs, save
from tests.recipes.pages import block

PROGRAMS = ("dash", "cat", "env", "pwd", "ls", "touch")
ISSUE = "of the image\n"
VARIABLES = ("PATH=/opt/tools:/usr/bin", "GREETING=hello", "OWN=image")


@pytest.fixture(scope="module")
def platform(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with platform_of(cluster, tmp_path_factory.mktemp("platform")) as started:
        yield started


@pytest.fixture(scope="module", params=["docker save", "OCI"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of a small system, whose upper layer has another issue, a program, and a whiteout of a file below."""
    links = [other(name, kind=b"2", to=f"usr/{name}") for name in ("bin", "lib", "lib64")]
    moved = [_below_usr(one) for one in programs(*PROGRAMS)]
    lower = [*links, *moved, other("usr/bin/sh", b"2", "dash"), file("etc/issue", "below\n"), file("etc/gone", "x")]
    upper = [file("etc/issue", ISSUE), file("etc/.wh.gone"), file("opt/tools/greet", SCRIPT, 0o755)]
    folder = tmp_path_factory.mktemp("image")
    return save(folder, lower, upper, is_oci=request.param == "OCI", variables=VARIABLES)


SCRIPT = """#!/bin/sh
echo $GREETING $OWN; cat /etc/issue; pwd; ls -A / /etc; touch /etc/more || echo kept > word && cat word
"""


def _below_usr(entry: Entry) -> Entry:
    """Libraries are below /usr in a system whose /lib is a link."""
    entry[0].name = f"usr/{entry[0].name.removeprefix('usr/')}"
    return entry


def make(cluster: Cluster, image: Path, version: str) -> Any:
    return json.loads(succeed(_make(cluster, image, version)))


def _make(cluster: Cluster, image: Path, version: str) -> Any:
    return nodewise(cluster.home, "env", "make", "tools", "--version", version, "--image", str(image), "--json")


def test_a_task_sees_the_root_of_an_image_and_not_its_node(platform: Platform, cluster: Cluster, image: Path) -> None:
    made, again = make(cluster, image, "1"), make(cluster, image, "1")
    assert (again["is_new"], again["digest"]) == (False, made["digest"])
    spec = TaskSpec(("greet",), variables={"OWN": "task"}, env="tools@1")

    ended = platform.ended(platform.user.submit_task(spec).task_id)

    said, wrong = platform.log(ended.task_id).splitlines(), platform.log(ended.task_id, "stderr")
    assert ended.state == TaskState.SUCCEEDED, wrong
    assert said[:2] == ["hello task", ISSUE.strip()]
    assert said[2].endswith("/work"), "it starts in its folder, and not in the image's"
    assert {"issue", "kept"} <= set(said) and not {"gone", "debian_version", "home", "var"} & set(said)
    assert "Read-only file system" in wrong
    assert made["variables"]["GREETING"] == "hello" and made["packages"] == []


def test_the_recipe_of_the_manual(platform: Platform, cluster: Cluster, image: Path) -> None:
    build, submit = (shlex.split(line) for line in block("env-image").splitlines())

    succeed(nodewise(cluster.home, *build[1:-1], str(image)))
    task_id, *_ = succeed(platform.run(*submit[2:])).split()

    assert platform.log(task_id) == ISSUE


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (file("usr/bin/su", "x", 0o4755), "usr/bin/su has a setuid or setgid bit: take it away"),
        (file("../etc/passwd", "x"), "../etc/passwd lies outside of the image"),
        (file("etc/.wh...", "x"), "etc/.wh... lies outside of the image"),
        (file("lib/.wh.x", "x"), "lib is reached through the link lib"),
    ],
)
def test_what_a_program_may_not_be_shown_is_refused_in_one_sentence(
    cluster: Cluster, tmp_path: Path, entry: Entry, said: str
) -> None:
    image = save(tmp_path, [other("lib", b"2", "usr/lib"), file("etc/issue", "x")], [entry])

    done = _make(cluster, image, "bad")

    assert done.returncode == 1 and said in done.stderr.replace("\n", " "), done.stderr
    assert "Traceback" not in done.stderr
    assert "there is no" in nodewise(cluster.home, "env", "show", "tools@bad").stderr
