"""Archives of the classes that a kind of process loads, with which Java starts others of the kind faster.

Java calls this class-data sharing. An archive is made of a process that runs, once for each kind and set of jars. Java
checks that an archive fits its jars, and starts without one that does not.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

FOLDER = "class-archives"
"""Beside the folder of the jars, for all who use these."""
MAKE_SECONDS = 120.0
RECORD = "-XX:+RecordDynamicDumpInfo"
"""What Java is told so that an archive can be made of it."""
PROPERTY = "nodewise.class.archive"
"""Java's property that says where the archive of a process is to lie that notes its classes."""
_DIGEST_LETTERS = 16
_ANY_DIGEST = "[0-9a-f]" * _DIGEST_LETTERS
"""A pattern: a star would also fit kinds whose names begin alike."""
_QUIET = "-Xlog:cds=off", "-Xlog:cds+dynamic=off"
"""Say nothing of an archive that does not fit."""
_SETTINGS = {
    *("capacity-scheduler.xml", "hadoop-policy.xml", "log4j.properties", "node-resources.xml", "resource-types.xml"),
    *("ssl-client.xml", "ssl-server.xml"),
}


def options(kind: str, java: Path, jars: Sequence[Path], notes_classes: bool = True) -> list[str]:
    """What Java is told: to use the archive of this kind of process, or with `notes_classes` to be ready for one.

    Where it is told anything, the class path has to begin with the jars, in this order: Java uses no archive with a
    folder before them. No archive is made of jars that hold settings, which would then come before the cluster's.
    """
    try:
        archive = place(kind, java, jars)
        if _is_trusted(archive):
            return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
        is_wanted = notes_classes and _can_make(archive, java) and not any(map(_has_settings, jars))
    except (OSError, zipfile.BadZipFile):  # Java has its own word for it
        return []
    return [RECORD, f"-D{PROPERTY}={archive}", *_QUIET] if is_wanted else []


def place(kind: str, java: Path, jars: Sequence[Path]) -> Path:
    """Where the archive is or would be; another one as soon as Java or a jar is another."""
    known = hashlib.sha256()
    for file in (java.resolve(), *jars):
        found = file.stat()
        known.update(f"{file}:{found.st_size}:{found.st_mtime_ns}\n".encode())
    return jars[0].parent.parent / FOLDER / f"{kind}-{known.hexdigest()[:_DIGEST_LETTERS]}.jsa"


def noted_for(command_line: Sequence[str]) -> Path | None:
    """Where the archive of a process with this command line is to lie, or None when it does not note its classes."""
    begin = f"-D{PROPERTY}="
    return next((Path(word.removeprefix(begin)) for word in command_line if word.startswith(begin)), None)


def make(java: Path, wanted: Mapping[Path, int], seconds: float = MAKE_SECONDS) -> None:
    """Make archives of processes that run with `options`, by their pids; they stand still for some seconds.

    One that cannot be made in that time is left out: without it processes only start more slowly.
    """
    under_way = []
    for archive, pid in wanted.items():
        if _is_trusted(archive):  # another process was faster
            continue
        with suppress(OSError):
            under_way.append(_Making(java, archive, pid))
    for one in under_way:
        with suppress(OSError):
            one.finish(seconds)


class _Making:
    """One archive, from the moment that its process is asked for it."""

    def __init__(self, java: Path, archive: Path, pid: int) -> None:
        self._archive = archive
        self._kind = archive.name.rpartition("-")[0]
        self._begun = archive.with_name(f".{archive.name}-{pid}")
        archive.parent.mkdir(mode=0o755, exist_ok=True)
        self._asking = subprocess.Popen(
            [str(_jcmd(java)), str(pid), "VM.cds", "dynamic_dump", str(self._begun)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def finish(self, seconds: float) -> None:
        """Put it in place once it is whole, and those of other jars or of another Java away."""
        try:
            is_made = self._asking.wait(seconds) == 0 and self._begun.exists()
        except subprocess.TimeoutExpired:
            self._asking.kill()
            self._asking.wait()
            is_made = False
        if is_made:
            self._begun.replace(self._archive)
            self._remove(f"{self._kind}-{_ANY_DIGEST}.jsa", than=0.0)
        self._begun.unlink(missing_ok=True)
        self._remove(f".{self._kind}-{_ANY_DIGEST}.jsa-*", than=MAKE_SECONDS)

    def _remove(self, pattern: str, than: float) -> None:
        """What others have left, older than so many seconds."""
        for other in self._archive.parent.glob(pattern):
            with suppress(FileNotFoundError):
                if other != self._archive and time.time() - other.stat().st_mtime > than:
                    other.unlink()


def _is_trusted(archive: Path) -> bool:
    """Whether it is there, and nobody but root and this user can have written it: it holds code."""
    try:
        found = archive.lstat(), archive.parent.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found[0].st_mode) and all(
        one.st_uid in (0, os.getuid()) and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in found
    )


def _can_make(archive: Path, java: Path) -> bool:
    folder = archive.parent if archive.parent.exists() else archive.parent.parent
    return _jcmd(java).exists() and folder.is_dir() and os.access(folder, os.W_OK)


def _has_settings(jar: Path) -> bool:
    with zipfile.ZipFile(jar) as found:
        return any(name in _SETTINGS or ("/" not in name and name.endswith("-site.xml")) for name in found.namelist())


def _jcmd(java: Path) -> Path:
    """Of a JDK; a mere runtime environment has none."""
    return java.with_name("jcmd")
