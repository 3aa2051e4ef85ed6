"""Shows a program squashfs files as folders, and devices, without root, with nothing left when it has ended.

The mounts are copies of those that the node's mounter (boxes.mounts) keeps for all programs. Where none answers, the
program gets mounts of its own, and that is said on stderr.

Two namespaces, one in the other. The outer one may mount, so that it can be seen where those of this machine are, and
its first process ends all that is below. In the inner one the program is the user that it was, and may nothing more.
A folder that must be made stands in a folder of memory, with all that this machine has there. A part at `/` takes the
place of all of this machine's files (boxes.own_root).

    python3 -m boxes.mounting --device=nvidia.com/gpu=0 /opt/env=part.sqfs -- /opt/env/bin/python -m program

A program in a root also sees what `--see` names, a file or folder of this machine, at the path that it has here.

What stands between ignores SIGTERM, so that the program that gets it, too, has time for its last words. A box
(boxes.keeper) keeps a SIGTERM until the program has started.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from boxes import own_root
from boxes.box import BoxError, Ended, Limits, Program
from boxes.cdi.edits import NOTHING, Edits
from boxes.cdi.libraries import extend
from boxes.keeper import FIRST, hand_on
from boxes.mounts.protocol import DamagedError, reason
from boxes.mounts.request import ask, close
from boxes.showing import Shown, find_devices, list_devices, show, show_folder
from boxes.wished import with_wished

_BEGIN = """
trap "" TERM
NODEWISE_OUTER=$$ exec /usr/bin/unshare --user --map-root-user --mount --pid --fork --kill-child /bin/sh -c "$@"
"""
_FIRST = """
read -r _ _ _ NODEWISE_OWNER _ < /proc/self/stat
[ "$NODEWISE_OWNER" = "$NODEWISE_OUTER" ] || exit 125 # it was killed before we asked the kernel to be told
unset NODEWISE_OUTER NODEWISE_OWNER
/bin/mount -t proc proc /proc || exit 125 # bwrap looks there for its child
exec /usr/bin/bwrap "$@"
"""
"""The first process of the outer namespace, which all others end with. bwrap itself can be left behind for ever.

That is when it is killed while its child waits for it, and so it is not what begins.
"""
_MOUNT = """
while [ "$1" != -- ]; do
  { [ "$3" != - ] && /bin/mount -nc --move "/proc/self/fd/$3" "$2"; } || /usr/bin/squashfuse_ll "$1" "$2" || exit 125
  [ "$3" = - ] || eval "exec $3<&-"
  shift 3
done; shift
exec "$@"
"""
"""Of each part the file, the folder, and the descriptor of a mount if there is one; then what to run.

No shell reads what a user wrote but as words.
"""
_MOST_COPIES = 7
"""A shell can close descriptors from 3 to 9."""
_SIGNALLED = 128
_DEVICE, _SEE = "--device=", "--see="


@contextmanager
def with_parts(program: Program) -> Iterator[Program]:
    """The program as it has to be started now so that it sees parts and devices; BoxError when one is not there."""
    edits = find_devices(program.devices)
    _check(program.parts)
    copies = _copies(program.parts)
    try:
        argv = wrap(program.argv, program.parts, program.folder, len(copies), edits)
        environment = extend(program.environment, edits)
        yield replace(program, argv=argv, environment=environment, descriptors=copies)
    finally:
        close(copies)


def with_described(program: Program) -> Program:
    """The program with the devices that it wishes for, where this machine's CDI files describe them."""
    return with_wished(program, list_devices()) if program.wished else program


def how_ended(program: Program, ended: Ended) -> Ended:
    """What its end says of the program itself: between it and us a signal becomes an exit code, as in shells."""
    number = (ended.exit_code or 0) - _SIGNALLED
    is_between = bool(program.parts or program.devices)
    return Ended(signal=number) if is_between and 0 < number < signal.NSIG else ended


def wrap(
    argv: Sequence[str], parts: Mapping[str, Path], folder: Path, copies: int = 0, edits: Edits = NOTHING
) -> list[str]:
    """What starts `argv` in a folder so that it sees parts and devices; BoxError when that cannot be.

    Mounts of the first parts are its descriptors from 3.
    """
    if not parts and edits == NOTHING:
        return list(argv)
    has_root = own_root.AT in parts
    begin = own_root.begin() if has_root else ["/usr/bin/env"]
    lay = own_root.lay(folder, _beside(parts), edits) if has_root else []
    shown = Shown() if has_root else show(edits, [Path(at) for at in parts])
    outer, inner = _outer(parts, folder, copies, shown, edits), _inner(parts, folder, shown, edits)
    return [*outer, *lay, *inner, *begin, "--default-signal=TERM", *argv]


