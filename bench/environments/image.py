"""The packages as an image of Docker, above Debian's Python as this machine has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench.image_here import as_root, find_programs, write_layer
from bench.info.errors import BenchError
from bench.programs import output

AT = "opt/env"
DOCKERFILE = f"FROM scratch\nADD base.tar /\nADD env.tar /{AT}/\n"


def docker(socket: Path, *words: str) -> str:
    """What Docker's command prints; BenchError when it fails."""
    return output(["docker", "--host", f"unix://{socket}", *words], f"docker {words[0]}", _without_buildkit())


def build(socket: Path, tree: Path, scratch: Path, name: str) -> None:
    """Make the image as a Dockerfile would have it: a layer with Python, and one with the packages."""
    context = scratch / "context"
    context.mkdir()
    libraries = [path for path in tree.rglob("*.so*") if path.is_file()]
    with (context / "base.tar").open("wb") as sink:
        needed = find_programs(keeps_compiled=True, users=libraries)
        write_layer(sink, (one for one in needed if _belongs_below(one, tree)), as_root)
    output(["tar", "-C", str(tree), "--owner=0", "--group=0", "-cf", str(context / "env.tar"), "."], "tar")
    (context / "Dockerfile").write_text(DOCKERFILE)
    docker(socket, "build", "--tag", name, str(context))


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
