"""The names by which programs ask for a driver's libraries.

A program that loads `libcuda.so.1` looks for a file of that name. The driver's file has its version in its name
(`libcuda.so.550.54.15`), and says in itself which name it answers to: its soname.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from boxes.cdi.edits import Edits, Mount

FOLDER = Path("/opt/driver")
"""Where boxes show libraries by their sonames: it has no others, so none of the node's own gets before a program's."""
PATH = "LD_LIBRARY_PATH"
_64_BIT = b"\x7fELF\x02\x01"
_LOADED, _DYNAMIC = 1, 2
_END, _TEXTS, _SONAME = 0, 5, 14


def by_soname(mounts: Sequence[Mount]) -> list[Mount]:
    """The libraries among them, once more in FOLDER."""
    found: dict[Path, Mount] = {}
    for mount in mounts:
        if ".so" in mount.host.name and (name := soname(mount.host)):
            found.setdefault(FOLDER / name, Mount(FOLDER / name, mount.host, place=mount.place))
    return list(found.values())


def extend(environment: Mapping[str, str], edits: Edits) -> dict[str, str]:
    """The variables of a program with devices: it finds their libraries before others of the same name."""
    places = [str(FOLDER)] if by_soname(edits.mounts) else []
    places += [str(one.path) for one in edits.mounts if one.host.is_dir() and any(one.host.glob("*.so*"))]
    said = (edits.environment.get(PATH), environment.get(PATH))
    path = {PATH: ":".join([*places, *filter(None, said)])} if places else {}
    return {**environment, **edits.environment, **path}


def soname(file: Path) -> str:
    """The soname of a library of 64 bits, "" for any other file and one that has none."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            name = _soname(content) if content[: len(_64_BIT)] == _64_BIT else ""
    except (OSError, ValueError, struct.error, IndexError):  # empty, cut off, or a folder
        return ""
    return "" if "/" in name else name


def _soname(content: mmap.mmap) -> str:
    begin, size, count = (*struct.unpack_from("<Q", content, 32), *struct.unpack_from("<HH", content, 54))
    segments = [struct.unpack_from("<IIQQQQQQ", content, begin + size * number) for number in range(count)]
    loaded = [(one[3], one[2], one[5]) for one in segments if one[0] == _LOADED]
    tags = dict(tag for one in segments if one[0] == _DYNAMIC for tag in _tags(content, one[2], one[5]))
    if _SONAME not in tags or _TEXTS not in tags:
        return ""
    texts = [tags[_TEXTS] - at + offset for at, offset, length in loaded if at <= tags[_TEXTS] < at + length]
    start = texts[0] + tags[_SONAME]
    return content[start : content.find(b"\0", start)].decode("ascii")


def _tags(content: mmap.mmap, offset: int, length: int) -> Iterator[tuple[int, int]]:
    for tag, value in struct.iter_unpack("<qQ", content[offset : offset + length]):
        if tag == _END:
            return
        yield tag, value
