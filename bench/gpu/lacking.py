"""What a machine lacks of what this takes, each in a sentence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

_PROGRAMS = {
    "/usr/bin/bwrap": "bubblewrap",
    "/usr/bin/squashfuse_ll": "squashfuse",
    "/usr/bin/unshare": "util-linux",
    "/usr/bin/mksquashfs": "squashfs-tools",
    "/usr/bin/unsquashfs": "squashfs-tools",
}
"""Debian's packages, by the programs that boxes and environments start."""
_FUSE = Path("/dev/fuse")
_NAMESPACES = ("/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork")


class NotRun(Exception):
    """This machine cannot show it; the message says why."""


def find_lacking() -> list[str]:
    """Empty where boxes can be made."""
    return list(_find())


def _find() -> Iterator[str]:
    for program, package in _PROGRAMS.items():
        if not os.access(program, os.X_OK):
            yield f"{program} is not there: install Debian's {package}"
    if not os.access(_FUSE, os.R_OK | os.W_OK):
        yield f"{_FUSE} cannot be opened: load the module fuse, or give a container --device {_FUSE}"
    if os.access(_NAMESPACES[0], os.X_OK):
        words = [*_NAMESPACES, "mount", "-t", "proc", "proc", "/proc"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join(done.stderr.split())
            yield f"no namespaces with a /proc of their own can be made here ({said}): run this outside of containers"
