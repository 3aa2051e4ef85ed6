"""The archive of our own code that travels with each job, with its bytecode, so that nodes need not compile it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import stat
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from hadoop.installation import ROOT

ROOMS = ("infosvc/wire", "locality", "hadoop", "boxes", "environments", "learning", "jobs")
"""What the application master and the workers import."""
LEFT_OUT = ("hadoop/local", "jobs/commands", "jobs/dashboard", "jobs/submitter")
"""What commands and the service alone import."""
FILES = ("infosvc/__init__.py", "nodewise/__init__.py", "nodewise/learning.py")
"""Modules of other rooms: the last is what a program that trains imports."""
MOST_KEPT = 4
"""Archives on this machine: of several installations, or of a Python before."""
BEGUN_SECONDS = 3600.0
"""What somebody began to write so long ago was left."""
UNCHECKED = 1
"""Flags of bytecode that stands beside its source in the archive: it needs no comparison."""


def code_zip() -> bytes:
    """A zip to be put on PYTHONPATH, with the bytecode of this Python.

    It is kept in the user's cache, so that it is made once. Where nothing can be kept, it has the sources alone, from
    which nodes make the bytecode for each process.
    """
    sources = _read_sources()
    folder = _find_folder()
    if folder is None:
        return make_zip(sources, has_bytecode=False)
    kept = folder / f"code-{_digest(sources)}.zip"
    content = _read_own(kept)
    if content is None:
        content = make_zip(sources, has_bytecode=True)
        with suppress(OSError):  # the next job makes it again
            _keep(kept, content)
    return content


def make_zip(sources: Mapping[str, bytes], has_bytecode: bool) -> bytes:
    """All of these files, by name; bytecode is of the Python that runs, and others use the sources."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sources.items():
            _add(archive, name, content)
            if has_bytecode and name.endswith(".py"):
                _add(archive, f"{name}c", _compile(name, content))
    return sink.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def _compile(name: str, source: bytes) -> bytes:
    """A .pyc file, as PEP 552 describes it."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED.to_bytes(4, "little")
    return head + importlib.util.source_hash(source) + marshal.dumps(code)


def _read_sources() -> dict[str, bytes]:
    found = {ROOT / name for name in FILES}
    for room in ROOMS:
        found |= {*(ROOT / room).rglob("*.py"), *(ROOT / room).rglob("*.j2")}
    names = sorted(str(one.relative_to(ROOT)) for one in found)
    left_out = tuple(f"{room}/" for room in LEFT_OUT)
    return {name: (ROOT / name).read_bytes() for name in names if not name.startswith(left_out)}


def _digest(sources: Mapping[str, bytes]) -> str:
    """Another one as soon as Python or a source is another."""
    known = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, content in sources.items():
        known.update(f"{name}:{len(content)}\n".encode())
        known.update(content)
    return known.hexdigest()[:32]


def _find_folder() -> Path | None:
    """Where archives are kept, which nobody but root and this user may change; None where there is no such place."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = (Path(named) if named.startswith("/") else Path("~/.cache").expanduser()) / "nodewise"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_own(folder.lstat()) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # there is something else, or this user has no home
        return None


def _read_own(archive: Path) -> bytes | None:
    """Its content, unless it is not there or others may have written it."""
    try:
        descriptor = os.open(archive, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(found.st_mode) and _is_own(found) else None


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.getuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _keep(kept: Path, content: bytes) -> None:
    """Put it there whole or not at all, and let go of older ones."""
    with NamedTemporaryFile(dir=kept.parent, prefix=".code-", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(kept)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    ages = {one: time.time() - one.stat().st_mtime for one in kept.parent.glob("*code-*")}
    whole = sorted((one for one in ages if not one.name.startswith(".")), key=lambda one: ages[one])
    left = (one for one in ages if one.name.startswith(".") and ages[one] > BEGUN_SECONDS)
    for one in (*whole[MOST_KEPT:], *left):
        one.unlink(missing_ok=True)
