"""Finds devices by their names (`vendor.com/class=name`) in the CDI files of this machine.

It takes a file that root or this process's user owns, and that nobody else may write, or put another in the place of:
who writes it says which files programs take for their driver's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from boxes.cdi.edits import Edits, check_host, merge
from boxes.cdi.place import CdiError
from boxes.cdi.specification import KIND, NAME, Specification, parse

FOLDERS = ("/etc/cdi", "/var/run/cdi")
"""Where CDI has its files. What a later folder says of a device counts."""
ALL = "all"
"""In place of a name: every device of its kind, unless a file says itself what that is."""
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class _Known:
    """The devices of one folder, and of those before it.

    twice     names that two files of one folder have, with these files
    refused   what cannot be used, by file
    """

    devices: dict[str, tuple[Specification, Edits]] = field(default_factory=dict)
    twice: dict[str, str] = field(default_factory=dict)
    refused: dict[Path, CdiError] = field(default_factory=dict)


def find(names: Sequence[str], folders: Sequence[str] = FOLDERS) -> Edits:
    """What a program gets with these devices; CdiError when there is no such device, or something of it is not there.

    A file that cannot be used stands in nobody's way but of those who ask for what no other file has.
    """
    if not names:
        return Edits()
    known = _read_all(folders)
    chosen = [pair for name in names for pair in _choose(name, known, folders)]
    found: list[Edits] = []
    begun: list[Specification] = []
    for specification, edits in chosen:
        if specification not in begun:
            begun.append(specification)
            found.append(specification.common)
        found.append(edits)
    merged = merge(found)
    check_host(merged)
    return merged


def list_names(folders: Sequence[str] = FOLDERS) -> set[str]:
    """All devices that files describe which can be used, by their names; none of a folder that cannot be read."""
    known = _read_all([one for one in folders if os.access(one, os.R_OK | os.X_OK)])
    return known.devices.keys() - known.twice.keys()


def is_name(text: str) -> bool:
    """Whether a device can be called so.

    >>> is_name("nvidia.com/gpu=0"), is_name("nvidia.com/gpu"), is_name("/dev/nvidia0")
    (True, False, False)
    """
    kind, _, name = text.partition("=")
    return bool(KIND.fullmatch(kind) and NAME.fullmatch(name))


def _choose(name: str, known: _Known, folders: Sequence[str]) -> list[tuple[Specification, Edits]]:
    if not is_name(name):
        raise CdiError(f"{name!r} does not name a device", "name one as VENDOR/CLASS=NAME, such as nvidia.com/gpu=0")
    if name in known.twice:
        raise CdiError(f"the device {name} stands in {known.twice[name]}", "take it out of one of them")
    if name in known.devices:
        return [known.devices[name]]
    kind, _, last = name.partition("=")
    found = [one for key, one in known.devices.items() if key.startswith(f"{kind}=")] if last == ALL else []
    if not found:
        raise _lacking(name, known, folders)
    return found


def _lacking(name: str, known: _Known, folders: Sequence[str]) -> CdiError:
    """Why a device is not there: the first file that cannot be used may be the one that has it."""
    others = sorted(key for key in known.devices if key.startswith(f"{name.partition('=')[0]}="))
    if others:
        return CdiError(f"this machine has no device {name}", f"it has {', '.join(others)}")
    if known.refused:
        refusal = next(iter(known.refused.values()))
        return CdiError(f"no CDI file that can be used describes {name}, and {refusal.message}", refusal.remedy)
    return CdiError(
        f"no CDI file in {' or '.join(folders)} describes {name}",
        "an operator writes one for each driver: see docs/environments.md",
    )


def _read_all(folders: Sequence[str]) -> _Known:
    known = _Known()
    for folder in folders:
        here: dict[str, Path] = {}
        for file in _files(Path(folder)):
            try:
                specification = _load(file)
            except CdiError as error:
                known.refused[file] = error
                continue
            _add(specification, file, here, known)
    return known


def _add(specification: Specification, file: Path, here: dict[str, Path], known: _Known) -> None:
    for last, edits in specification.devices.items():
        name = f"{specification.kind}={last}"
        if name in here:
            known.twice[name] = f"{here[name]} and in {file}"
        else:
            known.twice.pop(name, None)
        here[name] = file
        known.devices[name] = (specification, edits)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.suffix in (".json", *_YAML))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CdiError(f"{folder} cannot be read ({error.strerror})", "give it to root, with mode 0755") from error


def _load(file: Path) -> Specification:
    if file.suffix in _YAML:
        remedy = f"write {file.with_suffix('.json').name}, which nvidia-ctk does with --format json"
        raise CdiError(f"{file} is YAML, which boxes do not read", remedy)
    try:
        real = file.resolve(strict=True)
        _check_owners([real, *real.parents, *file.parent.resolve().parents, file.parent])
        return parse(real.read_bytes(), str(file))
    except OSError as error:
        raise CdiError(f"{file} cannot be read ({error.strerror})", "give it to root, with mode 0644") from error


def _check_owners(places: Sequence[Path]) -> None:
    """CdiError when others than root and this process's user may write a file, or put another in its place.

    In a folder such as /tmp nobody takes away what is another's.
    """
    for one in places:
        found = one.stat()
        is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        is_kept = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
        if (is_shared and not is_kept) or found.st_uid not in (0, os.geteuid()):
            mode = "0755" if stat.S_ISDIR(found.st_mode) else "0644"
            raise CdiError(f"others than root may write {one}", f"give it to root, with mode {mode}")
