"""The ways by which packages come to a node: what YARN lays there, steps before the program, and how it is started."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.environments.image import docker
from bench.environments.scene import ARCHIVE, LOADED, PULLED, Scene, has_registry, index_url
from boxes.mounts.place import PLACE
from jobs.application.environments import laid
from jobs.application.environments.store import ARCHIVE_NAME, python_in

FETCH, LAY_OUT, BOTH = "fetch", "lay_out", "fetch_and_lay_out"
"""Phases before a program is started; BOTH where a way does the one while it does the other."""
IMAGE_FILE = "image.tar.gz"

_IN_FOLDER = ("/bin/sh", "-c", 'ln -s "$PWD"/* "$1" && cd "$1" && shift && exec "$@"', "sh")
"""Begins in a folder of the bench with all that YARN has brought: a program in a root can write nowhere else."""
_SEEN = ("--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--tmpfs", "/tmp")  # noqa: S108 the tmp is its own
"""Of the node, by a program in the root that YARN has unpacked."""

Words = Sequence[str]
Step = tuple[str, Words]
"""A phase, and what is run in it."""


def _no_files(_scene: Scene) -> Mapping[str, str]:
    return {}


def _no_steps(_scene: Scene, _node: str) -> Sequence[Step]:
    return ()


def _forget_nothing(_scene: Scene, _node: str) -> None:
    pass


@dataclass(frozen=True)
class Way:
    """`localised` is the phase that YARN's part of it is; `forget` has a node lose all of it."""

    name: str
    start: Callable[[Scene, str, Words], Words]
    localised: str = ""
    shared: Callable[[Scene], Mapping[str, str]] = _no_files
    archives: Callable[[Scene], Mapping[str, str]] = _no_files
    steps: Callable[[Scene, str], Sequence[Step]] = _no_steps
    forget: Callable[[Scene, str], None] = _forget_nothing
    is_here: Callable[[], bool] = lambda: True


def _start_ours(scene: Scene, _node: str, words: Words) -> Words:
    started = laid.python_argv(scene.parts, scene.content.python, words)
    return [*_IN_FOLDER, _folder(words), *started] if scene.content.debian else started


def _start_alone(scene: Scene, node: str, words: Words) -> Words:
    return ["/usr/bin/env", f"{PLACE}=/nowhere", *_start_ours(scene, node, words)]


def _forget_ours(scene: Scene, _node: str) -> None:
    for path in scene.parts.values():
        scene.submitter.ask("freshen", path)


def _start_archive(scene: Scene, _node: str, words: Words) -> Words:
    if not scene.content.debian:
        return [python_in(), *words]
    folder, python = _folder(words), scene.content.python
    return ["/usr/bin/bwrap", "--ro-bind", ARCHIVE_NAME, "/", *_SEEN, "--bind", folder, folder, python, *words]


def _folder(words: Words) -> str:
    """Of the program with these words, the folder that it writes into."""
    return str(Path(words[0]).parent)


def _forget_archive(scene: Scene, _node: str) -> None:
    scene.submitter.ask("freshen", scene.archive)


def _start_folder(scene: Scene, _node: str, words: Words) -> Words:
    return [str(scene.tree / "bin" / "python"), *words]


def _uv_steps(scene: Scene, node: str) -> Sequence[Step]:
    uv, folder = str(Path(sys.executable).with_name("uv")), scene.folder(node)
    cache = ["--cache-dir", str(folder / "cache"), "--quiet", "--no-config"]
    python = str(folder / "venv" / "bin" / "python")
    options = ["--require-hashes", "--compile-bytecode", "--default-index", index_url(), "--python", python]
    return (
        (BOTH, [uv, "venv", *cache, "--no-project", "--python", "/usr/bin/python3.11", str(folder / "venv")]),
        (BOTH, [uv, "pip", "sync", *cache, *options, str(scene.lock)]),
    )


def _start_uv(scene: Scene, node: str, words: Words) -> Words:
    return [str(scene.folder(node) / "venv" / "bin" / "python"), *words]


def _forget_venv(scene: Scene, node: str) -> None:
    shutil.rmtree(scene.folder(node) / "venv", ignore_errors=True)


def _forget_uv(scene: Scene, node: str) -> None:
    _forget_venv(scene, node)
    shutil.rmtree(scene.folder(node) / "cache", ignore_errors=True)


def _docker_argv(scene: Scene, node: str, *words: str) -> Words:
    return [shutil.which("docker") or "docker", "--host", f"unix://{scene.dockers[node].docker}", *words]


def _run_image(image: str) -> Callable[[Scene, str, Words], Words]:
    def start(scene: Scene, node: str, words: Words) -> Words:
        volume = f"{scene.scratch}:{scene.scratch}"
        options = ["--rm", "--network", "host", "--volume", volume]
        return _docker_argv(scene, node, "run", *options, image, scene.content.python, *words)

    return start


def _load_steps(scene: Scene, node: str) -> Sequence[Step]:
    return ((LAY_OUT, _docker_argv(scene, node, "load", "--quiet", "--input", IMAGE_FILE)),)


def _pull_steps(scene: Scene, node: str) -> Sequence[Step]:
    return ((BOTH, _docker_argv(scene, node, "pull", "--quiet", PULLED)),)


def _run_served(scene: Scene, node: str, words: Words) -> Words:
    return _run_image(scene.served)(scene, node, words)


def _pull_served_steps(scene: Scene, node: str) -> Sequence[Step]:
    return ((BOTH, _docker_argv(scene, node, "pull", "--quiet", scene.served)),)


def _forget_images(scene: Scene, node: str) -> None:
    docker(scene.dockers[node].docker, "image", "prune", "--all", "--force")


def _forget_archive_of_image(scene: Scene, node: str) -> None:
    scene.submitter.ask("freshen", ARCHIVE)
    _forget_images(scene, node)


OURS = Way("ours", _start_ours, FETCH, shared=lambda scene: laid.shared(scene.parts), forget=_forget_ours)
ALONE = Way("ours, without the mounter", _start_alone, FETCH, shared=lambda scene: laid.shared(scene.parts))
"""Each program has a mount of its own."""
TAR = Way("tar.gz", _start_archive, BOTH, archives=lambda scene: {ARCHIVE_NAME: scene.archive}, forget=_forget_archive)
UV = Way("uv", _start_uv, steps=_uv_steps, forget=_forget_uv)
UV_WARM = Way("uv, its cache warm", _start_uv, steps=_uv_steps, forget=_forget_venv)
LOAD = Way(
    "docker load",
    _run_image(LOADED),
    FETCH,
    shared=lambda _scene: {IMAGE_FILE: ARCHIVE},
    steps=_load_steps,
    forget=_forget_archive_of_image,
)
PULL = Way("docker pull", _run_image(PULLED), steps=_pull_steps, forget=_forget_images, is_here=has_registry)
PULL_FROM_HDFS = Way("docker pull from HDFS", _run_served, steps=_pull_served_steps, forget=_forget_images)
DOCKER = Way("docker", _run_image(LOADED))
"""Its image is on the node already."""
PLAIN = Way("plain folder", _start_folder)
"""The packages have been on the node's disk before: the least that anything can take."""
COLD = (OURS, TAR, LOAD, PULL, PULL_FROM_HDFS, UV)
CACHED = (PLAIN, OURS, ALONE, TAR, DOCKER, UV_WARM)
SHARED = (PLAIN, OURS, ALONE, TAR, DOCKER)
SYSTEM = (OURS, TAR, LOAD, PULL, PULL_FROM_HDFS)
"""By which packages of Debian can come, too."""