def _check(parts: Mapping[str, Path]) -> None:
    for path in parts.values():
        if not path.is_file():
            raise BoxError(f"{path}, a part of its environment, is not there", remedy="submit it again")


def _copies(parts: Mapping[str, Path]) -> list[int]:
    """Descriptors of mounts of the parts, as far as the mounter has some; BoxError when it finds one damaged."""
    try:
        return ask([*parts.values()][:_MOST_COPIES])
    except DamagedError as error:
        remedy = "submit it again; if it is damaged again, `nodewise env verify` tells whether it is so in HDFS"
        raise BoxError(f"a part of its environment, {reason(error)}", remedy) from error
    except OSError as error:
        print(f"The environment is mounted for this program alone: {reason(error)}", file=sys.stderr, flush=True)
        return []


def _outer(parts: Mapping[str, Path], folder: Path, copies: int, shown: Shown, edits: Edits) -> list[str]:
    options = ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETFCAP"]
    made = {**{Path(at): ["--dir", at] for at in _beside(parts)}, **shown.made}
    if own_root.AT in parts:
        made[own_root.PLACE] = own_root.outer(folder, _beside(parts), edits)
    options += show_folder(Path("/"), made, besides=("/dev", "/proc"))
    options += [*show_folder(Path("/dev"), made, "--dev-bind"), "--bind", "/proc", "/proc", *shown.covering]
    folders = [str(own_root.BASE) if at == own_root.AT else at for at in parts]
    numbers = [str(FIRST + one) for one in range(copies)]
    numbers += ["-"] * (len(parts) - copies)
    words = [str(word) for one in zip(parts.values(), folders, numbers, strict=True) for word in one]
    return ["/bin/sh", "-c", _BEGIN, "sh", _FIRST, "sh", *options, "--", "/bin/sh", "-c", _MOUNT, "sh", *words, "--"]


def _inner(parts: Mapping[str, Path], folder: Path, shown: Shown, edits: Edits) -> list[str]:
    who = ["--uid", str(os.getuid()), "--gid", str(os.getgid()), "--cap-drop", "ALL"]
    binds = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", *shown.again]
    if own_root.AT in parts:
        binds = own_root.inner(folder, _beside(parts), edits)
    return ["/usr/bin/bwrap", "--die-with-parent", "--unshare-user", *who, *binds, "--chdir", str(folder), "--"]


def _beside(parts: Mapping[str, Path]) -> list[str]:
    """Folders of parts that are not the root."""
    return [at for at in parts if at != own_root.AT]


def become(words: Sequence[str], variables: Mapping[str, str], wished: Sequence[Sequence[str]] = ()) -> None:
    """Become the program of the words, with more variables, and the devices that it wishes for; BoxError or OSError."""
    said, argv = words[: words.index("--")], words[words.index("--") + 1 :]
    devices, seen = ([one.removeprefix(way) for one in said if one.startswith(way)] for way in (_DEVICE, _SEE))
    pairs = (one.partition("=") for one in said if not one.startswith((_DEVICE, _SEE)))
    parts = {at: Path(name).absolute() for at, _, name in pairs}
    asked = Program(argv, {**os.environ, **variables}, Path.cwd(), Limits(0), None, parts, devices, wished)
    edits = find_devices(with_described(asked).devices)
    _check(parts)
    copies = _copies(parts)
    shown = own_root.add_seen(edits, map(Path, seen), Path.cwd()) if own_root.AT in parts else edits
    started = wrap(argv, parts, Path.cwd(), len(copies), shown)
    hand_on(copies)
    os.execvpe(started[0], started, extend(asked.environment, edits))  # noqa: S606 no shell


def main(words: Sequence[str]) -> None:
    """Become the program; exit with 125, as other boxes do, and a sentence when that cannot be."""
    try:
        become(words, {})
    except (BoxError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(125)


if __name__ == "__main__":
    main(sys.argv[1:])
