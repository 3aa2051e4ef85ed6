"""Environments in HDFS: files named by their hashes, and manifests by name and digest; everybody may read them.

blobs/sha256-HEX.sqfs, .whl, .deb                parts and packages
manifests/NAME/DIGEST.json                       what an environment is made of
manifests/NAME/VERSION.version                   the digest that this version means now
manifests/NAME/HEX.asked                         the digest of what was made, by the hash of what was asked for
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from environments.errors import EnvError
from environments.file_hash import hash_file
from environments.manifest import Manifest
from environments.reference import Reference, version_key
from environments.remembered import Remembered
from hadoop.client.append_stream import chunks
from hadoop.client.drafts import clear_old
from hadoop.client.filesystem import SPREAD_BYTES, FileSystem, draft_of
from hadoop.errors import HadoopError

FOLDER = "/nodewise/env"
PART = "sqfs"
"""The kind of a blob that is mounted; others are those of packages."""
_PIECE_BYTES = 1 << 20
_SUFFIX, _ASKED, _MANIFEST = ".version", ".asked", ".json"

_manifests = Remembered[str, Manifest](256)
"""By digest: another content has another."""
_pointers = Remembered[tuple[str, float], str](1024)
"""By path and the time of its last change."""

Progress = Callable[[int], None]
"""Hears how many bytes are done."""


class Meaning(NamedTuple):
    """A version, what it means now, and since when (Unix seconds)."""

    version: str
    manifest: Manifest
    made_at: float


class Store:
    """The environments below a folder of HDFS; every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem, folder: str = FOLDER) -> None:
        self._filesystem = filesystem
        self._folder = folder

    def blob(self, sha256: str, kind: str) -> str:
        """The path of a blob, which may not be there."""
        return f"{self._folder}/blobs/sha256-{sha256}.{kind}"

    @staticmethod
    def sha256_of(path: str) -> str:
        """The hash in the path of a blob.

        >>> Store.sha256_of("/nodewise/env/blobs/sha256-ca862998cc7fbe74ffff.sqfs")
        'ca862998cc7fbe74ffff'
        """
        return path.rpartition("/sha256-")[2].partition(".")[0]

    def put(self, file: Path, kind: str, progress: Progress = lambda _: None) -> str:
        """Bring a file, unless it is there; its hash."""
        sha256 = hash_file(file)
        path = self.blob(sha256, kind)
        if not self._filesystem.exists(path):
            self._filesystem.make_folder(f"{self._folder}/blobs", mode=0o755)
            self._write(path, file, progress)
        return sha256

    def get(self, sha256: str, kind: str, target: Path) -> None:
        """Bring a blob to this machine; EnvError when its content has another hash."""
        path, found = self.blob(sha256, kind), hashlib.sha256()
        with target.open("wb") as file:
            for piece in chunks(self._filesystem, path):
                found.update(piece)
                file.write(piece)
        if found.hexdigest() != sha256:
            raise EnvError(f"{path} is damaged", remedy="make the environment again, after `nodewise env rm`")

    def find_asked(self, name: str, asked: str) -> Manifest | None:
        """What was made by the same request, as long as all of it is there."""
        pointer = f"{self._folder}/manifests/{name}/{asked}{_ASKED}"
        if not self._filesystem.exists(pointer):
            return None
        digest = self._filesystem.read(pointer).decode()
        if not self._filesystem.exists(self._path(name, digest)):
            return None
        manifest = self.read(name, digest)
        return manifest if all(map(self._filesystem.exists, self._blobs(manifest))) else None

    def add(self, manifest: Manifest, asked: str) -> None:
        """Let a version mean this manifest, whose blobs are there."""
        folder = f"{self._folder}/manifests/{manifest.name}"
        for missing in (path for path in self._blobs(manifest) if not self._filesystem.exists(path)):
            raise EnvError(f"{missing} is not in HDFS", remedy="make the environment again")
        self._filesystem.make_folder(folder, mode=0o755)
        self._filesystem.exchange(self._path(manifest.name, manifest.digest), manifest.to_bytes())
        self._filesystem.exchange(f"{folder}/{asked}{_ASKED}", manifest.digest.encode())
        self.point(manifest)
        self._clear(manifest.name)

    def point(self, manifest: Manifest) -> None:
        """Let its version mean this manifest from now on, which is there."""
        if self.versions(manifest.name).get(manifest.version) != manifest.digest:
            pointer = f"{self._folder}/manifests/{manifest.name}/{manifest.version}{_SUFFIX}"
            self._filesystem.exchange(pointer, manifest.digest.encode())

    def find(self, reference: Reference) -> Manifest:
        """What it means now; EnvError when there is no such name or version."""
        known = self.versions(reference.name)
        if not known:
            raise EnvError(f"there is no environment {reference.name}", remedy="`nodewise env list` shows all")
        version = reference.version or max(known, key=version_key)
        if version not in known:
            names = ", ".join(sorted(known, key=version_key))
            raise EnvError(f"there is no {reference}", remedy=f"take one of {names}, or make it: `nodewise env make`")
        return self.read(reference.name, known[version])

    def versions(self, name: str) -> dict[str, str]:
        """The digest that each version of an environment means."""
        return {version: digest for version, (digest, _) in self._meant(name).items()}

    def read(self, name: str, digest: str) -> Manifest:
        """A manifest by its digest; EnvError when its content has another."""
        return _manifests.get(digest, lambda: self._read(self._path(name, digest), digest))

    def manifests(self, name: str) -> list[Manifest]:
        """What each version of a name means."""
        return [self.read(name, digest) for digest in self.versions(name).values()]

    def list_all(self) -> list[Meaning]:
        """Each version of each name."""
        found = []
        for name in (one.name for one in self._filesystem.entries(f"{self._folder}/manifests")):
            for version, (digest, made_at) in sorted(self._meant(name).items(), key=lambda one: version_key(one[0])):
                found.append(Meaning(version, self.read(name, digest), made_at))
        return found

    def _meant(self, name: str) -> dict[str, tuple[str, float]]:
        """By version, the digest and since when it is meant."""
        folder, found = f"{self._folder}/manifests/{name}", {}
        for one in self._filesystem.entries(folder):
            if one.name.endswith(_SUFFIX):
                path = f"{folder}/{one.name}"
                digest = _pointers.get((path, one.modified_at), partial(self._read_pointer, path))
                found[one.name.removesuffix(_SUFFIX)] = (digest, one.modified_at)
        return found

    def _read_pointer(self, path: str) -> str:
        return self._filesystem.read(path).decode()

    def _read(self, path: str, digest: str) -> Manifest:
        content = self._filesystem.read(path)
        if hashlib.sha256(content).hexdigest() != digest:
            raise EnvError(f"{path} was changed after it was written", remedy="make the environment again")
        return Manifest.from_bytes(content, path)

    def find_damaged(self, manifest: Manifest, progress: Progress = lambda _: None) -> list[str]:
        """Blobs of it that are missing or have another content; reads all of them."""
        return [path for path in self._blobs(manifest) if not self._is_whole(path, progress)]

    def find_unneeded(self, manifest: Manifest) -> list[str]:
        """The blobs that would go with it: of all that its name has meant before, those that no other has."""
        folder = f"{self._folder}/manifests/{manifest.name}"
        meant = set(self.versions(manifest.name).values()) - {manifest.digest}
        found: set[str] = set()
        for digest in self._digests(folder) - meant:
            with suppress(EnvError):  # of one that is damaged, nobody knows the blobs
                found.update(self._blobs(self.read(manifest.name, digest)))
        others = [one.manifest for one in self.list_all() if one.manifest.digest != manifest.digest]
        return sorted(found - {path for other in others for path in self._blobs(other)})

    def remove(self, manifest: Manifest) -> list[str]:
        """Take it out, with all that its name has meant before, and the blobs that no other has; the paths of these."""
        name, folder = manifest.name, f"{self._folder}/manifests/{manifest.name}"
        unneeded = self.find_unneeded(manifest)
        for version, digest in self.versions(name).items():
            if digest == manifest.digest:
                self._filesystem.delete(f"{folder}/{version}{_SUFFIX}")
        gone = self._digests(folder) - set(self.versions(name).values())
        for one in (one.name for one in self._filesystem.entries(folder)):
            path = f"{folder}/{one}"
            if one.endswith(_ASKED) and self._filesystem.read(path).decode() in gone:
                self._filesystem.delete(path)
        for path in [*(self._path(name, digest) for digest in sorted(gone)), *unneeded]:
            self._filesystem.delete(path)
        self._clear(name)
        return unneeded

    def _clear(self, name: str) -> None:
        """Delete what somebody who was killed has left half written."""
        for folder in (f"{self._folder}/blobs", f"{self._folder}/manifests/{name}"):
            clear_old(self._filesystem, folder)

    def _digests(self, folder: str) -> set[str]:
        """Of the manifests in the folder of a name, also of those that no version means."""
        names = [one.name for one in self._filesystem.entries(folder)]
        return {one.removesuffix(_MANIFEST) for one in names if one.endswith(_MANIFEST)}

    def _path(self, name: str, digest: str) -> str:
        return f"{self._folder}/manifests/{name}/{digest}{_MANIFEST}"

    def _blobs(self, manifest: Manifest) -> list[str]:
        return [self.blob(part.sha256, PART) for part in manifest.parts] + [
            self.blob(package.sha256, package.kind) for package in manifest.packages
        ]

    def _is_whole(self, path: str, progress: Progress) -> bool:
        found = hashlib.sha256()
        try:
            for piece in chunks(self._filesystem, path):
                found.update(piece)
                progress(len(piece))
        except HadoopError:
            return False
        return found.hexdigest() in path

    def _write(self, path: str, file: Path, progress: Progress) -> None:
        """Beside the final name, so that nobody ever sees half of it."""
        draft = draft_of(path)
        try:
            with self._filesystem.open_writer(draft, block_bytes=SPREAD_BYTES) as write, file.open("rb") as content:
                while piece := content.read(_PIECE_BYTES):
                    write(piece)
                    progress(len(piece))
            self._filesystem.rename(draft, path)
        except BaseException as error:
            with suppress(HadoopError):
                self._filesystem.delete(draft)
            if not (isinstance(error, HadoopError) and self._filesystem.exists(path)):  # else another has brought it
                raise
