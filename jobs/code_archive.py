"""The archive of our own code that travels with each job, with its bytecode, so that nodes need not compile it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import stat
import zipfile
from collections.abc import Iterable, Sequence
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
UNCHECKED = 1
"""Flags of bytecode that stands beside its source in the archive: it needs no comparison."""


def code_zip() -> bytes:
    """A zip to be put on PYTHONPATH; the same sources make the same bytes.

    It is kept in the user's cache. Where nothing can be kept, it has no bytecode: making that would take seconds.
    """
    sources = _find_sources()
    kept = _place(sources)
    if kept is None:
        return make_zip(sources, has_bytecode=False)
    if _is_trusted(kept):
        with suppress(OSError):
            return kept.read_bytes()
    try:
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=kept.parent, prefix=".code-") as file:
            content = make_zip(sources, has_bytecode=True)
            file.write(content)
            file.flush()
            os.link(file.name, kept)
    except FileExistsError:  # somebody was faster, or what is there is not to be trusted
        return content
    except OSError:
        return make_zip(sources, has_bytecode=False)
    _remove_older(kept)
    return content


def make_zip(sources: Iterable[Path], has_bytecode: bool) -> bytes:
    """All of these files, which lie below ROOT; bytecode is of the Python that runs, and others use the sources."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sources:
            name, content = str(source.relative_to(ROOT)), source.read_bytes()
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
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED.to_bytes(4, "little")
    return head + importlib.util.source_hash(source) + marshal.dumps(code)


def _find_sources() -> list[Path]:
    found = {ROOT / name for name in FILES}
    for room in ROOMS:
        found |= {*(ROOT / room).rglob("*.py"), *(ROOT / room).rglob("*.j2")}
    left_out = tuple(f"{ROOT / room}/" for room in LEFT_OUT)
    return sorted(one for one in found if not str(one).startswith(left_out))


def _place(sources: Sequence[Path]) -> Path | None:
    """Where the archive is or would be, if anywhere; another one as soon as Python or a source is another."""
    known = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for source in sources:
        found = source.stat()
        known.update(f"{source}:{found.st_size}:{found.st_mtime_ns}\n".encode())
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:  # this user has no home
        return None
    return cache / "nodewise" / f"code-{known.hexdigest()[:16]}.zip"


def _is_trusted(archive: Path) -> bool:
    """Whether it is there, and nobody but root and this user can have written it."""
    try:
        found = archive.lstat()
    except OSError:
        return False
    is_own = found.st_uid in (0, os.getuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(found.st_mode) and is_own


def _remove_older(kept: Path) -> None:
    """Let go of all but the newest; others may do so at the same time."""
    with suppress(OSError):
        found = sorted(kept.parent.glob("code-*.zip"), key=lambda one: one.stat().st_mtime, reverse=True)
        for one in found[MOST_KEPT:]:
            one.unlink(missing_ok=True)
