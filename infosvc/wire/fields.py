"""What a field of a record says of itself, in its metadata: help, unit, an example, and what it may be.

    timeout: float = field(default=10.0, metadata=describe("until a run is killed", unit="seconds", limits=POSITIVE))

The service makes from it the check of a body, the struct that a report is decoded into, and the OpenAPI document, and
the command line its options. Text
without a unit stands in `help` alone; one with a unit is read as "seconds until a run is killed". What an answer works
out from its fields is a property that says the same of itself:

    @property
    @describe_property("of the node that worked longest", unit="seconds", example=20.0)
    def makespan_seconds(self) -> float: ...
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache, reduce
from operator import or_
from typing import Any, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])

PROGRAM_NAME = re.compile(r"[a-z0-9._-]{1,64}", re.ASCII)
"""How a program may be called that YARN's plug-in has an order for: by a tag, and YARN keeps tags in small letters."""
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
    answers alone, one that is not `answered` in none. `name` is what an answer calls it, if not as the record does, and
    `flag` what the command line calls it.
    `nullable` is said of a field whose None never leaves the record. Records in a list may leave fields out that stand
    once above them: then `row` is the name of what is left, and those fields.
    """

    help: str = ""
    unit: str = ""
    example: Any = NO_EXAMPLE
    limits: Limits = FREE
    each: Limits = FREE
    keys: Limits = FREE
    required: bool | None = None
    sent: bool = True
    answered: bool = True
    name: str = ""
    flag: str = ""
    nullable: bool | None = None
    row: tuple[str, Collection[str]] | None = None

    @property
    def text(self) -> str:
        """Unit and help in one."""
        return f"{self.unit} {self.help}".strip()


def describe(help: str = "", **said: Any) -> dict[str, Described]:
    """Metadata of a dataclass's field; what can be said stands in Described."""
    return {_KEY: Described(help, **said)}


def describe_property(help: str = "", **said: Any) -> Callable[[F], F]:
    """Put a property into the answers beside the fields; it stands in no body."""

    def mark(getter: F) -> F:
        setattr(getter, _KEY, Described(help, sent=False, **said))
        return getter

    return mark


@dataclass(frozen=True)
class Field:
    """One field or described property of a record: its type without None, whether it may be None, its description."""

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

    @property
    def answer_name(self) -> str:
        """What an answer calls it."""
        return self.described.name or self.name


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
    """The fields of a record, in its order, and its described properties after them."""
    hints = get_type_hints(record)
    found = [_field(one, hints[one.name]) for one in fields(record)]
    for name, getter in _getters(record).items():
        found.append(_make(name, get_type_hints(getter)["return"], MISSING, getattr(getter, _KEY)))
    return tuple(found)


def answer_of(record: Any) -> dict[str, Any]:
    """The JSON object that answers with a record: everything that is described as answered, records within it too."""
    found = [one for one in fields_of(cast(type, type(record))) if one.described.answered]
    return {one.answer_name: _plain(getattr(record, one.name)) for one in found}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return answer_of(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value


def _getters(record: type) -> dict[str, Callable[..., Any]]:
    """The getters of the described properties of a record and of what it inherits from, in that order of writing."""
    found = [(name, one.fget) for each in reversed(record.__mro__) for name, one in vars(each).items() if _is_said(one)]
    return {name: getter for name, getter in found if getter}


def _is_said(found: Any) -> bool:
    return isinstance(found, property) and hasattr(found.fget, _KEY)


def _field(found: Any, hint: Any) -> Field:
    default = found.default if found.default_factory is MISSING else found.default_factory()
    return _make(found.name, hint, default, found.metadata.get(_KEY, Described()))


def _make(name: str, hint: Any, default: Any, said: Described) -> Field:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kept = [part for part in parts if part is not type(None)]
    nullable = len(kept) < len(parts) if said.nullable is None else said.nullable
    return Field(name, reduce(or_, kept), nullable, default, said)
