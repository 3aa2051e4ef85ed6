"""The files that go along with a task."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from infosvc.wire.client import InfoClient
from jobs.commands.asking.folder_origin import origin_of
from jobs.commands.asking.folder_tar import pack


def send(client: InfoClient, folder: Path | None) -> dict[str, Any]:
    """What a task says of the files that go along, which the service has then: their SHA-256, and what git knows."""
    if folder is None:
        return {}
    with TemporaryDirectory(prefix="nodewise-task-") as place:
        archive = Path(place) / "files.tar"
        pack(folder, archive)
        return {"files": client.put_files(archive), **asdict(origin_of(folder))}
