"""Unpacks Debian's packages into one folder, which is to be the root of programs.

No script of a package runs. What programs miss without them is made up for here: links of /bin and the like into /usr,
the shell's name, alternatives (as of libblas.so.3) that a script names in plain words, and compiled Python modules.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from environments.errors import EnvError
from environments.reference import version_key
from environments.squash import compile_all
from environments.tools import call

_MERGED = ("bin", "sbin", "lib", "lib64")
_ALTERNATIVE = re.compile(
    r"update-alternatives\s+(?:--quiet\s+)?--install\s+(?P<link>/\S+)\s+\S+\s+(?P<to>/\S+)\s+(?P<priority>\d+)"
    r"(?P<others>(?:\s+--slave\s+/\S+\s+\S+\s+/\S+)*)"
)
_OTHER = re.compile(r"--slave\s+(/\S+)\s+\S+\s+(/\S+)")
_OWNERS = 0o700
_REFUSAL = "the packages cannot be unpacked"


class _Alternative(NamedTuple):
    priority: int
    link: str
    to: str


def unpack(files: Sequence[Path], tree: Path) -> str:
    """Make the folder; the version of Python in it, "" without one. EnvError when that cannot be."""
    tree.mkdir()
    tree.chmod(0o755)
    alternatives: list[_Alternative] = []
    for file in files:
        with TemporaryDirectory(dir=tree.parent, prefix="package-") as place:
            content, scripts = Path(place, "content"), Path(place, "scripts")
            call(["dpkg-deb", "--extract", file, content], _REFUSAL)
            try:
                _lay(content, tree)
            except OSError as error:
                raise EnvError(_REFUSAL, remedy=f"{file.name}: {error}") from error
            call(["dpkg-deb", "--control", file, scripts], _REFUSAL)
            alternatives += _find_alternatives(scripts / "postinst")
    _take_rights(tree)
    _merge(tree)
    _link(tree, alternatives)
    return _compile(tree)


def _lay(content: Path, tree: Path) -> None:
    """Move the files of one package to those of others, as dpkg does: a folder of one may be a link of another.

    Only a link that leads out of the tree makes way for the folder: this machine's files are there.
    """
    for path in sorted(content.rglob("*")):
        place = tree / path.relative_to(content)
        if path.is_symlink() or not path.is_dir():
            if not (path.is_symlink() and place.is_dir()):
                path.rename(place)
            continue
        path.chmod(path.stat().st_mode | _OWNERS)
        if not place.is_dir() or _leads_out(place, tree):
            place.unlink(missing_ok=True)
            place.mkdir()
        if not place.is_symlink():
            place.chmod(path.stat().st_mode)


def _leads_out(place: Path, tree: Path) -> bool:
    """Whether something that is made there is not in the tree, but among this machine's files."""
    return not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(tree))


def _take_rights(tree: Path) -> None:
    """No setuid, setgid and sticky bits: nobody gets the rights of another in a box. What is kept can be read."""
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o777 | (0o700 if path.is_dir() else 0o400))


def _merge(tree: Path) -> None:
    """What a system with these links has already, as Debian 13 has them of a package, stays."""
    for name in _MERGED:
        below = tree / "usr" / name
        if _leads_out(below, tree):
            raise EnvError(f"/usr/{name} of these packages is a link out of their folder", remedy="ask for others")
        below.mkdir(parents=True, exist_ok=True)
        if (tree / name).is_symlink():
            continue
        if (tree / name).is_dir():
            call(["cp", "--archive", "--link", f"{tree / name}/.", below], _REFUSAL)
            shutil.rmtree(tree / name)
        (tree / name).symlink_to(f"usr/{name}")
    if not _is_there(tree, "/usr/bin/sh"):
        (tree / "usr/bin/sh").symlink_to("dash")


def _find_alternatives(script: Path) -> Iterator[_Alternative]:
    """Those that a script of a package asks for in plain words, without a variable."""
    if not script.is_file():
        return
    text = script.read_text(errors="replace").replace("\\\n", " ")
    for match in _ALTERNATIVE.finditer(text):
        pairs = [(match["link"], match["to"]), *_OTHER.findall(match["others"])]
        yield from (_Alternative(int(match["priority"]), link, to) for link, to in pairs)


def _link(tree: Path, alternatives: Sequence[_Alternative]) -> None:
    """The one of the highest priority of those that are there; what a package has itself stays."""
    for _, link, to in sorted(alternatives, key=lambda one: (-one.priority, one)):
        place = tree / link.removeprefix("/")
        if _leads_out(place.parent, tree) or _is_there(tree, link) or not _is_there(tree, to):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(to)


def _is_there(tree: Path, at: str) -> bool:
    """Whatever it may be linked to."""
    return os.path.lexists(tree / at.removeprefix("/"))


def _compile(tree: Path) -> str:
    """Where this machine has the same Python, else modules are compiled whenever a program starts."""
    names = (path.name for path in (tree / "usr/lib").glob("python3.*") if path.is_dir())
    found = sorted((name.removeprefix("python") for name in names), key=version_key)
    if not found:
        return ""
    if (python := shutil.which(f"python{found[-1]}", path="/usr/bin")) is not None:
        for name in ("python3", f"python{found[-1]}"):
            if (tree / "usr/lib" / name).is_dir() and not _leads_out(tree / "usr/lib" / name, tree):
                compile_all(tree / "usr/lib" / name, f"/usr/lib/{name}", python)
    return found[-1]
