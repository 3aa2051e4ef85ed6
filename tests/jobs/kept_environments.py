"""Environments in a folder of this machine in the place of HDFS."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

from environments.manifest import Manifest, Part, Requires
from environments.squash import squash
from environments.store import PART, Store
from hadoop.client.filesystem import FileSystem


def keep_environment(
    hdfs: FileSystem,
    work: Path,
    parts: Mapping[str, Path],
    version: str = "1",
    requires: Requires | None = None,
    variables: Mapping[str, str] | None = None,
) -> Manifest:
    """Let `words@VERSION` mean these folders, by where programs see them; `work` gets their compressed files."""
    store, found = Store(hdfs), []
    for at, tree in parts.items():
        file = work / "part.sqfs"
        squash(tree, file)
        found.append(Part(at, store.put(file, PART), file.stat().st_size))
    needs = requires or Requires(architecture=platform.machine())
    manifest = Manifest("words", version, "3.11", found, needs, variables=variables or {})
    store.add(manifest, f"asked-{version}")
    return manifest
