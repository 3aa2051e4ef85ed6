"""Options of the command line, made from what a record says of its fields: help, unit, default, and what it may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from enum import StrEnum
from typing import Any, get_origin

import click

from infosvc.commands.spans import Seconds
from infosvc.wire.fields import LARGEST, Field, fields_of

Command = Callable[..., Any]


def record_options(record: type, *names: str) -> Callable[[Command], Command]:
    """An option for each field that a body holds, or each of these; None, or (), is what was left out."""
    chosen = [one for one in fields_of(record) if one.described.sent and (not names or one.name in names)]

    def add(command: Command) -> Command:
        for one in reversed(chosen):
            command = _option(one)(command)
        return command

    return add


def _option(one: Field) -> Callable[[Command], Command]:
    """The option of one field; the service checks what only it can."""
    flag = one.described.flag or f"--{one.name.replace('_', '-')}"
    is_list = get_origin(one.type) is tuple
    return click.option(flag, one.name, type=_type(one), multiple=is_list, help=_help(one, is_list))


def _help(one: Field, is_list: bool) -> str:
    text = one.described.text
    sentence = f"{text[:1].upper()}{text[1:]}" + ("; repeatable, '' for none." if is_list else ".")
    if one.default in (MISSING, None, "", ()):
        return sentence
    shown = f"{one.default:g}" if isinstance(one.default, float) else str(one.default)
    return f"{sentence}  [default: {shown}]"


def _type(one: Field) -> click.ParamType[Any]:
    limits = one.described.limits
    if get_origin(one.type) is tuple or one.type is str:
        return click.STRING
    if issubclass(one.type, StrEnum):
        return click.Choice([each.value for each in one.type])
    least, most = limits.least, None if limits.most == LARGEST else limits.most
    if one.type is int:
        return click.IntRange(None if least is None else int(least), None if most is None else int(most))
    lowest = least if limits.above is None else limits.above
    make = Seconds if one.described.unit == "seconds" else click.FloatRange
    return make(lowest, most, min_open=limits.above is not None)
