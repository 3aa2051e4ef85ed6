"""Packs a Python package of this machine, with all that it needs, as a blob of an environment, without driver files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.gpu.lacking import NotRun
from environments.file_hash import hash_file
from environments.squash import compile_all, squash

AT = "/opt/env"
"""Where the box shows it."""
DRIVER_FILE = re.compile(
    r"lib(cuda|cudadebugger|nvcuvid|nvoptix|nvidia-(?!container)[a-z0-9-]+|EGL_nvidia|GLX_nvidia)\.so(\.[0-9.]+)?"
)
"""Libraries that belong to the driver in the kernel: those of which collectors/scripts/driver_files.sh tells."""
_LIST = """
import importlib.metadata as metadata, json, re, sys
found, waiting = {}, sys.argv[1:]
while waiting:
    name = re.sub("[-_.]+", "-", waiting.pop()).lower()
    try:
        one = None if name in found else metadata.distribution(name)
    except metadata.PackageNotFoundError: # of another platform, or not needed
        continue
    if one:
        files = [(str(file.locate()), str(file)) for file in one.files or () if ".." not in file.parts]
        found[name] = [one.version, files]
        needed = [text for text in one.requires or () if "extra ==" not in text]
        waiting += [re.match("[A-Za-z0-9._-]+", text).group() for text in needed]
print(json.dumps(found))
"""
"""Prints the version and files of a package, and of all that it needs and has."""


@dataclass(frozen=True)
class Packed:
    """A blob, which is named by its SHA-256.

    versions    by package
    left_out    the driver's files that lay among the packages
    """

    blob: Path
    versions: dict[str, str]
    left_out: list[str]


def find_python(package: str, named: Path | None) -> Path:
    """The Python that has a package: the one that is named, or the first that is found; NotRun without any."""
    candidates = [named] if named else [Path(sys.executable), *_find_pythons()]
    for python in candidates:
        if package in _list(python, package):
            return python
    raise NotRun(f"none of {', '.join(map(str, candidates))} has the package {package}: name one by --python")


def pack(python: Path, packages: Sequence[str], folder: Path) -> Packed:
    """Write the blob into a folder, in which more room is needed meanwhile."""
    tree, found = folder / "tree", _list(python, *packages)
    left_out = [_take(tree, Path(file), name) for _, files in found.values() for file, name in files]
    compile_all(tree, AT, str(python))
    part = folder / "part.sqfs"
    squash(tree, part)
    shutil.rmtree(tree)
    blob = part.rename(folder / f"sha256-{hash_file(part)}.sqfs")
    return Packed(blob, {name: version for name, (version, _) in found.items()}, sorted(filter(None, left_out)))


def list_blob(blob: Path) -> list[str]:
    """The paths of all that is in it."""
    done = subprocess.run(["unsquashfs", "-d", "", "-ls", blob], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _find_pythons() -> Iterator[Path]:
    for name in ("python3", "python", "/opt/conda/bin/python", "/usr/bin/python3"):
        if path := shutil.which(name):
            yield Path(path)


def _list(python: Path, *packages: str) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    try:
        done = subprocess.run([python, "-c", _LIST, *packages], capture_output=True, text=True, check=False)
    except OSError:  # there is no such Python
        return {}
    found: dict[str, tuple[str, list[tuple[str, str]]]] = json.loads(done.stdout) if done.returncode == 0 else {}
    return {name: one for name, one in found.items() if one[1]}


def _take(tree: Path, file: Path, name: str) -> str:
    """Take a file into the tree, without a second copy of its bytes where that can be; its name if it is left out.

    Of what several packages have, the first one's stays: a file of this machine is there, which must not be written.
    """
    if DRIVER_FILE.fullmatch(file.name):
        return name
    target = tree / name
    if "__pycache__" not in file.parts and file.is_file() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(file.resolve(), target)
        except OSError:  # it lies on another disk, or is another's
            shutil.copy(file, target)
    return ""
