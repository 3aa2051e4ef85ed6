"""Shows a program squashfs files as folders, without root: a mount of its own for each, gone with the program.

Two namespaces, one in the other. The outer one may mount, so that it can be seen where those of this machine are, and
its first process ends all that is below. In the inner one the program is the user that it was, and may nothing more.
A folder that must be made stands in a folder of memory, with all that this machine has there.

    python3 -m boxes.mounting /opt/env=part.sqfs -- /opt/env/bin/python -m program

What stands between ignores SIGTERM, so that the program that gets it, too, has time for its last words.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from boxes.box import BoxError, Ended, Program

_BEGIN = 'trap "" TERM; NODEWISE_OUTER=$$ exec /usr/bin/bwrap "$@"'
_MOUNT = """
while [ "$1" != -- ]; do /usr/bin/squashfuse_ll "$1" "$2" || exit 125; shift 2; done; shift
read -r _ _ _ first _ < /proc/self/stat
read -r _ _ _ outer _ < "/proc/$first/stat"
[ "$outer" = "$NODEWISE_OUTER" ] || exit 125 # it was killed before bwrap asked the kernel to be told
unset NODEWISE_OUTER
/bin/mount -t proc proc /proc || exit 125
exec "$@"
"""
"""Pairs of a file and a folder, then what to run; no shell reads what a user wrote but as words."""
_SIGNALLED = 128
_OWN = ("/dev", "/proc")


def with_parts(program: Program) -> Program:
    """The program as it is started so that it sees its parts; BoxError when one is not there."""
    return replace(program, argv=mounted(program.argv, program.parts, program.folder))


def how_ended(program: Program, ended: Ended) -> Ended:
    """What its end says of the program itself: between it and us a signal becomes an exit code, as in shells."""
    number = (ended.exit_code or 0) - _SIGNALLED
    return Ended(signal=number) if program.parts and 0 < number < signal.NSIG else ended


def mounted(argv: Sequence[str], parts: Mapping[str, Path], folder: Path) -> list[str]:
    """What starts `argv` in a folder so that it sees the parts; BoxError when one is not there."""
    if not parts:
        return list(argv)
    for path in parts.values():
        if not path.is_file():
            raise BoxError(f"{path}, a part of its environment, is not there", remedy="submit it again")
    return [*_outer(parts), *_inner(folder), "/usr/bin/env", "--default-signal=TERM", *argv]


def _outer(parts: Mapping[str, Path]) -> list[str]:
    options = ["--die-with-parent", "--unshare-user", "--unshare-pid", "--uid", "0", "--gid", "0"]
    options += ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETFCAP"]
    options += _binds(Path("/"), [Path(at) for at in parts])
    options += ["--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    pairs = [word for at, file in parts.items() for word in (str(file), at)]
    return ["/bin/sh", "-c", _BEGIN, "sh", *options, "--", "/bin/sh", "-c", _MOUNT, "sh", *pairs, "--"]


def _inner(folder: Path) -> list[str]:
    who = ["--uid", str(os.getuid()), "--gid", str(os.getgid()), "--cap-drop", "ALL"]
    binds = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    return ["/usr/bin/bwrap", "--die-with-parent", "--unshare-user", *who, *binds, "--chdir", str(folder), "--"]


def _binds(folder: Path, wanted: Sequence[Path]) -> list[str]:
    """What makes a folder as it is here, but with the wanted folders in it."""
    if folder in wanted:
        return ["--dir", str(folder)]
    below = [one for one in wanted if one.is_relative_to(folder)]
    if folder.is_symlink():
        return ["--symlink", str(folder.readlink()), str(folder)]
    if not below:
        return ["--bind", str(folder), str(folder)]
    names = {one.relative_to(folder).parts[0] for one in below}
    names |= {one.name for one in folder.iterdir()} if folder.is_dir() else set()
    return [word for name in sorted(names) if f"/{name}" not in _OWN for word in _binds(folder / name, wanted)]


def main(words: Sequence[str]) -> None:
    """Become the program; exit with 125, as other boxes do, and a sentence when that cannot be."""
    pairs, argv = words[: words.index("--")], words[words.index("--") + 1 :]
    parts = {at: Path(name).absolute() for at, _, name in (one.partition("=") for one in pairs)}
    try:
        started = mounted(argv, parts, Path.cwd())
        os.execvp(started[0], started)  # noqa: S606 no shell
    except (BoxError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(125)


if __name__ == "__main__":
    main(sys.argv[1:])
