"""The archive of our own code that travels with each job, with its bytecode, so that nodes need not compile it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import zipfile
from collections.abc import Mapping

from hadoop.installation import ROOT
from jobs import own_cache

ROOMS = ("infosvc/wire", "locality", "hadoop", "boxes", "environments", "learning", "jobs")
"""What the application master and the workers import."""
LEFT_OUT = ("hadoop/local", "jobs/commands", "jobs/dashboard", "jobs/submitter")
"""What commands and the service alone import."""
FILES = ("infosvc/__init__.py", "nodewise/__init__.py", "nodewise/learning.py")
"""Modules of other rooms: the last is what a program that trains imports."""
UNCHECKED = 1
"""Flags of bytecode that stands beside its source in the archive: it needs no comparison."""


def code_zip() -> bytes:
    """A zip to be put on PYTHONPATH, with the bytecode of this Python.

    It is kept in the user's cache, so that it is made once. Where nothing can be kept, it has the sources alone, from
    which nodes make the bytecode for each process.
    """
    sources = _read_sources()
    if own_cache.find_folder() is None:
        return make_zip(sources, has_bytecode=False)
    name = f"code-{_digest(sources)}.zip"
    content = own_cache.load(name)
    if content is None:
        content = make_zip(sources, has_bytecode=True)
        own_cache.keep(name, content)
    return content


def digest() -> str:
    """Another one as soon as Python or any source is another."""
    return _digest(_read_sources())


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
    known = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, content in sources.items():
        known.update(f"{name}:{len(content)}\n".encode())
        known.update(content)
    return known.hexdigest()[:32]
