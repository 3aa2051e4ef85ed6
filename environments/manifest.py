"""What an environment is made of: parts by their hashes, what they need of a node, and the packages in them.

{"format": 1, "name": "torch", "version": "1.13", "python": "3.11",
 "parts": [{"at": "/opt/env", "sha256": "...", "size_bytes": 243000000}],
 "requires": {"architecture": "x86_64", "cpu_flags": ["avx2"], "cuda": "12.1", "driver": "525.60"},
 "packages": [{"name": "torch", "version": "1.13", "file": "torch-1.13-....whl", "sha256": "..."}],
 "variables": {"PATH": "/usr/local/bin:/usr/bin"}}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import PurePosixPath
from typing import Any

from environments.errors import EnvError
from environments.reference import Reference

FORMAT = 1
WHEEL, DEB = "whl", "deb"
"""Kinds of packages."""
_FILE = re.compile(r"[^./][^/]*")
_UPDATE = "update nodewise on this machine"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """A squashfs file, and the folder at which a program sees it; without one at `/`, it sees the node's files."""

    at: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Package:
    """A file that was installed."""

    name: str
    version: str
    file: str
    sha256: str

    @property
    def kind(self) -> str:
        """What it is as a blob: of Python, or of Debian."""
        return DEB if self.file.endswith(f".{DEB}") else WHEEL


@dataclass(frozen=True)
class Requires:
    """What a node must have; empty fields ask for nothing.

    cuda     version of CUDA that the programs were built with: the node needs a card, and a driver for it
    driver   the oldest driver of NVIDIA, where it must be newer than `cuda` says
    """

    architecture: str = ""
    cpu_flags: Sequence[str] = ()
    cuda: str = ""
    driver: str = ""


_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")


def needs(cuda: str, driver: str, cpu_flags: Sequence[str]) -> Requires:
    """What people say that nodes must have; EnvError for versions that are not numbers with dots between."""
    for name, version in (("CUDA", cuda), ("the driver", driver)):
        if version and not _VERSION.fullmatch(version):
            raise EnvError(f"{version!r} is not a version of {name}", remedy="write numbers, such as 12.1")
    return Requires(cpu_flags=sorted(set(cpu_flags)), cuda=cuda, driver=driver)


@dataclass(frozen=True)
class Manifest:
    """One environment; equal manifests have equal digests. Its programs get `variables`, which most have none of."""

    name: str
    version: str
    python: str
    parts: Sequence[Part]
    requires: Requires = field(default_factory=Requires)
    packages: Sequence[Package] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of it as it is stored."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Of all parts: what a node without any of them has to fetch."""
        return sum(part.size_bytes for part in self.parts)

    def to_bytes(self) -> bytes:
        """As it is stored."""
        body = {"format": FORMAT, **asdict(self)}
        if not self.variables:
            del body["variables"]  # those that were made before there were any keep their digest
        return json.dumps(body, sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> Manifest:
        """Inverse of `to_bytes`; EnvError names the file at `where`, and says what is wrong with it."""
        try:
            body = json.loads(content)
            _check_age(body, where)
            del body["format"]
            parts = [Part(**one) for one in body.pop("parts")]
            packages = [Package(**one) for one in body.pop("packages")]
            manifest = cls(parts=parts, packages=packages, requires=_requires(body.pop("requires")), **body)
            _check(manifest, where)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EnvError(
                f"{where} is not a manifest of an environment ({type(error).__name__}: {error})",
                remedy="make the environment again",
            ) from None
        return manifest


def _check_age(body: Mapping[str, Any], where: str) -> None:
    """EnvError for what a newer nodewise has written, as its format or its fields tell."""
    number, newest = body["format"], f"this nodewise reads format {FORMAT}"
    if not isinstance(number, int) or number < FORMAT:
        raise ValueError(f"there is no format {number!r}")
    if number > FORMAT:
        raise EnvError(f"{where} was written by a newer nodewise in format {number}, and {newest}", remedy=_UPDATE)
    if unknown := ", ".join(sorted(_find_unknown(body))):
        raise EnvError(f"{where} was written by a newer nodewise: it has {unknown}, and {newest} without", _UPDATE)


def _find_unknown(body: Mapping[str, Any]) -> set[str]:
    """Names of fields that this nodewise does not know."""
    forms = [(Part, one) for one in body["parts"]] + [(Package, one) for one in body["packages"]]
    found = set(body) - {"format", *(one.name for one in fields(Manifest))}
    for form, one in [*forms, (Requires, body["requires"])]:
        found |= set(one) - {known.name for known in fields(form)}
    return found


def _requires(body: Mapping[str, Any]) -> Requires:
    return Requires(**{**body, "cpu_flags": list(body["cpu_flags"])})


def _check(manifest: Manifest, where: str) -> None:
    """EnvError for what a box could not lay out, or should not."""
    Reference.parse(f"{manifest.name}@{manifest.version}")
    roots = [part.at for part in manifest.parts]
    if not roots or len(set(roots)) < len(roots):
        raise EnvError(f"{where} has no part, or two for one folder", remedy="make the environment again")
    for part in manifest.parts:
        at = PurePosixPath(part.at)
        if not at.is_absolute() or ".." in at.parts or str(at) != part.at or not _SHA256.fullmatch(part.sha256):
            raise EnvError(f"{where} has a part at {part.at!r} that is none", remedy="make the environment again")
    for package in manifest.packages:
        if not _FILE.fullmatch(package.file) or not _SHA256.fullmatch(package.sha256):
            raise EnvError(f"{where} has a package {package.file!r} that is not a file", "make the environment again")
