"""The packages as an image of Docker; those of Python lie above Debian's Python as this machine has it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.image_here import as_root, find_programs, write_layer
from bench.info.errors import BenchError
from bench.programs import output

BASE, ENV = "base.tar", "env.tar"


def docker(socket: Path, *words: str) -> str:
    """What Docker's command prints; BenchError when it fails."""
    return output(["docker", "--host", f"unix://{socket}", *words], f"docker {words[0]}", _without_buildkit())


def build(socket: Path, tree: Path, at: str, scratch: Path, name: str) -> None:
    """Make the image as a Dockerfile would have it: a layer with the packages, which programs see at `at`.

    Where that is not the root, there is a layer with Python below it.
    """
    context = scratch / "context"
    context.mkdir()
    layers = {ENV: at} if at == "/" else {BASE: "/", ENV: at}
    if BASE in layers:
        _write_base(tree, context / BASE)
    output(["tar", "-C", str(tree), "--owner=0", "--group=0", "-cf", str(context / ENV), "."], "tar")
    added = "".join(f"ADD {file} {place.rstrip('/')}/\n" for file, place in layers.items())
    (context / "Dockerfile").write_text(f"FROM scratch\n{added}")
    docker(socket, "build", "--tag", name, str(context))
    shutil.rmtree(context)


def _write_base(tree: Path, layer: Path) -> None:
    libraries = [path for path in tree.rglob("*.so*") if path.is_file()]
    with layer.open("wb") as sink:
        needed = find_programs(keeps_compiled=True, users=libraries)
        write_layer(sink, (one for one in needed if _belongs_below(one, tree)), as_root)


def save(socket: Path, name: str, archive: Path) -> None:
    """Write the archive that `docker load` takes, compressed as gzip does by itself."""
    argv = ["docker", "--host", f"unix://{socket}", "save", name]
    with archive.open("wb") as sink, subprocess.Popen(argv, stdout=subprocess.PIPE) as saved:
        packed = subprocess.run(["gzip"], stdin=saved.stdout, stdout=sink, check=False)
    if saved.returncode or packed.returncode:
        raise BenchError("docker save failed")


def _belongs_below(file: Path, tree: Path) -> bool:
    """Whether a file is of this machine, and not one by which Python itself would be built into other programs."""
    return not file.is_relative_to(tree) and file.suffix != ".a"


def _without_buildkit() -> dict[str, str]:
    return dict(os.environ) | {"DOCKER_BUILDKIT": "0"}
