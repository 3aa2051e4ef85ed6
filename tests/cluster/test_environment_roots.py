"""Environments with a root of their own on a real cluster: programs see it, and not the system of their node."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hdfs import InsecureClient

from hadoop.local.lifecycle import Cluster
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskState
from tests.cluster.site import Site, applications, nodewise, succeed, until
from tests.cluster.task_platform import Platform, platform_of
from tests.environments.image_archives import Entry, file, other, programs, save
from tests.recipes.pages import block

pytestmark = pytest.mark.usefixtures("kept_commands")
ROOT = Path(__file__).resolve().parents[2]
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


def test_packages_of_debian_make_a_system_of_their_own(platform: Platform, cluster: Cluster, tmp_path: Path) -> None:
    build, submit = (shlex.split(line) for line in block("env-debian").splitlines())
    made = json.loads(succeed(nodewise(cluster.home, *build[1:], "--json")))

    task_id, *_ = succeed(platform.run(*submit[2:])).split()

    assert platform.log(task_id) == "/usr/lib/python3/dist-packages/six.py\n"
    names = {one["name"] for one in made["packages"]}
    assert {"python3-six", "libc6", "bash"} <= names and made["is_new"] and made["python"].startswith("3.")
    assert json.loads(succeed(nodewise(cluster.home, *build[1:], "--json")))["is_new"] is False
    program = "print(open('/etc/debian_version').read()); import numpy"
    ended = platform.ended(platform.user.submit_task(TaskSpec(("python3", "-c", program), env="six@1.16")).task_id)
    assert ended.exit_code == 1 and "No module named 'numpy'" in platform.log(ended.task_id, "stderr")
    assert json.loads(succeed(nodewise(cluster.home, "env", "verify", "six@1.16", "--json"))) == {"damaged": []}


def test_packages_of_python_run_in_a_system_of_debians(platform: Platform, cluster: Cluster, tmp_path: Path) -> None:
    build, submit = (shlex.split(line)[1:] for line in block("env-both").splitlines())
    made = json.loads(succeed(nodewise(cluster.home, *build, "--json")))
    assert [part["at"] for part in made["parts"]] == ["/", "/opt/env"]

    task_id, *_ = succeed(platform.run(*submit[1:])).split()

    assert platform.log(task_id) == "1.32.0\n"
    program = "import ctypes, sys; print(sys.executable, ctypes.CDLL('libgomp.so.1')); open('/etc/fstab')"
    ended = platform.ended(platform.user.submit_task(TaskSpec(("python", "-c", program), env="both@1")).task_id)
    assert ended.exit_code == 1 and "FileNotFoundError" in platform.log(ended.task_id, "stderr")
    assert platform.log(ended.task_id).startswith("/opt/env/bin/python <CDLL 'libgomp.so.1'")
    lock = tmp_path / "both.lock"
    lock.write_text(succeed(nodewise(cluster.home, "env", "show", "both@1", "--lock")))
    again = nodewise(cluster.home, "env", "make", "both", "--version", "2", "--lock", str(lock), "--json")
    assert json.loads(succeed(again))["parts"] == made["parts"]


def test_a_task_has_its_data_and_keeps_its_checkpoint_in_a_root(
    platform: Platform, cluster: Cluster, image: Path
) -> None:
    make(cluster, image, "kept")
    hdfs, place = InsecureClient(cluster.namenode_http, user=cluster.user), f"/roots/{secrets.token_hex(4)}"
    hdfs.write(f"{place}/data/word", b"from HDFS\n")
    script = "cat $DATA/data/word; cat $CHECKPOINT/last; echo kept > $CHECKPOINT/last; echo result > $OUTPUT/one"
    spec = TaskSpec(
        ("sh", "-c", script),
        env="tools@kept",
        data=(f"hdfs://{place}/data",),
        checkpoint=f"hdfs://{place}/checkpoint",
        output=f"hdfs://{place}/output",
    )

    first = platform.ended(platform.user.submit_task(spec).task_id)
    second = platform.ended(platform.user.submit_task(replace(spec, output=None)).task_id)

    assert [first.state, second.state] == [TaskState.SUCCEEDED] * 2, platform.log(second.task_id, "stderr")
    assert [platform.log(one.task_id) for one in (first, second)] == ["from HDFS\n", "from HDFS\nkept\n"]
    with hdfs.read(f"{place}/output/one") as content:
        assert content.read() == b"result\n"


def test_members_train_in_a_system_of_debians_without_files_of_their_node(site: Site, tmp_path: Path) -> None:
    packages = ("--debian", "hello", "--package", "hdfs-native==0.14.7")
    succeed(site.nodewise("env", "make", "members", "--version", "1", *packages))
    program = tmp_path / "seen.py"
    program.write_text(f"import pathlib, sys; print(sys.prefix, pathlib.Path({str(ROOT)!r}).exists())")
    words = ("--members", "1", "--memory", "512", "--restarts", "0", "--output", "hdfs:///training/in-root", "--json")
    line = ("train", "submit", *words, "--env", "members@1", "--file", str(program), "--", "python", program.name)
    job_id = json.loads(succeed(nodewise(site.cluster.home, *line, url=site.url)))["job_id"]
    until(lambda: [one for one in applications(site.cluster) if one["id"] == job_id and one["finishedTime"]])

    printed = succeed(nodewise(site.cluster.home, "train", "logs", job_id, url=site.url))

    assert "/opt/env False" in printed


def test_a_lock_of_debians_packages_gives_the_same_bytes_without_a_mirror(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = shlex.split(block("env-debian").splitlines()[0])[1:]
    made = json.loads(succeed(nodewise(cluster.home, *build, "--json")))
    lock, settings = tmp_path / "six.lock", tmp_path / "apt.conf"
    lock.write_text(succeed(nodewise(cluster.home, "env", "show", "six@1.16", "--lock")))
    settings.write_text(f'Dir::State::lists "{tmp_path}"; Dir::Etc::sourceparts "-"; Dir::Etc::sourcelist "-";')
    monkeypatch.setenv("APT_CONFIG", str(settings))

    again = json.loads(succeed(nodewise(cluster.home, *build[:-2], "--lock", str(lock), "--json")))

    assert (again["is_new"], again["digest"], again["parts"]) == (True, made["digest"], made["parts"])
    without = nodewise(cluster.home, "env", "make", "six", "--version", "2", "--debian", "python3-six")
    assert without.returncode == 1 and "have no package python3-six" in without.stderr.replace("\n", " ")
    assert "Traceback" not in without.stderr


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
