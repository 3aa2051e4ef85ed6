"""What a caller may ask for; everything else is refused before Docker hears of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from boxes.broker.frames import LONGEST_SIDE
from boxes.cdi.finding import is_name

IMAGE = re.compile(r"sha256:[0-9a-f]{64}")
BOX = re.compile(r"nodewise-[0-9a-f]{16}")
_REPOSITORY = re.compile(r"[0-9a-f]{32}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LEAST_MEMORY_MB = 16
MOST_ARGUMENTS = 10_000
MOST_DEVICES = 100
MOST_PORT = (1 << 16) - 1
MOST_LAYERS = 128
MOST_LAYER_BYTES = 64 << 30


class Refusal(Exception):
    """An order that is not carried out; `message` says why, `remedy` what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True)
class Look:
    """Ask whether Docker has an image."""

    image: str


@dataclass(frozen=True)
class Load:
    """Give Docker an image; the open file is its archive, as `docker save` writes one."""

    image: str


@dataclass(frozen=True)
class Pull:
    """Let Docker take an image that the caller serves on a port of 127.0.0.1 under a name (boxes.broker.manifest).

    configuration    of the image, whose id is its SHA-256
    sizes            of its layers, unpacked, in bytes
    """

    image: str
    port: int
    name: str
    configuration: str
    sizes: Sequence[int]


@dataclass(frozen=True)
class Run:
    """Run a program in an image; the open file is the one folder of the machine that it sees, under the same name.

    `devices` are names, such as nvidia.com/gpu=0; an order may leave them out.
    """

    image: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    memory_mb: int
    vcores: int
    devices: Sequence[str] = ()


@dataclass(frozen=True)
class Open:
    """Run another program in a box that runs already, by a terminal; `box` is the name that its caller was told."""

    box: str
    argv: Sequence[str]
    columns: int
    rows: int


Order = Look | Load | Pull | Run | Open
_KINDS: Mapping[str, type[Order]] = {"look": Look, "load": Load, "pull": Pull, "run": Run, "open": Open}


def parse(line: bytes) -> Order:
    """The order that a line of JSON holds; Refusal for one that has another form."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise Refusal("the order is not JSON") from None
    if not isinstance(said, dict):
        raise Refusal("the order is not a JSON object")
    kind = _KINDS.get(_take(said, "do", _is_text))
    if kind is None:
        raise Refusal(f"there is no order {said['do']!r}", f"ask for one of {', '.join(_KINDS)}")
    names = ("do", *kind.__dataclass_fields__)
    if unknown := sorted(set(said) - set(names)):
        raise Refusal(f"an order to {said['do']} has no {unknown[0]!r}")
    needed = [name for name, one in kind.__dataclass_fields__.items() if one.default is MISSING or name in said]
    return kind(**{name: _take(said, name, _CHECKS[name]) for name in needed})


def _take(said: Mapping[str, Any], name: str, is_right: Callable[[Any], bool]) -> Any:
    if name not in said:
        raise Refusal(f"the order has no {name!r}")
    if not is_right(said[name]):
        raise Refusal(f"{name!r} of the order is not what it may be")
    return said[name]


def _is_text(value: Any) -> bool:
    """Whether it is text that the kernel can have: no NUL, and no half of a pair of surrogates."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_argv(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MOST_ARGUMENTS and all(map(_is_text, value)) and value[0] != ""


def _is_environment(value: Any) -> bool:
    return isinstance(value, dict) and all(_VARIABLE.fullmatch(name) and _is_text(value[name]) for name in value)


def _is_devices(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) <= MOST_DEVICES and all(_is_text(one) and is_name(one) for one in value)
    )


def _is_count(value: Any, least: int, most: int = 10**7) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_sizes(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_LAYERS
        and all(_is_count(one, 0, MOST_LAYER_BYTES) for one in value)
    )


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "box": lambda value: isinstance(value, str) and BOX.fullmatch(value) is not None,
    "devices": _is_devices,
    "configuration": _is_text,
    "columns": lambda value: _is_count(value, 1, LONGEST_SIDE),
    "image": lambda value: isinstance(value, str) and IMAGE.fullmatch(value) is not None,
    "argv": _is_argv,
    "environment": _is_environment,
    "memory_mb": lambda value: _is_count(value, LEAST_MEMORY_MB),
    "name": lambda value: isinstance(value, str) and _REPOSITORY.fullmatch(value) is not None,
    "port": lambda value: _is_count(value, 1, MOST_PORT),
    "rows": lambda value: _is_count(value, 1, LONGEST_SIDE),
    "sizes": _is_sizes,
    "vcores": lambda value: _is_count(value, 1),
}
