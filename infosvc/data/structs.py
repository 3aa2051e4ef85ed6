"""The msgspec struct of a record: the same fields, types and limits, decoded and checked in one fast pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

import msgspec

from infosvc.wire.fields import FREE, Field, Limits, fields_of

R = TypeVar("R")


def make_struct(record: type[R], *, strict: bool = False) -> type[R]:
    """A struct with the fields of a body; it stands in for the record wherever that is only read.

    A strict one, and those within it, refuses fields that the record does not have.
    """
    fields = [_field(one, strict) for one in fields_of(cast(type, record)) if one.described.sent]
    made = msgspec.defstruct(record.__name__, fields, gc=False, kw_only=True, forbid_unknown_fields=strict)
    return cast(type[R], made)


def _field(one: Field, strict: bool) -> tuple[str, Any] | tuple[str, Any, Any]:
    kind = _type(one.type, one.described.limits, one.described.each, one.described.keys, strict)
    kind = kind | None if one.nullable else kind
    if one.is_required or one.default is MISSING:
        return one.name, kind
    return one.name, kind, one.default


def _type(plain: Any, limits: Limits, each: Limits = FREE, keys: Limits = FREE, strict: bool = False) -> Any:
    origin, inner = get_origin(plain), get_args(plain)
    if origin is not None and issubclass(origin, Mapping):
        plain = dict[_type(inner[0], keys), _type(inner[1], each)]  # type: ignore[misc]
    elif origin is not None and issubclass(origin, Sequence):
        plain = list[_type(inner[0], each, strict=strict)]  # type: ignore[misc]
    elif is_dataclass(plain):
        plain = make_struct(cast(type, plain), strict=strict)
    limits_of: dict[str, Any] = {
        "ge": limits.least,
        "gt": limits.above,
        "le": limits.most,
        "min_length": limits.shortest,
        "max_length": limits.longest,
        "pattern": limits.pattern,
    }
    given = {name: value for name, value in limits_of.items() if value is not None}
    return Annotated[plain, msgspec.Meta(**given)] if given else plain
