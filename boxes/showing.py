"""What bubblewrap is told so that a program sees this machine's files, and some besides: devices and their drivers'."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from boxes.box import BoxError
from boxes.cdi import finding, libraries
from boxes.cdi.edits import DeviceNode, Edits, Mount
from boxes.cdi.place import CdiError

CDI_FOLDERS = "NODEWISE_CDI"
"""Environment variable with other folders of CDI files, with colons between."""
MOST_BESIDE = 1000
"""Files in a folder that can be shown with one more: each is mounted by itself."""

Options = Sequence[str]


@dataclass(frozen=True)
class Shown:
    """Options of bubblewrap.

    made       for what is not on this machine, by its path
    covering   for what lies over a file of this machine
    again      for device files outside of /dev, in a box in a box
    """

    made: Mapping[Path, Options] = field(default_factory=dict)
    covering: Options = ()
    again: Options = ()


def find_devices(names: Sequence[str]) -> Edits:
    """What a program gets with devices; BoxError when there is no such device, or something of it is not there."""
    if not names:
        return Edits()
    try:
        return finding.find(names, _cdi_folders())
    except CdiError as error:
        raise BoxError(error.message, error.remedy) from error


def list_devices() -> set[str]:
    """The names of all devices that CDI files of this machine describe."""
    return finding.list_names(_cdi_folders())


def _cdi_folders() -> Sequence[str]:
    said = os.environ.get(CDI_FOLDERS)
    return said.split(":") if said else finding.FOLDERS


def list_files(edits: Edits) -> list[DeviceNode | Mount]:
    """All that a program is to see, a folder before what lies in it."""
    every: list[DeviceNode | Mount] = [*edits.nodes, *edits.mounts, *libraries.by_soname(edits.mounts)]
    return sorted(every, key=lambda one: one.path)


def check_place(one: DeviceNode | Mount, path: Path, taken: Sequence[Path]) -> None:
    """BoxError when its path lies in a folder that has other content."""
    if at := next((folder for folder in taken if path.is_relative_to(folder)), None):
        raise BoxError(f"{one.place.text} is for {path}, and the program has other files in {at}", "write another path")


def choose_option(one: DeviceNode | Mount) -> str:
    """The option by which bubblewrap shows it, before the host's path and the program's."""
    if isinstance(one, DeviceNode):
        return "--dev-bind"
    return "--bind" if one.is_writable else "--ro-bind"


def show(edits: Edits, parts: Sequence[Path]) -> Shown:
    """How a program sees devices and files of drivers, if it sees this machine's files and parts of an environment."""
    made: dict[Path, Options] = {}
    covering: list[str] = []
    again: list[str] = []
    for one in list_files(edits):
        path, found = _look_at(one)
        check_place(one, path, parts)
        options = [choose_option(one), str(one.host), str(path)]
        if found is None and not any(path.is_relative_to(folder) for folder in made):
            made[path] = options
        elif found is None or not os.path.samestat(found, one.host.stat()):
            covering += options
        if isinstance(one, DeviceNode) and not path.is_relative_to("/dev"):
            again += ["--dev-bind", str(path), str(path)]
    return Shown(made, covering, again)


def show_folder(folder: Path, made: Mapping[Path, Options], how: str = "--bind", besides: Options = ()) -> list[str]:
    """What makes a folder as it is here, but with what is to be made in it, and without what is `besides`."""
    if folder in made:
        return list(made[folder])
    below = [one for one in made if one.is_relative_to(folder)]
    if folder.is_symlink():
        return ["--symlink", str(folder.readlink()), str(folder)]
    if not below:
        return [how, str(folder), str(folder)]
    names = {one.relative_to(folder).parts[0] for one in below}
    names |= {one.name for one in folder.iterdir()} if folder.is_dir() else set()
    if len(names) > MOST_BESIDE:
        raise BoxError(f"{below[0]} cannot be shown: {folder} has {len(names)} files", "describe it at another path")
    wanted = [folder / name for name in sorted(names) if str(folder / name) not in besides]
    return [word for one in wanted for word in show_folder(one, made, how, besides)]


def _look_at(one: DeviceNode | Mount) -> tuple[Path, os.stat_result | None]:
    """Where the program is to see it, without links on the way, and what is there on this machine now."""
    try:
        path = one.path.resolve()
        return path, path.stat()
    except FileNotFoundError:
        return path, None
    except OSError as error:
        why = f"{one.place.text} is for {one.path}, and that cannot be looked at ({error.strerror})"
        raise BoxError(why, "write another path") from error
