"""Has apt find versions of packages that go together, and fetch them, as if nothing were installed here.

What apt takes, and from where, is what this machine's settings and lists say; it checks signatures itself. Nothing of
this machine's own packages, of apt's cache or of its state is used or changed: https://manpages.debian.org/apt.conf.5.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from environments.errors import EnvError
from environments.tools import call

SYSTEM = ("?essential", "usr-is-merged")
"""What every Debian has: a shell and the like. The second spares programs that would merge folders with /usr."""
_WORD = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+.](:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?")
_UNKNOWN = re.compile(
    r"Unable to locate package (?P<name>\S+)|Version '(?P<version>\S+)' for '(?P<of>\S+)' was not found"
)
_CONFLICT = re.compile(r"have unmet dependencies: (?P<what>.+?) E: ")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
"""Architectures as Debian calls them; others have the same name."""


def architecture() -> str:
    """That of this machine, as Debian calls it."""
    return _MACHINES.get(platform.machine(), platform.machine())


def check(words: Sequence[str]) -> None:
    """EnvError for a word that is not NAME, NAME=VERSION or NAME:ARCHITECTURE of this machine's architecture."""
    for word in words:
        if not (match := _WORD.fullmatch(word)):
            raise EnvError(f"{word!r} does not name a package of Debian", remedy="write NAME, or NAME=VERSION")
        if match[1] not in (None, ":all", f":{architecture()}"):
            raise EnvError(
                f"{word} is not for this machine, which is {architecture()}", remedy="make it on one that is"
            )


def fetch_with_dependencies(words: Sequence[str], folder: Path) -> list[Path]:
    """The files of packages, of all that they need and of a small system; EnvError where there is no such choice."""
    check(words)
    options = _options(folder)
    _call(["apt-get", *options, "--download-only", "install", "--", *words, *SYSTEM], folder)
    return sorted((folder / "apt/archives").glob("*.deb"))


def fetch(words: Sequence[str], folder: Path) -> list[Path]:
    """The files of exactly these packages; EnvError when one is not in the lists any more."""
    check(words)
    (folder / "fetched").mkdir()
    _call(["apt-get", *_options(folder), "download", "--", *words], folder, folder / "fetched")
    return sorted((folder / "fetched").glob("*.deb"))


def _options(folder: Path) -> list[str]:
    """What keeps apt from this machine's state, and from all that it is told elsewhere to do besides."""
    (folder / "apt/archives/partial").mkdir(parents=True)
    (folder / "apt/status").touch()
    settings = {
        "Dir::State::status": folder / "apt/status",
        "Dir::State::extended_states": folder / "apt/extended_states",
        "Dir::Cache": folder / "apt",
        "APT::Architecture": architecture(),
        "APT::Architectures": architecture(),
        "APT::Install-Recommends": "false",
        "APT::Install-Suggests": "false",
        "APT::Cmd::Pattern-Only": "true",  # no word is a regular expression
        "pkgCacheGen::ForceEssential": "none",  # apt itself is no part of it
        "Debug::NoLocking": "true",  # the lists are read alone, which needs no lock, and so no root
    }
    return ["-q", "--yes", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]


def _call(argv: Sequence[str], folder: Path, where: Path | None = None) -> None:
    inside = ["env", "--chdir", str(where or folder), "LC_ALL=C"]
    try:
        call([*inside, *argv], "apt cannot bring these packages")
    except EnvError as error:
        if match := _UNKNOWN.search(error.remedy):
            name = match["name"] or f"{match['of']}={match['version']}"
            remedy = "name another, or run apt-get update if the lists are old"
            raise EnvError(f"Debian's lists on this machine have no package {name}", remedy) from None
        if match := _CONFLICT.search(error.remedy):
            raise EnvError("these packages do not go together", match["what"]) from None
        raise
