"""Lays out an environment of Debian's packages, from their names or from a lock."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from environments.debian import apt, lock
from environments.debian.tree import unpack
from environments.errors import EnvError
from environments.making import Content, Say, find_kept
from environments.manifest import Requires
from environments.store import Store

AT = "/"
RECIPE = 2
"""Raise it when the same packages shall make another environment."""


@dataclass(frozen=True)
class AskedDebian:
    """`packages` as apt reads them, or a lock; nodes must also have what it `requires`."""

    name: str
    version: str
    packages: Sequence[str] = ()
    locked: str = ""
    requires: Requires = field(default_factory=Requires)

    @property
    def digest(self) -> str:
        """Equal for what makes equal environments."""
        what = ["debian", RECIPE, asdict(self)]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def lay_out(self, store: Store, folder: Path, say: Say) -> Sequence[Content]:
        """By apt and dpkg-deb, which run nothing of the packages; EnvError with their words."""
        if self.locked:
            files = _locked(store, lock.read(self.locked), folder)
        else:
            say("finding and fetching packages")
            files = apt.fetch_with_dependencies(self.packages, folder)
        say(f"unpacking {len(files)} packages")
        tree = folder / "tree"
        python = unpack(files, tree)
        packages = [lock.package_of(file) for file in files]
        return [Content(tree, AT, platform.machine(), python, packages, files)]


def _locked(store: Store, hashes: dict[str, str], folder: Path) -> Sequence[Path]:
    """The files of a lock, out of HDFS if all are there, else from where apt finds them."""
    apt.check([*hashes])
    if kept := find_kept(store, set(hashes.values()), folder / "kept"):
        return kept
    files = apt.fetch([*hashes], folder)
    for package in map(lock.package_of, files):
        if package.sha256 not in hashes.values():
            raise EnvError(f"{package.file} has another hash than the lock says", remedy="make a new lock")
    return files
