"""Which commands an agent may start: files that were pushed, and files of directories allowed at enrolment."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from collectors.agent.run.sealed import Copies, Copy

AGENT = "agent.pyz"
MANIFEST = "manifest.json"
LIBRARY = "_lib.sh"
_SHELL = "/bin/sh"


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


@dataclass(frozen=True)
class Program:
    """A checked command: arguments that name sealed copies, the descriptors of these, and what its run must know.

    One that `is_shipped_python` has the arguments `python -P -S PATH ...`, and two descriptors: of its own copy and of
    the agent's file.
    """

    argv: tuple[str, ...]
    descriptors: tuple[int, ...]
    environment: Mapping[str, str]
    is_shipped_python: bool = False


class Trust:
    """Turns commands into programs that run the very bytes that were checked.

    A relative first word names a pushed file with the SHA-256 of the manifest. An absolute one lies in an allowed
    directory, and only root or the agent's user can write it or swap it through a directory above it; it takes
    arguments only when its `sha256` was registered, which holds in both cases. Every program is started from a copy
    that nobody can change, so its own path is /proc/self/fd/N; it finds the directory of its file in PROGRAM_DIR, the
    shell library in LIB.
    """

    def __init__(self, pushed: Pushed, allow: Sequence[str]) -> None:
        self._pushed = pushed
        self._allow = tuple(allow)
        self._copies = Copies()

    def program(self, cmd: str, sha256: str | None = None) -> Program:
        """The program of a command, checked just now; Refused with the reason otherwise."""
        words = _words(cmd)
        own = words[0].startswith("/")
        copy = self._own(words[0]) if own else self._find_shipped(words[0])
        if own and sha256 is None and len(words) > 1:
            raise Refused(
                f"{words[0]} may run without arguments only, or as the very file that was registered: add its --sha256"
            )
        if sha256 is not None and copy.sha256 != sha256.lower():
            raise Refused(f"{words[0]} is not the file that was registered: its SHA-256 differs")
        if copy.file.endswith(".py"):
            # -P keeps the copy's path, which is not a directory, from being searched for modules. What is pushed needs
            # no site packages, and starts in half the time without.
            python = (sys.executable, "-P") if own else (sys.executable, "-P", "-S")
            return replace(self._with_agent((*python, copy.path, *words[1:]), copy), is_shipped_python=not own)
        if copy.file.endswith(".sh") and not own:
            return self._script(words, copy)
        if not copy.executable:
            raise Refused(f"{copy.file} is not executable: chmod +x {copy.file}")
        return self._with_agent((copy.path, *words[1:]), copy)

    def close(self) -> None:
        """Give all copies back."""
        self._copies.close()

    def _with_agent(self, argv: tuple[str, ...], copy: Copy) -> Program:
        """A program that may import the agent's modules, above all InfoClient."""
        agent = self._find_shipped(AGENT)
        return Program(argv, (copy.descriptor, agent.descriptor), _environment(copy) | {"PYTHONPATH": agent.path})

    def _script(self, words: Sequence[str], copy: Copy) -> Program:
        argv = (_SHELL, copy.path, *words[1:])
        library = str(PurePosixPath(words[0]).parent / LIBRARY)
        if library not in self._pushed.manifest:
            return Program(argv, (copy.descriptor,), _environment(copy))
        lib = self._find_shipped(library)
        return Program(argv, (copy.descriptor, lib.descriptor), _environment(copy) | {"LIB": lib.path})

    def _find_shipped(self, name: str) -> Copy:
        if name not in self._pushed.manifest:
            raise Refused(f"{name!r} is not among the files pushed to this node, nor an absolute path")
        try:
            copy = self._copies.get(str(self._pushed.directory / name), follow=False)
        except OSError as error:
            raise Refused(f"{name} has changed since it was pushed ({error.strerror}): enrol the node again") from None
        if copy.sha256 != self._pushed.manifest[name]:
            raise Refused(f"{name} has changed since it was pushed: enrol the node again")
        return copy

    def _own(self, name: str) -> Copy:
        try:
            return self._copies.get(name, partial(_check_place, name, self._allow))
        except OSError as error:
            raise Refused(f"{name} cannot be read: {error.strerror}") from None


def _words(cmd: str) -> list[str]:
    try:
        words = shlex.split(cmd)
    except ValueError as error:
        raise Refused(f"the command {cmd!r} cannot be split into words: {error}") from None
    if not words or not words[0]:
        raise Refused("the command is empty")
    if "\0" in cmd:
        raise Refused("the command holds a zero byte")
    return words


def _environment(copy: Copy) -> dict[str, str]:
    return {"PROGRAM_DIR": str(Path(copy.file).parent)}


def _check_place(name: str, allow: Sequence[str], descriptor: int) -> None:
    """The open file lies in an allowed directory, and nobody but root and the agent's user can change or swap it."""
    file = Path(f"/proc/self/fd/{descriptor}").readlink()
    for directory in map(Path, map(os.path.realpath, allow)):
        if directory in file.parents:
            _check_owner(file, os.fstat(descriptor), False)
            for path in file.parents:
                _check_owner(path, path.stat(), path in directory.parents)
            return
    listed = ", ".join(allow) or "none"
    raise Refused(f"{name} is in no directory allowed on this node ({listed}): enrol it with --allow {file.parent}")


def _check_owner(path: Path, status: os.stat_result, above: bool) -> None:
    # Above the allowed directory, the sticky bit (as on /tmp) keeps others from renaming what is not theirs.
    open_to_others = status.st_mode & 0o022 and not (status.st_mode & stat.S_ISVTX and above)
    if status.st_uid not in (0, os.geteuid()) or open_to_others:
        raise Refused(f"{path} can be changed by other users: chown it to root or this user, and chmod go-w {path}")
