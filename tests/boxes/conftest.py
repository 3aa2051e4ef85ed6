"""Docker for the tests of its boxes, started once."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.docker_here import DockerHere
from bench.stage import until
from boxes import BOXES, create
from boxes.asking import BROKER
from boxes.box import Box, Image, Limits, Program
from boxes.showing import CDI_FOLDERS
from environments.squash import squash
from tests.boxes.played_gpus import PlayedGpus
from tests.boxes.played_vendor import PlayedVendor

MOUNTED = "process with a part"
_BUSYBOX = Path("/usr/bin/busybox")


@pytest.fixture(scope="session")
def _docker() -> Iterator[DockerHere]:
    folder = Path(tempfile.mkdtemp(prefix="nw-docker-"))  # short: it holds sockets
    made = DockerHere(folder, [Path(tempfile.gettempdir())])
    made.start()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def docker(_docker: DockerHere, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerHere]:
    """Docker and its broker, which boxes of this process and of those that it starts use; none is left behind."""
    monkeypatch.setitem(os.environ, BROKER, str(_docker.socket))
    yield _docker
    until(lambda: _docker.containers() == [], 60, "no box is left")


@pytest.fixture
def passable() -> Iterator[Path]:
    """A folder that every user may pass; other runs of pytest close the one that `tmp_path` lies in, as they start."""
    with tempfile.TemporaryDirectory(prefix="nw-passable-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


@pytest.fixture(params=[*sorted(BOXES), MOUNTED])
def case(request: pytest.FixtureRequest) -> str:
    """A kind of box, or a program with a part of an environment in one."""
    name: str = request.param
    if name == "docker":
        request.getfixturevalue("docker")
    return name


@pytest.fixture
def kind(case: str) -> str:
    return case.split()[0]


@pytest.fixture(scope="session")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A squashfs file with a file `word`."""
    folder = tmp_path_factory.mktemp("part")
    (folder / "tree").mkdir()
    (folder / "tree" / "word").write_text("found\n")
    squash(folder / "tree", folder / "part.sqfs")
    return folder / "part.sqfs"


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root as Debian's, with a shell, what that is linked to, and a file of its own."""
    if not _BUSYBOX.is_file():
        pytest.skip("no busybox here, of which a root is made")
    folder = tmp_path_factory.mktemp("root")
    tree = folder / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "etc").mkdir()
    (tree / "etc/issue").write_text("another system\n")
    (tree / "etc/passwd").write_text("nobody:x:1:1::/:/bin/sh\n")
    (tree / "usr/bin/busybox").write_bytes(_BUSYBOX.read_bytes())
    (tree / "usr/bin/busybox").chmod(0o755)
    for name in ("sh", "cat", "ls", "id", "touch", "grep", "sleep"):
        (tree / "usr/bin" / name).symlink_to("busybox")
    for name in ("bin", "lib", "lib64"):
        (tree / "usr" / name).mkdir(exist_ok=True)
        (tree / name).symlink_to(f"usr/{name}")
    linked = subprocess.run(["ldd", _BUSYBOX], capture_output=True, text=True, check=False).stdout
    for library in [word for word in linked.split() if word.startswith("/")]:
        (tree / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tree / library[1:]).write_bytes(Path(library).read_bytes())
        (tree / library[1:]).chmod(0o755)
    squash(tree, folder / "root.sqfs")
    return folder / "root.sqfs"


@pytest.fixture
def cdi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of CDI files that boxes read here."""
    folder = tmp_path / "cdi"
    folder.mkdir(mode=0o755)
    monkeypatch.setenv(CDI_FOLDERS, str(folder))
    return folder


@pytest.fixture
def install(tmp_path: Path, cdi: Path) -> PlayedVendor:
    """install(VERSION, DEVICE): a driver of the vendor's in place of any other, with its CDI file, which it returns."""
    return PlayedVendor(tmp_path / "driver", cdi)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedGpus:
    """Two cards of this machine."""
    made = PlayedGpus(tmp_path / "gpus")
    made.have("Tesla T4, 15360, 100, 7.5", "Tesla T4, 15360, 15000, 7.5")
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def parts(case: str, part: Path) -> dict[str, Path]:
    return {"/opt/env": part} if case == MOUNTED else {}


@pytest.fixture
def box(kind: str) -> Box:
    return create(kind)


@pytest.fixture
def image(kind: str, request: pytest.FixtureRequest) -> Image | None:
    if kind != "docker":
        return None
    docker: DockerHere = request.getfixturevalue("docker")
    return Image(docker.image, docker.fetch)


@pytest.fixture
def program(tmp_path: Path, image: Image | None, parts: dict[str, Path]) -> Callable[..., Program]:
    def made(*argv: str, **environment: str) -> Program:
        return Program(argv, {"PATH": "/usr/bin:/bin", **environment}, tmp_path, Limits(64), image, parts)

    return made
