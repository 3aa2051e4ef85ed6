"""Which commands an agent may start: files that were pushed, and files of directories allowed at enrolment."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

AGENT = "agent.pyz"
MANIFEST = "manifest.json"


class Refused(Exception):
    """The command may not run here; the text is the reason that its slot reports."""


@dataclass(frozen=True)
class Pushed:
    """What was put on the node: its real directory, relative path -> SHA-256, and the version of it all."""

    directory: Path
    manifest: Mapping[str, str]
    version: str

    @classmethod
    def load(cls, directory: Path) -> Pushed:
        """Read manifest.json; OSError or ValueError when there is none."""
        content = (directory / MANIFEST).read_bytes()
        return cls(directory.resolve(), json.loads(content), hashlib.sha256(content).hexdigest()[:12])

    @property
    def agent(self) -> Path:
        """The zipapp whose modules processors may import."""
        return self.directory / AGENT


def trusted_argv(cmd: str, sha256: str | None, pushed: Pushed, allow: Sequence[str]) -> list[str]:
    """Argument list of a command whose file has been checked just now; Refused with the reason otherwise.

    A relative first word names a pushed file with the SHA-256 of the manifest. An absolute one lies in an allowed
    directory, and only root or the agent's user can write it or swap it through a directory above it. `sha256`, if
    given, holds in both cases.
    """
    try:
        words = shlex.split(cmd)
    except ValueError as error:
        raise Refused(f"the command {cmd!r} cannot be split into words: {error}") from None
    if not words or not words[0]:
        raise Refused("the command is empty")
    own = words[0].startswith("/")
    file = _allowed(words[0], allow) if own else _pushed(words[0], pushed)
    if sha256 is not None and _sha256(file) != sha256.lower():
        raise Refused(f"{file} is not the file that was registered: its SHA-256 differs")
    if file.suffix == ".py":
        # What is pushed needs the standard library alone; without site packages it starts in half the time.
        options = [] if own else ["-S"]
        return [sys.executable, *options, str(file), *words[1:]]
    if not os.access(file, os.X_OK):
        raise Refused(f"{file} is not executable: chmod +x {file}")
    return [str(file), *words[1:]]


def _pushed(name: str, pushed: Pushed) -> Path:
    if name not in pushed.manifest:
        raise Refused(f"{name!r} is not among the files pushed to this node, nor an absolute path")
    for needed in _with_shared(name, pushed.manifest):
        file = pushed.directory / needed
        if Path(os.path.realpath(file)) != file or _sha256(file) != pushed.manifest[needed]:
            raise Refused(f"{needed} has changed since it was pushed: enrol the node again")
    return pushed.directory / name


def _with_shared(name: str, manifest: Mapping[str, str]) -> Iterator[str]:
    """The file and what it may load: `_` files of its folder, and the agent's modules for a processor."""
    yield name
    folder = PurePosixPath(name).parent
    for other in manifest:
        path = PurePosixPath(other)
        if (path.parent == folder and path.name.startswith("_")) or (other == AGENT and name.endswith(".py")):
            yield other


def _allowed(name: str, allow: Sequence[str]) -> Path:
    file = Path(os.path.realpath(name))
    for directory in map(Path, map(os.path.realpath, allow)):
        if directory in file.parents:
            _check_owners(file, directory)
            return file
    listed = ", ".join(allow) or "none"
    raise Refused(f"{name} is in no directory allowed on this node ({listed}): enrol it with --allow {file.parent}")


def _check_owners(file: Path, directory: Path) -> None:
    """Nobody but root and the agent's user can change the file, or swap it through a directory above it."""
    if not file.is_file():
        raise Refused(f"{file} is no file on this node")
    for path in (file, *file.parents):
        status = path.stat()
        # Above the allowed directory, the sticky bit (as on /tmp) keeps others from renaming what is not theirs.
        open_to_others = status.st_mode & 0o022 and not (status.st_mode & stat.S_ISVTX and path in directory.parents)
        if status.st_uid not in (0, os.geteuid()) or open_to_others:
            raise Refused(f"{path} can be changed by other users: chown it to root or this user, and chmod go-w {path}")


def _sha256(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
