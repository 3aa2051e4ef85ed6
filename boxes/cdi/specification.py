"""Reads the text of a CDI file. What is not known is refused, as the file may mean something by it.

Of what a program may get, it takes variables, device files and mounts. NVIDIA's hooks that make links and caches of
libraries are left out: a box shows each library under the name by which programs ask for it, so nothing is left for
them to do. Any other hook is a program that would run outside of the box, and is refused. Groups are left out, too: a
program in a box has those of its user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxes.cdi.edits import DeviceNode, Edits, Mount
from boxes.cdi.place import Place

KIND = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[01]\.\d+\.\d+")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=([^\0]*)")
_PERMISSIONS = re.compile(r"[rwm]{1,3}")
_OF_LIBRARIES = {
    "chmod",
    "create-symlinks",
    "disable-device-node-modification",
    "enable-cuda-compat",
    "update-ldcache",
}
_HOOKS = {"nvidia-ctk", "nvidia-cdi-hook"}
_BINDS = {"", "none", "bind", "rbind"}
_OPTIONS = {"ro", "rw", "bind", "rbind", "nosuid", "nodev", "noexec", "private", "rprivate", "slave", "rslave"}
_KERNELS = (Path("/proc"), Path("/sys"))


@dataclass(frozen=True)
class Specification:
    """What one file describes: devices of a kind by their names, and what comes with each of them."""

    kind: str
    devices: Mapping[str, Edits]
    common: Edits = field(default_factory=Edits)


def parse(content: bytes, file: str) -> Specification:
    """CdiError, which names the file and the field, for what is not a specification that boxes know."""
    place = Place(file)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise place.refuse("is not JSON") from None
    _check_fields(body, place, {"cdiVersion", "kind", "devices"}, {"annotations", "containerEdits"})
    _take_text(body, "cdiVersion", place, _VERSION, "is not a version that boxes know, which are 0.x.y and 1.x.y")
    kind = _take_text(body, "kind", place, KIND, "is not VENDOR/CLASS")
    devices = dict(_read_device(one, at) for one, at in _take_list(body, "devices", place))
    if not devices or len(devices) < len(body["devices"]):
        raise place.at("devices").refuse("names no device, or one twice")
    return Specification(kind, devices, _read_edits(body.get("containerEdits", {}), place.at("containerEdits")))


def _read_device(body: Any, place: Place) -> tuple[str, Edits]:
    _check_fields(body, place, {"name", "containerEdits"}, {"annotations"})
    name = _take_text(body, "name", place, NAME, "is not a name of letters, digits and _.:-")
    return name, _read_edits(body["containerEdits"], place.at("containerEdits"))


def _read_edits(body: Any, place: Place) -> Edits:
    _check_fields(body, place, (), {"env", "deviceNodes", "mounts", "hooks", "additionalGids"})
    for hook, at in _take_list(body, "hooks", place):
        _check_hook(hook, at)
    return Edits(
        dict(_read_variable(one, at) for one, at in _take_list(body, "env", place)),
        [_read_node(one, at) for one, at in _take_list(body, "deviceNodes", place)],
        [_read_mount(one, at) for one, at in _take_list(body, "mounts", place)],
    )


def _read_variable(text: Any, place: Place) -> tuple[str, str]:
    if not (isinstance(text, str) and (match := _VARIABLE.fullmatch(text))):
        raise place.refuse("is not NAME=VALUE")
    return match[1], match[2]


def _read_node(body: Any, place: Place) -> DeviceNode:
    others = {"hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"}
    _check_fields(body, place, {"path"}, others)
    path = _take_path(body, "path", place)
    if body.get("type", "c") not in ("b", "c", "u"):
        raise place.at("type").refuse("is none of b, c and u")
    numbers = [body.get(name, 0) for name in ("major", "minor")]
    if not all(isinstance(number, int) for number in numbers):
        raise place.at("major").refuse("or minor is not a whole number")
    permissions = body.get("permissions") or "rwm"
    if not (isinstance(permissions, str) and _PERMISSIONS.fullmatch(permissions)):
        raise place.at("permissions").refuse("is not of r, w and m")
    host = _take_path(body, "hostPath", place) if body.get("hostPath") else path
    number = (numbers[0], numbers[1]) if numbers[0] else None
    return DeviceNode(path, host, number, permissions, place)


def _read_mount(body: Any, place: Place) -> Mount:
    _check_fields(body, place, {"hostPath", "containerPath"}, {"type", "options"})
    if body.get("type", "") not in _BINDS:
        raise place.at("type").refuse("is not bind: boxes mount nothing but files and folders of this machine")
    options = [one for one, _ in _take_list(body, "options", place)]
    if unknown := [one for one in options if one not in _OPTIONS]:
        raise place.at("options").refuse(f"has {unknown[0]!r}, which boxes do not know")
    path, host = _take_path(body, "containerPath", place), _take_path(body, "hostPath", place)
    return Mount(path, host, "rw" in options, place)


def _check_hook(body: Any, place: Place) -> None:
    _check_fields(body, place, {"hookName", "path"}, {"args", "env", "timeout"})
    words = body.get("args") or []
    is_of_libraries = isinstance(words, list) and not _OF_LIBRARIES.isdisjoint(map(str, words[1:3]))
    if Path(str(body["path"])).name not in _HOOKS or not is_of_libraries:
        raise place.refuse(f"runs {body['path']}, and boxes run no program of a CDI file", "take the hook out")


def _take_path(body: Mapping[str, Any], name: str, place: Place) -> Path:
    """An absolute path that has one spelling alone, and is none of the kernel's own."""
    text = body[name]
    if not isinstance(text, str) or not text.startswith("/") or "\0" in text or ".." in text.split("/"):
        raise place.at(name).refuse("is not an absolute path")
    path = Path(text.replace("//", "/"))
    if len(path.parts) == 1 or any(path.is_relative_to(one) for one in _KERNELS):
        raise place.at(name).refuse(f"is {path}, which boxes leave as it is")
    return path


def _take_text(body: Mapping[str, Any], name: str, place: Place, form: re.Pattern[str], otherwise: str) -> str:
    text = body[name]
    if not (isinstance(text, str) and form.fullmatch(text)):
        raise place.at(name).refuse(otherwise)
    return text


def _take_list(body: Mapping[str, Any], name: str, place: Place) -> list[tuple[Any, Place]]:
    """The items of a list, each with its place; none where the field is left out."""
    found = body.get(name) or []
    if not isinstance(found, list):
        raise place.at(name).refuse("is not a list")
    return [(one, place.at(name).item(number)) for number, one in enumerate(found)]


def _check_fields(body: Any, place: Place, needed: Collection[str], others: Collection[str]) -> None:
    if not isinstance(body, dict):
        raise place.refuse("is not a JSON object")
    for name in body:
        if name not in needed and name not in others:
            raise place.at(name).refuse("is a field that boxes do not know", "take it out")
    for name in needed:
        if name not in body:
            raise place.at(name).refuse("is missing")
