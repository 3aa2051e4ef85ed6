"""Locks of Debian's packages: one file of each by its name, architecture, version and SHA-256.

    hello:amd64=2.10-3 --hash=sha256:...

The files are named NAME_VERSION_ARCHITECTURE.deb by apt, with %3a for a colon in the version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from environments.errors import EnvError
from environments.file_hash import hash_file
from environments.manifest import Package

_LINE = re.compile(r"(?P<word>[a-z0-9][a-z0-9+.-]+:[a-z0-9-]+=[^\s=]+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")


def split(text: str) -> tuple[str, str]:
    """The lines of Debian's packages, and the others, each with empty lines for what is not among them."""
    lines = [(one, "\n") if _LINE.fullmatch(one.strip()) else ("\n", one) for one in text.splitlines(keepends=True)]
    return "".join(one for one, _ in lines), "".join(other for _, other in lines)


def read(text: str) -> dict[str, str]:
    """The hash of each package, by what apt finds it by; EnvError names the first line that is not of a lock."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not (match := _LINE.fullmatch(line.strip())):
            raise EnvError(
                f"line {number} of the lock does not name a package of Debian", remedy="take an unchanged one"
            )
        found[match["word"]] = match["sha256"]
    return found


def write(packages: Sequence[Package]) -> str:
    """The lock."""
    return "".join(f"{one.name}:{_split(one.file)[2]}={one.version} --hash=sha256:{one.sha256}\n" for one in packages)


def package_of(file: Path) -> Package:
    """What a file holds, by its name."""
    name, version, _ = _split(file.name)
    return Package(name, version, file.name, hash_file(file))


def _split(name: str) -> list[str]:
    """Name, version and architecture.

    >>> _split("zlib1g_1%3a1.2.13.dfsg-1_amd64.deb")
    ['zlib1g', '1:1.2.13.dfsg-1', 'amd64']
    """
    return unquote(name).removesuffix(".deb").split("_")
