"""Makes the places at which a program sees devices and files of drivers in a root of its own.

Paths lead where links of the root say: where it has `/lib` as a link to `usr/lib`, a folder of that name laid over it
would hide all that lies there. So this runs when the root is mounted already, as `python -c` with this file's text:

    python -ISc TEXT BASE SHAPE [HOW HOST PATH]... -- PROGRAM...

It makes the places in the shape, and becomes the program, which finds options for bubblewrap on the descriptor OPTIONS.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

OPTIONS = 9
"""For `bwrap --args`: words that each end with a zero byte."""
_MOST_LINKS = 40
"""As many as Linux follows."""


def find_place(root: Path, path: str) -> str:
    """Where a path leads in a root; OSError when its links go round in a circle."""
    place, links = "", 0
    ahead = path.split("/")[::-1]
    while ahead:
        word = ahead.pop()
        if word == "..":
            place = place.rpartition("/")[0]
        elif word not in ("", "."):
            place += f"/{word}"
        if word in ("", ".", "..") or not Path(f"{root}{place}").is_symlink():
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(f"{root}{place}")  # noqa: PTH115 Path would drop what a link ends with
        place = "" if target.startswith("/") else place.rpartition("/")[0]
        ahead += target.split("/")[::-1]
    return place


def make_place(shape: Path, place: str, is_folder: bool) -> None:
    """An empty folder or file in the shape, over which the other one is mounted."""
    target = Path(f"{shape}{place}")
    (target if is_folder else target.parent).mkdir(parents=True, exist_ok=True)
    if not is_folder:
        target.touch()


def main(words: Sequence[str]) -> None:
    """Become the program; exit with 125, as boxes do, and a sentence when a place cannot be made."""
    base, shape, end = Path(words[0]), Path(words[1]), words.index("--")
    options: list[str] = []
    os.umask(0o022)
    for at in range(2, end, 3):
        how, host, path = words[at : at + 3]
        try:
            place = find_place(base, path)
            make_place(shape, place, Path(host).is_dir())
        except OSError as error:
            print(f"{path} cannot be shown in the root of its environment ({error.strerror})", file=sys.stderr)
            sys.exit(125)
        options += [how, host, place]
    written = os.memfd_create("options", 0)
    os.write(written, "".join(f"{one}\0" for one in options).encode())
    os.lseek(written, 0, os.SEEK_SET)
    os.dup2(written, OPTIONS)
    os.execv(words[end + 1], list(words[end + 1 :]))  # noqa: S606 no shell


if __name__ == "__main__":
    main(sys.argv[1:])
