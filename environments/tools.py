"""The programs that make environments: uv, pip and squashfs-tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from environments.errors import EnvError
from hadoop.installation import tool_remedy

_PACKAGES = {"mksquashfs": "squashfs-tools", "unsquashfs": "squashfs-tools", "apt-get": "apt", "dpkg-deb": "dpkg"}
"""The Debian packages of programs that have other names."""
_TOLD = 1500
"""Characters from the end of what a program that failed has said."""


def uv() -> Path:
    """It comes with nodewise."""
    return Path(sys.executable).with_name("uv")


def call(argv: Sequence[str | Path], refusal: str, accepted: Collection[int] = (0,)) -> None:
    """Run a program to its end; EnvError has the refusal, and what the program said."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        mend = tool_remedy(_PACKAGES.get(str(argv[0]), str(argv[0])))
        raise EnvError(f"{argv[0]} cannot be started ({error.strerror})", remedy=mend) from error
    if done.returncode not in accepted:
        raise EnvError(refusal, remedy=" ".join((done.stdout + done.stderr)[-_TOLD:].split()))
