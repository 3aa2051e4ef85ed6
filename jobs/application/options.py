"""A job's options, each written once: the field of a dataclass, with what the command line and the checks need.

    copies: int = option(1, help="How many copies run.", least=1, most=1024)

The field is what the application master and the containers are told; jobs/commands makes the command line of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from jobs.errors import JobError

_KEY = "option"


@dataclass(frozen=True)
class Option:
    """How a setting is given: `flag` is its name on the command line; numbers lie between `least` and `most`.

    `is_file` says that it is a file of this machine, `envvar` where its value stands if nobody gives it. `opposite` is
    the flag that switches off what is on. `is_memory` says that the number counts MB, and may be written as 640m or 2g.
    """

    flag: str
    help: str
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    envvar: str | None = None
    is_file: bool = False
    is_memory: bool = False
    opposite: str = ""
    show_default: bool = True


def option(default: Any = MISSING, *, flag: str = "", help: str, **more: Any) -> Any:
    """A field that users set; without `flag` it is called as the field is."""
    return field(default=default, metadata={_KEY: (flag, help, more)})


def options_of(kind: Any) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of a dataclass that users set, in their order."""
    for one in fields(kind):
        if _KEY in one.metadata:
            flag, text, more = one.metadata[_KEY]
            yield one, Option(flag or f"--{one.name.replace('_', '-')}", text, **more)


def check_options(settings: Any) -> None:
    """JobError names the first number that lies outside of its limits, and the limits."""
    for one, known in options_of(settings):
        value = getattr(settings, one.name)
        if value is None or isinstance(value, str | bool):
            continue
        if known.least is not None and not value >= known.least:
            raise JobError(f"{known.flag} is {value}", remedy=f"it has to be at least {known.least:g}")
        if known.most is not None and not value <= known.most:
            raise JobError(f"{known.flag} is {value}", remedy=f"it has to be at most {known.most:g}")
