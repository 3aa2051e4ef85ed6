"""The options of a record of the wire, from what its fields say of themselves to those who read the REST document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from typing import Any, get_origin, get_type_hints

from infosvc.wire.fields import LARGEST, Described
from jobs.application.options import Option

_KEY = "described"


def described_options(record: Any) -> Iterator[tuple[Field[Any], Option]]:
    """The fields of a dataclass that describe themselves and may be sent, in their order; none of any other."""
    hints = get_type_hints(record)
    for one in fields(record):
        described = one.metadata.get(_KEY)
        if described is not None and described.sent:
            yield one, _option(one, described, get_origin(hints[one.name]))


def _option(one: Field[Any], described: Described, origin: Any) -> Option:
    limits, text = described.limits, described.text
    is_repeated = (origin is not None and one.default in ((),)) or origin is Mapping
    return Option(
        flag=described.flag or f"--{one.name.replace('_', '-')}",
        help=f"{text[:1].upper()}{text[1:]}{'; repeatable' if is_repeated else ''}.",
        least=limits.least if limits.above is None else limits.above,
        most=None if limits.most == LARGEST else limits.most,
        metavar="NAME=VALUE" if origin is Mapping else None,
        is_memory=described.unit == "MB",
        show_default=one.default not in (None, ""),
    )
