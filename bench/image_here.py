"""An image made of programs of this machine: bash, Python and what they need, in the archive that Docker takes."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

PROGRAMS = ("bash", "cat", "dd", "grep", "head", "id", "setsid", "sleep", "touch", "true", "yes")
PYTHON = Path("/usr/bin/python3").resolve()
_COMPILED = "__pycache__"
_LEFT_OUT = ("dist-packages", "test", "idlelib", "ensurepip", "lib2to3", "pydoc_data")


def make_image(archive: Path) -> str:
    """Write the archive and return the id of its image."""
    layer = _layer()
    configuration = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin", "MARK=one"], "Volumes": {"/data": {}}},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
    ).encode()
    write_archive(archive, configuration, [layer])
    return f"sha256:{hashlib.sha256(configuration).hexdigest()}"


def write_archive(archive: Path, configuration: bytes, layers: list[bytes], tags: tuple[str, ...] = ()) -> None:
    """An archive as `docker save` writes one."""
    name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": name, "RepoTags": list(tags), "Layers": names}]).encode()
    with tarfile.open(archive, "w") as write:
        for member, content in [("manifest.json", manifest), (name, configuration), *zip(names, layers, strict=True)]:
            found = tarfile.TarInfo(member)
            found.size = len(content)
            write.addfile(found, io.BytesIO(content))


def find_programs(keeps_compiled: bool = False, users: Iterable[Path] = ()) -> set[Path]:
    """The files of the programs, with the libraries of this machine that they and the libraries in `users` need.

    With `keeps_compiled`, Python does not have to compile its own modules; the image must then keep times.
    """
    programs = [Path("/usr/bin", name) for name in PROGRAMS] + [PYTHON]
    library = PYTHON.parent.parent / "lib" / PYTHON.name
    left_out = {*_LEFT_OUT, *([] if keeps_compiled else [_COMPILED])}
    python = {
        path for path in library.rglob("*") if path.is_file() and not set(path.relative_to(library).parts) & left_out
    }
    return {*programs, *python, *_libraries([*programs, *(path for path in python if path.suffix == ".so"), *users])}


def write_layer(sink: BinaryIO, files: Iterable[Path], change: Callable[[tarfile.TarInfo], tarfile.TarInfo]) -> None:
    """Files of this machine at their places, and the links by which programs find them."""
    with tarfile.open(fileobj=sink, mode="w") as write:
        for link in ("bin", "lib", "lib64"):
            found = tarfile.TarInfo(link)
            found.type, found.linkname = tarfile.SYMTYPE, f"usr/{link}"
            write.addfile(found)
        for name in ("sh", "python3"):
            found = tarfile.TarInfo(f"usr/bin/{name}")
            found.type, found.linkname = tarfile.SYMTYPE, "bash" if name == "sh" else PYTHON.name
            write.addfile(found)
        for path in sorted(files):
            write.add(path.resolve(), _in_image(path), recursive=False, filter=change)


def as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The file as root's, without a name of this machine's users."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _layer() -> bytes:
    made = io.BytesIO()
    write_layer(made, find_programs(), _timeless)
    return made.getvalue()


def _libraries(programs: list[Path]) -> set[Path]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return {
        Path(word) for line in told.splitlines() for word in line.split() if word.startswith("/") and word[-1] != ":"
    }


def _in_image(path: Path) -> str:
    """With /lib as a link to /usr/lib, as on this machine."""
    name = str(path)
    return (name if name.startswith("/usr/") else f"/usr{name}").lstrip("/")


def _timeless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    return member
