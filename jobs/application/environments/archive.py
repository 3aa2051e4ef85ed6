"""A Python environment as one archive that runs from whatever folder a node unpacks it into."""

from __future__ import annotations

import gzip
import hashlib
import io
import platform
import secrets
import struct
import tarfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.util import source_hash
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hadoop.installation import Part, remedy
from jobs.application.environments.lock import locked_files
from jobs.errors import JobError

FORMAT = 2
"""Part of every archive's name; raise it when the same environment shall make another archive."""
PYTHON, PYTHON3 = "bin/python", "bin/python3"
"""The interpreter within an archive, by both of its names."""
_INSTALLERS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel")
_TESTERS = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "pygments")
_TOOLS = frozenset((*_INSTALLERS, *_TESTERS))
"""What makes or tests an environment, with what is there for these alone."""
_FOLDERS = frozenset(("tests", "include", "__pycache__"))
_TEST_DATA = ("onnx/backend/test/",)
_BUILD_SUFFIXES = frozenset((".pyc", ".pxd", ".pxi", ".pyx", ".h", ".hpp", ".a", ".lib", ".cmake"))
_METADATA = frozenset(("METADATA", "entry_points.txt"))
_QUICK = 1  # of zlib's levels: an eighth larger than the usual one, in less than half the time
_UNCHECKED = 1  # a flag of compiled files: trust the hash, look at no source
_LAUNCHER = """\
#!/bin/bash
# This node's own Python {version}, with the packages beside this file.
for python in '{base}' python{version} /usr/bin/python{version} /usr/local/bin/python{version}; do
  found=$(command -v "$python") || continue
  is=$("$found" -ISc 'import os, sys; print(sys.implementation.cache_tag, os.uname().machine)' 2> /dev/null)
  [ "$is" != 'cpython-{tag} {machine}' ] || exec -a "$0" "$found" "$@"
done
echo "${{NODE_NAME:-$(uname -n)}} has no Python {version} for {machine}, which the published environment needs:" \\
  "install it there (Debian: apt-get install python{version})" >&2
exit 127
"""


@dataclass(frozen=True)
class Member:
    """One file to be packed: its name in the archive, and where it is."""

    name: str
    path: Path
    size_bytes: int


@dataclass(frozen=True)
class Contents:
    """What an archive is made from: `version` as 3.11, `base` the interpreter that the environment was made with."""

    version: str
    base: str
    machine: str
    members: tuple[Member, ...]

    @property
    def size_bytes(self) -> int:
        """What the members take before they are compressed."""
        return sum(member.size_bytes for member in self.members)


def contents(environment: Path, lock: Path | None = None) -> Contents:
    """Look through a virtual environment; JobError when it is not one, or cannot be moved to another folder.

    With `lock`, a requirements file, only the packages that it names are wanted.
    """
    base = (environment / "bin" / "python").resolve()
    packages = sorted(environment.glob("lib/python3.*/site-packages"))
    if not (environment / "pyvenv.cfg").is_file() or not base.is_file() or len(packages) != 1:
        raise JobError(
            f"{environment} is not a virtual environment",
            remedy=f"name one with --python; to have that of the workers, {remedy(Part.WORKER)}",
        )
    version = packages[0].parent.name.removeprefix("python")
    members = tuple(
        Member(f"lib/python{version}/site-packages/{name}", packages[0] / name, (packages[0] / name).stat().st_size)
        for name in sorted(_needed_names(packages[0]) if lock is None else _locked_names(packages[0], lock))
    )
    for member in members:
        _check_movable(member)
    return Contents(version, str(base), platform.machine(), members)


