"""A job's options, each written once: the field of a dataclass, with what the command line and the checks need.

    copies: int = option(1, help="How many copies run.", least=1, most=1024)

The field is what the application master and the containers are told; jobs/commands makes the command line of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from jobs.errors import JobError

_KEY = "option"


@dataclass(frozen=True)
class Option:
    """How a setting is given: `flag` is its name on the command line; numbers lie between `least` and `most`.

    `is_file` says that it is a file of this machine, `envvar` where its value stands if nobody gives it. `opposite` is
    the flag that switches off what is on. A field that is a sequence or a mapping may be given several times.
    `is_memory` says that the number counts MB, and may be written as 640m or 2g, `is_late` that it is shown behind the
    others.
    """

    flag: str
    help: str
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    envvar: str | None = None
    is_file: bool = False
    is_memory: bool = False
    is_late: bool = False
    opposite: str = ""
    show_default: bool = True


def option(default: Any = MISSING, *, flag: str = "", help: str, **more: Any) -> Any:
    """A field that users set; without `flag` it is called as the field is. A class as `default` makes the default."""
    metadata = {_KEY: (flag, help, more)}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def options_of(kind: Any) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of a dataclass that users set, in their order."""
    for one in fields(kind):
        if _KEY in one.metadata:
            flag, text, more = one.metadata[_KEY]
            yield one, Option(flag or f"--{one.name.replace('_', '-')}", text, **more)


def check_options(settings: Any) -> None:
    """JobError names the first number that lies outside of its limits, and the limits."""
    for one, known in options_of(settings):
        for number, text in _numbers(getattr(settings, one.name)):
            if known.least is not None and not number >= known.least:
                raise JobError(f"{known.flag} is {text}", remedy=f"it has to be at least {known.least:g}")
            if known.most is not None and not number <= known.most:
                raise JobError(f"{known.flag} is {text}", remedy=f"it has to be at most {known.most:g}")


def _numbers(value: Any) -> Iterator[tuple[float, str]]:
    """The numbers of a value, each as users say it."""
    if isinstance(value, Mapping):
        yield from ((count, f"{name}={count}") for name, count in value.items())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value, str(value)
