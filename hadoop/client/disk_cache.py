"""Keeps snapshots of blocks on disk between commands, as Arrow files that only their owner may read.

It keeps those that were used last, up to a number and a size.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from hadoop.client import arrow_table, snapshots
from hadoop.client.blocks import find_path
from hadoop.client.filesystem import FileSystem
from hadoop.client.listing import Listing, Stamp, Summary
from hadoop.client.snapshots import MAX_AGE_SECONDS, Folder, Snapshot
from hadoop.errors import HadoopError

_KEY = b"nodewise.snapshot"
_FORM = 2
MOST_FILES = 32
MOST_BYTES = 1_000_000_000
DRAFT_SECONDS = 3600.0  # an older draft is one that its writer left behind


def take_current(
    filesystem: FileSystem, folder: str, directory: Path, fresh: bool = False, max_age: float = MAX_AGE_SECONDS
) -> Snapshot:
    """Take a snapshot of a folder, helped by the one that an earlier command kept in `directory`; `fresh` lists all.

    HadoopError when there is no such path, or `directory` cannot be written.
    """
    path = find_path(filesystem, folder)
    file = directory / f"{_name(filesystem, path)}.arrow"
    before = None if fresh else load(file)
    snapshot = snapshots.take(Listing(filesystem), path, before, max_age)
    if before is None or snapshot.listed_again or snapshot.summary != before.summary:
        save(snapshot, file)
    else:
        with suppress(OSError):
            os.utime(file)
    tidy(directory)
    return snapshot


def load(file: Path) -> Snapshot | None:
    """Read a kept snapshot; None when there is none or the file is damaged, so that it is taken anew."""
    try:
        with pa.memory_map(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
        return _snapshot(table)
    except (OSError, pa.ArrowException, ValueError, LookupError, TypeError):
        return None


def save(snapshot: Snapshot, file: Path) -> None:
    """Write a snapshot; a reader sees the old one or the new one, never a part. HadoopError when writing fails."""
    draft = file.with_suffix(f".{os.getpid()}")
    table = snapshot.table.replace_schema_metadata({_KEY: json.dumps(_facts(snapshot)).encode()})
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise HadoopError(
            f"{error.filename or file}: {error.strerror or error}", remedy="mend that or use another --home"
        ) from error


def tidy(directory: Path, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> None:
    """Delete the least recently used snapshots beyond a number and a size, and the drafts that writers left behind.

    The one used last stays, however large. A program that reads a deleted one can finish.
    """
    newest = sorted(((file, status) for file in directory.iterdir() if (status := _status(file))), key=_age)
    kept_files = kept_bytes = 0
    for file, status in newest:
        if file.suffix != ".arrow":
            spare = time.time() - status.st_mtime > DRAFT_SECONDS
        else:
            kept_files, kept_bytes = kept_files + 1, kept_bytes + status.st_size
            spare = kept_files > 1 and (kept_files > most_files or kept_bytes > most_bytes)
        if spare:
            with suppress(OSError):
                file.unlink()


def _status(file: Path) -> os.stat_result | None:
    """The status of a file; None when another command has just deleted it."""
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def _age(file: tuple[Path, os.stat_result]) -> int:
    return -file[1].st_mtime_ns


def _name(filesystem: FileSystem, path: str) -> str:
    """The file's name, one for each cluster, user (users may see different files) and path."""
    key = f"{filesystem.java.getUri()}\0{filesystem.home()}\0{path}"
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "form": _FORM,
        "path": snapshot.path,
        "listed_at": snapshot.listed_at,
        "summary": snapshot.summary,
        "racks": dict(snapshot.racks),
        "folders": dict(snapshot.folders),
    }


def _snapshot(table: pa.Table) -> Snapshot:
    facts = json.loads(table.schema.metadata[_KEY])
    table = table.replace_schema_metadata(None)
    folders = {path: _folder(row) for path, row in facts["folders"].items()}
    if facts["form"] != _FORM or table.schema != arrow_table.SCHEMA:
        raise ValueError("written by another version")
    if table.num_rows != sum(folder.rows for folder in folders.values()):
        raise ValueError("rows are missing")
    return Snapshot(facts["path"], facts["listed_at"], Summary(*facts["summary"]), facts["racks"], folders, table)


def _folder(row: list[Any]) -> Folder:
    stamp, digest, files, size_bytes, space_bytes, rows, folders, settled = row
    return Folder(Stamp(*stamp), digest, files, size_bytes, space_bytes, rows, tuple(folders), settled)