def digest(found: Contents) -> str:
    """16 hexadecimal digits that are equal for equal environments, whenever and wherever they were installed."""
    total = hashlib.sha256(f"{FORMAT} {_launcher(found)}".encode())
    for member in found.members:
        with member.path.open("rb") as content:
            total.update(f"{member.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()[:16]


def pack(found: Contents, sink: BinaryIO, progress: Callable[[int, int], None]) -> None:
    """Write the archive, a compressed tar, to `sink`; `progress` hears bytes done and bytes in all, uncompressed."""
    done = 0
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=sink, compresslevel=_QUICK, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name in (PYTHON, PYTHON3):
            _add(archive, name, _launcher(found).encode(), mode=0o755)
        _add(archive, "pyvenv.cfg", _pyvenv(found).encode())
        for member in found.members:
            content = member.path.read_bytes()
            _add(archive, member.name, content)
            if compiled := _compile(member, content):
                _add(archive, *compiled)
            done += member.size_bytes
            progress(done, found.size_bytes)


def pack_file(found: Contents, target: Path, progress: Callable[[int, int], None]) -> int:
    """Write the archive beside `target`, rename it, and return its size; JobError when it cannot be written."""
    draft = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as sink:
            pack(found, sink, progress)
        size_bytes = draft.stat().st_size
        draft.replace(target)
    except OSError as error:
        raise JobError(f"{target} cannot be written ({error})", remedy="name a file in a folder with room") from error
    finally:
        draft.unlink(missing_ok=True)
    return size_bytes


def _needed_names(packages: Path) -> Iterator[str]:
    """Names below `packages` of all that a program needs to run."""
    for path in packages.rglob("*"):
        name = path.relative_to(packages).as_posix()
        if path.is_file() and _is_needed(PurePosixPath(name), _TOOLS):
            yield name


def _locked_names(packages: Path, lock: Path) -> Iterator[str]:
    """The same for what a requirements file names, which wants a test program's part only when it says so."""
    for name in locked_files(packages, lock):
        if _is_needed(PurePosixPath(name), _INSTALLERS) and (packages / name).is_file():
            yield name


def _is_needed(name: PurePosixPath, tools: Collection[str]) -> bool:
    top = name.parts[0]
    project = top.partition("-")[0].partition(".")[0].lower()
    return not (
        project in tools
        or top == "distutils-precedence.pth"
        or not _FOLDERS.isdisjoint(name.parts[:-1])
        or str(name).startswith(_TEST_DATA)
        or name.suffix in _BUILD_SUFFIXES
        or (top.endswith(".dist-info") and name.name not in _METADATA)
    )


def _check_movable(member: Member) -> None:
    """Refuse what points to its place on this machine: an editable installation."""
    if member.path.suffix != ".pth" or "/" in member.name.rpartition("site-packages/")[2]:
        return
    if any(line.startswith(("/", "import __editable__")) for line in member.path.read_text().splitlines()):
        raise JobError(
            f"{member.path} makes the environment depend on a folder of this machine",
            remedy="install that package without --editable",
        )


def _launcher(found: Contents) -> str:
    return _LAUNCHER.format(
        version=found.version, base=found.base, tag=found.version.replace(".", ""), machine=found.machine
    )


def _pyvenv(found: Contents) -> str:
    # Where `home` does not exist, Python goes by the place that it was built for.
    home = Path(found.base).parent
    return f"home = {home}\ninclude-system-site-packages = false\nversion = {found.version}\n"


def _compile(member: Member, source: bytes) -> tuple[str, bytes] | None:
    """Name and content of a module's compiled form, so that no process has to compile it; None when there is none.

    The times of unpacked files mean nothing, so it is made to be taken without a look at the source.
    """
    if member.path.suffix != ".py":
        return None
    for path in member.path.parent.glob(f"__pycache__/{member.path.stem}.cpython-*.pyc"):
        if path.name.count(".") == 2 and (compiled := _timeless(path.read_bytes(), member.path, source)):
            folder, _, _ = member.name.rpartition("/")
            return f"{folder}/__pycache__/{path.name}", compiled
    return None


def _timeless(compiled: bytes, source_path: Path, source: bytes) -> bytes | None:
    """The compiled form with the source's hash in place of its time; None when it belongs to another source."""
    magic, flags, modified_at, size = struct.unpack("<4sIII", compiled[:16])
    if flags == 0 and (modified_at != int(source_path.stat().st_mtime) & 0xFFFFFFFF or size != len(source)):
        return None
    return struct.pack("<4sI", magic, _UNCHECKED) + source_hash(source) + compiled[16:]


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
