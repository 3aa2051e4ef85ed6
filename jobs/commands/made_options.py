"""Options of the command line, made from the fields of dataclasses, and instances made from what was given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click

from jobs.application.options import Option, options_of
from jobs.commands.described_options import described_options

T = TypeVar("T")
Command = Callable[..., Any]
_UNITS = {"m": 1, "g": 1024}
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Count(click.ParamType[tuple[str, int]]):
    """NAME=COUNT."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """The name and the count."""
        if isinstance(value, tuple):
            return value
        name, _, count = str(value).partition("=")
        if not (name and count.isascii() and count.isdecimal() and int(count) > 0):
            self.fail(f"{value!r} has to be NAME=COUNT, such as yarn.io/gpu=1", param, ctx)
        return name, int(count)


class Megabytes(click.IntRange):
    """MB as a number, or with a unit: 640, 640m, 2g."""

    name = "megabytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number of MB."""
        number, unit = str(value)[:-1], str(value)[-1:].lower()
        if unit in _UNITS and number.isascii() and number.isdecimal():
            value = int(number) * _UNITS[unit]
        return super().convert(value, param, ctx)


class Variable(click.ParamType[tuple[str, str]]):
    """NAME=VALUE."""

    name = "variable"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The name and the value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not (name and equals):
            self.fail(f"{value!r} has to be NAME=VALUE, such as SEED=1", param, ctx)
        return name, text


def made_options(*kinds: type[Any], without: Collection[str] = ()) -> Callable[[Command], Command]:
    """The options of some dataclasses but the fields `without`, in their order.

    Those that must be given come first, those that are late last.
    """
    found = [
        (one, known, get_type_hints(kind)[one.name])
        for kind in kinds
        for one, known in chain(options_of(kind), described_options(kind))
        if one.name not in without
    ]
    found.sort(key=lambda one: (not _is_required(one[0]), one[1].is_late))

    def add(command: Command) -> Command:
        for one, known, hint in reversed(found):
            command = _make_option(one, known, hint)(command)
        return command

    return add


def collect(kind: type[T], given: Mapping[str, Any], **others: Any) -> T:
    """An instance, from the values of its options and `others`; files become their names."""
    hints = get_type_hints(kind)
    known = chain(options_of(kind), described_options(kind))
    values = {one.name: _value(given[one.name], hints[one.name]) for one, _ in known if one.name in given}
    return kind(**values, **others)


def _value(given: Any, hint: Any) -> Any:
    """What was given, as the field has it."""
    if isinstance(given, Path):
        return str(given)
    if get_origin(hint) is Mapping:
        return dict(given)
    return tuple(map(str, given)) if _is_repeated(hint) else given


def _is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _is_repeated(hint: Any) -> bool:
    return get_origin(hint) in (Mapping, Sequence)


def _make_option(one: Field[Any], known: Option, hint: Any) -> Callable[[Command], Command]:
    flag = f"{known.flag}/{known.opposite}" if known.opposite else known.flag
    more: dict[str, Any] = {"required": True} if _is_required(one) else {"default": _shown_default(one.default)}
    shown = known.show_default and one.default is not MISSING and one.default is not None
    if _is_repeated(hint):
        more, shown = {"multiple": True}, False
    if hint is bool and not known.opposite:
        more["is_flag"], shown = True, False
    elif not known.opposite:
        more["type"] = _type(known, hint)
    return click.option(
        flag, one.name, help=known.help, metavar=known.metavar, envvar=known.envvar, show_default=shown, **more
    )


def _type(known: Option, hint: Any) -> Any:
    if known.is_file:
        return FILE
    if get_origin(hint) is Mapping:
        return Variable() if get_args(hint)[1] is str else Count()
    if known.is_memory:
        return Megabytes(_whole(known.least), _whole(known.most))
    if hint in (int, int | None):
        return click.IntRange(_whole(known.least), _whole(known.most))
    if hint in (float, float | None):
        return click.FloatRange(known.least, known.most)
    return str


def _shown_default(default: Any) -> Any:
    """A default as people write it: 20, not 20.0."""
    return int(default) if isinstance(default, float) and default.is_integer() else default


def _whole(limit: float | None) -> int | None:
    return None if limit is None else int(limit)
