"""Archives of the classes that a kind of process loads, with which Java starts others of the kind faster.

Java calls this class-data sharing. An archive is made of a process that runs, once for each kind and set of jars. Java
checks that an archive fits its jars, and starts without one that does not.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

FOLDER = "class-archives"
"""Beside the folder of the jars, as all clusters that have these can use them."""
MAKE_SECONDS = 120.0
RECORD = "-XX:+RecordDynamicDumpInfo"
"""What Java is told so that an archive can be made of it."""
_QUIET = "-Xlog:cds=off", "-Xlog:cds+dynamic=off"
"""Say nothing of an archive that does not fit."""


def options(kind: str, java: Path, jars: Sequence[Path]) -> list[str]:
    """What Java is told: to use the archive of this kind of process, or to be ready for one to be made of it.

    Where it is told anything, the class path has to begin with the jars, in this order: Java uses no archive with a
    folder before them. It is told nothing where a jar holds site files, which would then come before the cluster's.
    """
    archive = place(kind, java, jars)
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
    return [RECORD, *_QUIET] if _can_make(archive, java) and not any(map(_has_site_file, jars)) else []


def place(kind: str, java: Path, jars: Sequence[Path]) -> Path:
    """Where the archive is or would be; another one as soon as Java or a jar is another."""
    known = hashlib.sha256()
    for file in (java.resolve(), *jars):
        found = file.stat()
        known.update(f"{file}:{found.st_size}:{found.st_mtime_ns}\n".encode())
    return jars[0].parent.parent / FOLDER / f"{kind}-{known.hexdigest()[:16]}.jsa"


def make(java: Path, wanted: Mapping[Path, int]) -> None:
    """Make archives of processes that run with `options`, by their pids; they stand still for some seconds.

    One that cannot be made is left out: without it processes only start more slowly.
    """
    under_way = []
    for archive, pid in wanted.items():
        with suppress(OSError):
            under_way.append(_Making(java, archive, pid))
    for one in under_way:
        with suppress(OSError):
            one.finish()


class _Making:
    """One archive, from the moment that its process is asked for it."""

    def __init__(self, java: Path, archive: Path, pid: int) -> None:
        self._archive = archive
        self._begun = archive.with_name(f".{archive.name}-{pid}")
        archive.parent.mkdir(exist_ok=True)
        self._asking = subprocess.Popen(
            [str(_jcmd(java)), str(pid), "VM.cds", "dynamic_dump", str(self._begun)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def finish(self) -> None:
        """Put it in place once it is whole, and those of other jars or of another Java away."""
        try:
            is_made = self._asking.wait(MAKE_SECONDS) == 0 and self._begun.exists()
        except subprocess.TimeoutExpired:
            self._asking.kill()
            self._asking.wait()
            is_made = False
        if not is_made:
            self._begun.unlink(missing_ok=True)
            return
        self._begun.replace(self._archive)
        for other in _of_same_kind(self._archive):
            with suppress(FileNotFoundError):
                other.unlink()


def _of_same_kind(archive: Path) -> Iterable[Path]:
    kind = archive.name.rpartition("-")[0]
    return (one for one in archive.parent.glob(f"{kind}-*.jsa") if one != archive)


def _can_make(archive: Path, java: Path) -> bool:
    return _jcmd(java).exists() and os.access(archive.parent.parent, os.W_OK)


def _has_site_file(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as found:
            return any("/" not in name and name.endswith("-site.xml") for name in found.namelist())
    except (OSError, zipfile.BadZipFile):  # Java has its own word for it
        return True


def _jcmd(java: Path) -> Path:
    """Of a JDK; a mere runtime environment has none."""
    return java.with_name("jcmd")
