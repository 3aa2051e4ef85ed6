"""Writes a part of an environment as a layer of an image for Docker: its bytes follow from the part alone.

https://github.com/opencontainers/image-spec/blob/v1.0.2/layer.md
"""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from environments.errors import EnvError
from environments.squash import unsquash

RECIPE = 1
"""Raise it when the same part shall become another layer."""
_AWAY, _ALL_AWAY = ".wh.", ".wh..wh..opq"
"""How files of layers begin that stand for none, and the one that hides all of its folder in lower layers."""
_FOLDER_MODE = 0o755
_OWNERS = 0o500


def write_layer(part: Path, at: str, target: Path) -> None:
    """Write a tar archive of a squashfs file; `at` is the folder that it becomes.

    Everybody may read and run there what its owner may: in a box of Docker, a program is not the owner. Of a folder
    below `/`, an image shows nothing but the part. EnvError when a layer cannot hold a file.
    """
    with TemporaryDirectory(prefix="nodewise-layer-") as place:
        tree = Path(place) / "tree"
        unsquash(part, tree)
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as write:
            _write_way(write, PurePosixPath(at))
            for path in sorted(tree.rglob("*")):
                _refuse_stand_in(path.relative_to(tree))
                name = PurePosixPath(at, path.relative_to(tree)).relative_to("/")
                write.add(path, str(name), recursive=False, filter=_for_everybody)


def _write_way(write: tarfile.TarFile, at: PurePosixPath) -> None:
    """The folders down to the part, which Docker would make for root alone; the last hides what is there already."""
    folders = [one.relative_to("/") for one in (at, *at.parents) if one.name]
    for folder in reversed(folders):
        made = tarfile.TarInfo(str(folder))
        made.type, made.mode = tarfile.DIRTYPE, _FOLDER_MODE
        write.addfile(made)
    if folders:
        write.addfile(tarfile.TarInfo(str(folders[0] / _ALL_AWAY)))


def _refuse_stand_in(name: Path) -> None:
    if name.name.startswith(_AWAY):
        raise EnvError(f"{name} cannot be in an image: Docker would take it for the word that a file is gone")


def _for_everybody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    owners = member.mode & _OWNERS
    member.mode |= owners >> 3 | owners >> 6
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
