"""What a field of a record says of itself, in its metadata: help, unit, an example, and what it may be.

    timeout: float = field(default=10.0, metadata=described("until a run is killed", unit="seconds", limits=POSITIVE))

The service makes from it the check of a body, the struct that a report is decoded into, and the OpenAPI document. Text
without a unit stands in `help` alone; one with a unit is read as "seconds until a run is killed".
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

LARGEST = 1e15
NO_EXAMPLE: Any = object()
_KEY = "described"


@dataclass(frozen=True)
class Limits:
    """What a value may be: a number by its size, a text by its characters, a list or mapping by how much it holds.

    `form` says a pattern in words; the check of a body refuses by them. Without words, the call itself checks it.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    form: str = ""
    choices: tuple[str, ...] = ()
    unique: bool = False


FREE = Limits()
SECONDS = Limits(least=0, most=LARGEST)
POSITIVE = Limits(above=0, most=LARGEST)
COUNT = Limits(least=0, most=10**9)


@dataclass(frozen=True)
class Described:
    """The description of one field; `each` and `keys` are the limits of a list's items, a mapping's values and keys.

    A body must hold a `required` field; by default that is one without a default. A field that is not `sent` stands in
    answers alone. `nullable` is said of a field whose None never leaves the record. Records in a list may leave fields
    out that stand once above them: then `row` is the name of what is left, and those fields.
    """

    help: str = ""
    unit: str = ""
    example: Any = NO_EXAMPLE
    limits: Limits = FREE
    each: Limits = FREE
    keys: Limits = FREE
    required: bool | None = None
    sent: bool = True
    nullable: bool | None = None
    row: tuple[str, Collection[str]] | None = None

    @property
    def text(self) -> str:
        """Unit and help in one."""
        return f"{self.unit} {self.help}".strip()


def describe(help: str = "", **said: Any) -> dict[str, Described]:
    """Metadata of a dataclass's field; what can be said stands in Described."""
    return {_KEY: Described(help, **said)}


@dataclass(frozen=True)
class Field:
    """One field of a record: its type without None, whether it may be None, and what it says of itself."""

    name: str
    type: Any
    nullable: bool
    default: Any
    described: Described = field(default_factory=Described)

    @property
    def is_required(self) -> bool:
        """Whether a body must hold it."""
        said = self.described.required
        return self.default is MISSING if said is None else said


class Record:
    """Shared by all records: to and from the JSON objects of the wire."""

    def to_json(self) -> dict[str, Any]:
        """Field name -> value; enums as their text."""
        record: Any = self
        return {k: v.value if isinstance(v, Enum) else v for k, v in asdict(record).items()}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Build from a JSON object; unknown keys are ignored so that a newer peer may add some."""
        record: Any = cls
        known = {each.name for each in fields(record)}
        built: Self = record(**{k: v for k, v in body.items() if k in known})
        return built


@cache
def fields_of(record: type) -> tuple[Field, ...]:
    """The fields of a record, in its order."""
    hints = get_type_hints(record)
    return tuple(_field(one, hints[one.name]) for one in fields(record))


def _field(found: Any, hint: Any) -> Field:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kept = [part for part in parts if part is not type(None)]
    said = found.metadata.get(_KEY, Described())
    default = found.default if found.default_factory is MISSING else found.default_factory()
    nullable = len(kept) < len(parts) if said.nullable is None else said.nullable
    return Field(found.name, kept[0], nullable, default, said)
