"""Puts what is made of packages or of an image into HDFS as an environment; what is there already is not made again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from environments.errors import EnvError
from environments.manifest import Manifest, Package, Part, Requires
from environments.squash import squash
from environments.store import PART, Store

ROOM = "it needs room in the temporary folder, which TMPDIR names"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Content:
    """What one part of an environment is made of, on this machine.

    tree         the folder that programs see `at` theirs
    python       the version of Python whose packages are in it, "" for none
    files        of `packages`, which are kept for locks
    variables    of the environment of programs
    """

    tree: Path
    at: str
    architecture: str
    python: str = ""
    packages: Sequence[Package] = ()
    files: Sequence[Path] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


class Asked(Protocol):
    """What somebody asks for; nodes must also have what it `requires`."""

    @property
    def name(self) -> str:
        """Of the environment."""

    @property
    def version(self) -> str:
        """What shall mean it."""

    @property
    def requires(self) -> Requires:
        """The architecture is that of the content."""

    @property
    def digest(self) -> str:
        """Equal for what makes equal environments."""

    def lay_out(self, store: Store, folder: Path, say: Say) -> Sequence[Content]:
        """Make the content of each part below a folder of its own; EnvError when that cannot be."""


@dataclass(frozen=True)
class Made:
    """`is_new` is false when it was there already."""

    manifest: Manifest
    is_new: bool


def make(store: Store, asked: Asked, say: Say) -> Made:
    """EnvError when it cannot be made; then nothing of it is known by its name."""
    digest = asked.digest
    if known := store.find_asked(asked.name, digest):
        store.point(known)
        return Made(known, is_new=False)
    try:
        with TemporaryDirectory(prefix="nodewise-env-") as folder:
            manifest = _make(store, asked, Path(folder), say)
    except OSError as error:
        raise EnvError(f"{asked.name}@{asked.version} cannot be made here ({error})", remedy=ROOM) from error
    store.add(manifest, digest)
    return Made(manifest, is_new=True)


def find_kept(store: Store, hashes: Collection[str], folder: Path) -> Sequence[Path]:
    """The files of packages with these hashes, out of HDFS, in a new folder; none where one of them is not there."""
    packages = {one.sha256: one for made in store.list_all() for one in made.manifest.packages if one.sha256 in hashes}
    if packages.keys() != set(hashes):
        return ()
    folder.mkdir()
    for sha256, package in packages.items():
        store.get(sha256, package.kind, folder / package.file)
    return sorted(folder.iterdir())


def _make(store: Store, asked: Asked, folder: Path, say: Say) -> Manifest:
    contents = asked.lay_out(store, folder, say)
    files = [folder / f"part{number}.sqfs" for number in range(len(contents))]
    say("compressing")
    for content, file in zip(contents, files, strict=True):
        squash(content.tree, file)
    say(f"storing {sum(file.stat().st_size for file in files):,} bytes")
    for package in (file for content in contents for file in content.files):
        store.put(package, package.suffix.removeprefix("."))
    last = contents[-1]
    return Manifest(
        asked.name,
        asked.version,
        last.python,
        [
            Part(content.at, store.put(file, PART), file.stat().st_size)
            for content, file in zip(contents, files, strict=True)
        ],
        replace(asked.requires, architecture=last.architecture),
        sorted((package for content in contents for package in content.packages), key=lambda one: one.name),
        {name: value for content in contents for name, value in content.variables.items()},
    )
