"""Environments in HDFS: files named by their hashes, and manifests by name and digest; everybody may read them.

blobs/sha256-HEX.sqfs, blobs/sha256-HEX.whl      parts and packages
manifests/NAME/DIGEST.json                       what an environment is made of
manifests/NAME/VERSION.version                   the digest that this version means now
manifests/NAME/HEX.asked                         the digest of what was made, by the hash of what was asked for
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from environments.errors import EnvError
from environments.manifest import Manifest
from environments.reference import Reference, version_key
from hadoop.client.append_stream import chunks
from hadoop.client.filesystem import SPREAD_BYTES, FileSystem
from hadoop.errors import HadoopError

FOLDER = "/nodewise/env"
PART, WHEEL = "sqfs", "whl"
"""What blobs are."""
_PIECE_BYTES = 1 << 20
_SUFFIX, _ASKED, _MANIFEST = ".version", ".asked", ".json"

Progress = Callable[[int], None]
"""Hears how many bytes are done."""


class Known(NamedTuple):
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

    def put(self, file: Path, kind: str, progress: Progress = lambda _: None) -> str:
        """Bring a file, unless it is there; its hash."""
        with file.open("rb") as content:
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
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

    def made(self, name: str, asked: str) -> Manifest | None:
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
        self._filesystem.write(self._path(manifest.name, manifest.digest), manifest.to_bytes())
        self._filesystem.write(f"{folder}/{asked}{_ASKED}", manifest.digest.encode())
        self.point(manifest)

    def point(self, manifest: Manifest) -> None:
        """Let its version mean this manifest from now on, which is there."""
        if self.versions(manifest.name).get(manifest.version) != manifest.digest:
            pointer = f"{self._folder}/manifests/{manifest.name}/{manifest.version}{_SUFFIX}"
            self._filesystem.write(pointer, manifest.digest.encode())

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
        folder = f"{self._folder}/manifests/{name}"
        names = [one.name for one in self._filesystem.entries(folder) if one.name.endswith(_SUFFIX)]
        return {one.removesuffix(_SUFFIX): self._filesystem.read(f"{folder}/{one}").decode() for one in names}

    def read(self, name: str, digest: str) -> Manifest:
        """A manifest by its digest; EnvError when its content has another."""
        path = self._path(name, digest)
        content = self._filesystem.read(path)
        if hashlib.sha256(content).hexdigest() != digest:
            raise EnvError(f"{path} was changed after it was written", remedy="make the environment again")
        return Manifest.from_bytes(content, path)

    def known(self) -> list[Known]:
        """Each version of each name."""
        found = []
        for name in (one.name for one in self._filesystem.entries(f"{self._folder}/manifests")):
            times = {one.name: one.modified_at for one in self._filesystem.entries(f"{self._folder}/manifests/{name}")}
            for version, digest in sorted(self.versions(name).items(), key=lambda one: version_key(one[0])):
                found.append(Known(version, self.read(name, digest), times[f"{version}{_SUFFIX}"]))
        return found

    def find_damaged(self, manifest: Manifest, progress: Progress = lambda _: None) -> list[str]:
        """Blobs of it that are missing or have another content; reads all of them."""
        return [path for path in self._blobs(manifest) if not self._is_whole(path, progress)]

    def remove(self, manifest: Manifest) -> list[str]:
        """Take it out, with all that its name has meant before, and the blobs that no other has; the paths of these."""
        name, folder = manifest.name, f"{self._folder}/manifests/{manifest.name}"
        for version, digest in self.versions(name).items():
            if digest == manifest.digest:
                self._filesystem.delete(f"{folder}/{version}{_SUFFIX}")
        unneeded = {path for one in self._take_out_unknown(name) for path in self._blobs(one)}
        unneeded -= {path for other in self.known() for path in self._blobs(other.manifest)}
        for path in sorted(unneeded):
            self._filesystem.delete(path)
        return sorted(unneeded)

    def _take_out_unknown(self, name: str) -> list[Manifest]:
        """Delete the manifests of a name that no version means, and what was asked for them."""
        folder, known = f"{self._folder}/manifests/{name}", set(self.versions(name).values())
        names = [one.name for one in self._filesystem.entries(folder)]
        digests = {one.removesuffix(_MANIFEST) for one in names if one.endswith(_MANIFEST)} - known
        found = []
        for digest in sorted(digests):
            with suppress(EnvError):  # of one that is damaged, nobody knows the blobs
                found.append(self.read(name, digest))
            self._filesystem.delete(self._path(name, digest))
        for one in names:
            if one.endswith(_ASKED) and self._filesystem.read(f"{folder}/{one}").decode() in digests:
                self._filesystem.delete(f"{folder}/{one}")
        return found

    def _path(self, name: str, digest: str) -> str:
        return f"{self._folder}/manifests/{name}/{digest}{_MANIFEST}"

    def _blobs(self, manifest: Manifest) -> list[str]:
        return [self.blob(part.sha256, PART) for part in manifest.parts] + [
            self.blob(package.sha256, WHEEL) for package in manifest.packages
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
        draft = f"{path}.{secrets.token_hex(4)}"
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
