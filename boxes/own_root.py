"""What bubblewrap is told so that a program sees the files of a part as its root, and hardly any of this machine's.

The part is read-only and has not all folders on which something is to be mounted, such as the program's own. So a
**shape**, empty folders and files in memory, is laid over it, with no layer that could be written. Of devices it has
those that any program needs, such as `/dev/null`, and those that it asked for.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from boxes import root_places
from boxes.box import BoxError
from boxes.cdi.edits import DeviceNode, Edits, Mount
from boxes.showing import check_place, choose_option, list_files

AT = "/"
"""The folder of such a part."""
PLACE = Path("/.nodewise-root")
BASE, SHAPE, ROOT = PLACE / "base", PLACE / "shape", PLACE / "root"
"""Seen by the outer namespace alone, and in memory: nothing of it is made on this machine."""
DEVICES = PLACE / "devices"
_LAY = f"""
/bin/mount -nt overlay overlay -o lowerdir={SHAPE}:{BASE} {ROOT} || exit 125
exec "$@"
"""
_NAMES = ("/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf")
"""Of this machine, so that users and other machines have their names."""
_BEGINNER = Path("/.nodewise")
"""Where the program's root has what it is begun with: an image may have no `env` that knows of signals."""
_ENV = Path("/usr/bin/env")


def outer(folder: Path, parts: Iterable[str], edits: Edits) -> list[str]:
    """Options of the outer namespace: where the part is mounted, and the shape; `parts` are folders of others."""
    places: list[str] = ["/proc", "/dev", "/tmp", str(folder), *parts]  # noqa: S108 the tmp is its own
    folders = [BASE, ROOT, *map(_shape, places)]
    options = [word for one in folders for word in ("--dir", str(one))]
    for at, host in _files().items():
        options += ["--ro-bind", str(host), str(_shape(at))]
    for node in edits.nodes:  # by a mount of its own: in others, device files outside of /dev do not work
        options += ["--dev-bind", str(node.host), str(_stage(node))]
    return options


def add_seen(edits: Edits, seen: Iterable[Path], folder: Path) -> Edits:
    """Files and folders of this machine besides, which the root shows at the paths that they have here.

    What lies in the program's own folder it sees in any case; of a link there, this is what it leads to.
    """
    places = [_follow(folder / one, folder) for one in seen]
    mounts = [Mount(place, place) for place in places if not place.is_relative_to(folder)]
    return replace(edits, mounts=[*edits.mounts, *mounts])


def lay(folder: Path, parts: Iterable[str], edits: Edits) -> list[str]:
    """What lays the shape over the part, and then becomes what follows; BoxError for a device that cannot be shown.

    The places of devices are made first, as what is laid over another may not change.
    """
    taken = [folder, _BEGINNER, *map(Path, parts)]
    files = list_files(edits)
    for one in files:
        check_place(one, one.path, taken)
    hosts = [_stage(one) if isinstance(one, DeviceNode) else one.host for one in files]
    shown = [(choose_option(one), str(host), str(one.path)) for one, host in zip(files, hosts, strict=True)]
    lay_only = ["/bin/sh", "-c", _LAY, "sh"]
    if not shown:
        return lay_only
    words = [str(BASE), str(SHAPE), *(word for one in shown for word in one)]
    return [sys.executable, "-ISc", inspect.getsource(root_places), *words, "--", *lay_only]


def inner(folder: Path, parts: Iterable[str], edits: Edits) -> list[str]:
    """Options of the inner namespace: what the program sees; its own folder comes last, as it may lie in another."""
    options = ["--bind", str(ROOT), "/", "--dev", "/dev", "--bind", "/proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
    for at in parts:
        options += ["--ro-bind", at, at]
    for name, host in _files().items():
        options += ["--ro-bind", str(host), name]
    if edits.nodes or edits.mounts:
        options += ["--args", str(root_places.OPTIONS)]
    return [*options, "--bind", str(folder), str(folder)]


def begin() -> list[str]:
    """What starts `env` of this machine in the root, whatever C library that has."""
    return [str(_BEGINNER / "loader"), "--library-path", str(_BEGINNER), str(_BEGINNER / "env")]


def _shape(at: str | Path) -> Path:
    return SHAPE / Path(at).relative_to("/")


def _follow(place: Path, folder: Path) -> Path:
    is_link = place.is_relative_to(folder) and place.is_symlink()
    return Path(os.path.normpath(folder / place.readlink())) if is_link else place


def _stage(node: DeviceNode) -> Path:
    return DEVICES / node.path.relative_to("/")


def _files() -> dict[str, Path]:
    """Files of this machine by the paths at which the program sees them."""
    found = {name: Path(name).resolve() for name in _NAMES if Path(name).is_file()}
    beginner = {"env": _ENV, "loader": _loaded("ld-linux"), "libc.so.6": _loaded("libc.so")}
    return {**found, **{str(_BEGINNER / name): path for name, path in beginner.items()}}


def _loaded(name: str) -> Path:
    """A library that this process has, too; BoxError on a machine with another C library than Debian's."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.is_absolute() and path.name.startswith(name):
            return path
    raise BoxError(f"this Python runs without {name}, with which programs in a root are begun", "use Debian's Python")
