"""Boxes of a real Docker have the files of environments, which it pulls from HDFS, a folder here, as images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.docker_here import DockerHere
from boxes import create
from boxes.box import Ended, Image, Limits, Program
from environments.make_image import AskedImage
from environments.making import make
from environments.store import Store
from hadoop.client.filesystem import FileSystem
from jobs.kinds.task import environment_image, image_store
from tests.boxes.test_boxes import Heard
from tests.boxes.test_docker_pull import allow, hdfs, image_of, layer, with_layer
from tests.jobs.kept_environments import keep_environment

__all__ = ["allow", "hdfs"]

SECONDS = 90.0
PROGRAM = "import os, sys, words; print(words.__file__, sys.executable, os.environ['MARK'], os.listdir('/opt/env'))"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """As `env make` makes them: the Python of the base, by a link, and modules that only root may read."""
    made = tmp_path / "tree"
    modules = made / "lib" / "python3.11" / "site-packages"
    modules.mkdir(parents=True)
    (modules / "words.py").write_text("words = 1\n")
    (modules / "words.py").chmod(0o600)
    (made / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (made / "bin").mkdir()
    (made / "bin" / "python").symlink_to("/usr/bin/python3")
    return made


@pytest.fixture
def run(
    docker: DockerHere, hdfs: FileSystem, tmp_path: Path, allow: Callable[[str], None]
) -> Callable[..., tuple[bytes, list[str]]]:
    """Runs a program in an image that the operator allows: what it printed, and what its runner said."""

    def run_one(image: str, *argv: str) -> tuple[bytes, list[str]]:
        allow(image)
        box, output, said = create("docker"), Heard(), list[str]()
        found: Image = image_of(hdfs, image, said)
        box.start(Program(argv, {}, tmp_path, Limits(64), found), output)
        assert box.wait(SECONDS) == Ended(0), bytes(output.stderr)
        return bytes(output.stdout), said

    return run_one


def test_a_box_has_the_files_of_an_environment_over_its_base_and_docker_pulls_what_it_lacks(
    docker: DockerHere, hdfs: FileSystem, tmp_path: Path, tree: Path, run: Callable[..., tuple[bytes, list[str]]]
) -> None:
    docker.forget_image()
    base = with_layer(docker, tmp_path / "base.tar", layer("opt/env/old", b"of the base\n"))
    image_store.add(hdfs, tmp_path / "base.tar", "base")
    manifest = keep_environment(hdfs, tmp_path, {"/opt/env": tree})
    image = environment_image.add(hdfs, "words@1", "base").image.id

    printed, said = run(environment_image.find(hdfs, "words@1").image, "python", "-c", PROGRAM)

    modules = "/opt/env/lib/python3.11/site-packages/words.py"
    assert printed.decode().startswith(f"{modules} /opt/env/bin/python one [") and b"old" not in printed
    assert said == ["Docker has fetched 3 of 3 layers"]
    told = docker.engine.ask("GET", f"/images/{image}/json")
    assert (told["Id"], told["Config"]["Labels"]) == (image, {"nodewise.environment": manifest.digest})
    assert run(base, "cat", "/opt/env/old") == (
        b"of the base\n",
        ["Docker has fetched 0 of 2 layers; it had the others"],
    )

    (tree / "lib" / "python3.11" / "site-packages" / "words.py").write_text("words = 2\n")
    keep_environment(hdfs, tmp_path, {"/opt/env": tree}, version="2")
    second = environment_image.add(hdfs, "words@2", "base")
    assert second.new_layers == 1
    printed, said = run(second.image.id, "python", "-c", "import words; print(words.words)")
    assert (printed, said) == (b"2\n", ["Docker has fetched 1 of 3 layers; it had the others"])


def test_an_environment_with_a_root_is_all_that_a_program_sees(
    docker: DockerHere, hdfs: FileSystem, tmp_path: Path, run: Callable[..., tuple[bytes, list[str]]]
) -> None:
    more = layer("word", b"own\n")
    with_layer(docker, tmp_path / "own.tar", more)
    make(Store(hdfs), AskedImage("own", "1", tmp_path / "own.tar"), lambda _: None)

    first, again = (environment_image.add(hdfs, "own@1").image.id for _ in range(2))
    printed, said = run(first, "bash", "-c", "cat /word; [ -w /word ] || echo read-only")

    assert (first, printed) == (again, b"own\nread-only\n")
    assert said == ["Docker has fetched 1 of 1 layers"]
