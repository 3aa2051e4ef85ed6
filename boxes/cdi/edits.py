"""What a program gets with a device: variables, device files, and other files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from boxes.cdi.place import CdiError, Place

_AGAIN = "an operator writes the file anew, as after each change of the driver"


@dataclass(frozen=True)
class DeviceNode:
    """A device file: `host` is this machine's, `path` the program's.

    number        major and minor number that it has, None where the CDI file does not say
    permissions   of r, w and m, as control groups have them
    """

    path: Path
    host: Path
    number: tuple[int, int] | None = None
    permissions: str = "rwm"
    place: Place = field(default=Place(""), compare=False)


@dataclass(frozen=True)
class Mount:
    """Another file, or a folder."""

    path: Path
    host: Path
    is_writable: bool = False
    place: Place = field(default=Place(""), compare=False)


@dataclass(frozen=True)
class Edits:
    """All of it; later ones of a name or path come behind."""

    environment: Mapping[str, str] = field(default_factory=dict)
    nodes: Sequence[DeviceNode] = ()
    mounts: Sequence[Mount] = ()


NOTHING = Edits()
_One = TypeVar("_One", DeviceNode, Mount)


def merge(all_edits: Sequence[Edits]) -> Edits:
    """All in one, each path once; CdiError where two are to be at one path."""
    return Edits(
        {name: value for one in all_edits for name, value in one.environment.items()},
        _merge_paths([node for one in all_edits for node in one.nodes]),
        _merge_paths([mount for one in all_edits for mount in one.mounts]),
    )


def check_host(edits: Edits) -> None:
    """CdiError when this machine does not have what it takes."""
    for node in edits.nodes:
        _check_device(node)
    for mount in edits.mounts:
        _look_at(mount)


def _merge_paths(found: Sequence[_One]) -> list[_One]:
    by_path: dict[Path, _One] = {}
    for one in found:
        other = by_path.setdefault(one.path, one)
        if other.host != one.host:
            raise CdiError(f"{other.place.text} and {one.place.text} are both for {one.path}", "ask for one of the two")
    return list(by_path.values())


def _check_device(node: DeviceNode) -> None:
    found = _look_at(node)
    if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
        raise node.place.refuse(f"names {node.host}, which is not a device file", _AGAIN)
    # A device has the number that the kernel gave it: an old file's may be that of another device now.
    if node.number and node.number != (os.major(found.st_rdev), os.minor(found.st_rdev)):
        raise node.place.refuse(f"names {node.host}, which has another number than the file says", _AGAIN)


def _look_at(one: DeviceNode | Mount) -> os.stat_result:
    try:
        return one.host.stat()
    except PermissionError:
        raise one.place.refuse(
            f"names {one.host}, which lies in a folder that is closed", "let all search it"
        ) from None
    except OSError:
        raise one.place.refuse(f"names {one.host}, which is not there", _AGAIN) from None
