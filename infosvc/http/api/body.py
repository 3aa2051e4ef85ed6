"""The body of a request: one JSON object, its fields checked as the records of the wire describe them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING
from enum import StrEnum
from typing import Any, NoReturn, TypeVar, get_origin

from flask import current_app, request

from infosvc.core.service import components_of
from infosvc.wire.errors import InvalidInput, Malformed
from infosvc.wire.fields import LARGEST, Field, Limits, fields_of
from infosvc.wire.records import check_name

R = TypeVar("R")


def body() -> Fields:
    """The request's JSON object; Malformed when it is not one or too deep, InvalidInput when a field stands twice."""
    try:
        text = request.get_data().decode()
        parsed = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
        # An escaped half of a surrogate pair decodes, but can be stored nowhere.
        json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the body is not JSON ({error})", remedy="send one object") from error
    if not isinstance(parsed, dict):
        raise Malformed(f"the body is a JSON {type(parsed).__name__}", remedy="send one object")
    deepest = components_of(current_app).settings.max_depth
    if _depth(parsed) > deepest:
        raise Malformed(f"the body is nested deeper than {deepest} levels", remedy="send a flatter one")
    return Fields(parsed)


def read(record: type[R], given: Fields) -> R:
    """A record from a body that holds its fields."""
    return record(**read_fields(record, given))


def read_fields(record: type, given: Fields) -> dict[str, Any]:
    """Those fields of a record that stand in a body, checked; None for one without a default that is left out.

    A field that the record does not have is refused; one that is only answered is passed over, so that an answer can
    be changed and sent back.
    """
    given.refuse_others({name for one in fields_of(record) for name in (one.name, one.answer_name)})
    return {one.name: given.take(one) for one in fields_of(record) if one.described.sent}


class Fields:
    """A JSON object whose fields are taken one by one; InvalidInput names the field that is wrong."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def refuse_others(self, known: Collection[str]) -> None:
        """Raise InvalidInput for a field that is not among the known ones."""
        for name in self._given:
            if name not in known:
                listed = ", ".join(sorted(known))
                raise InvalidInput(f"this call knows no field {name[:80]!r}", name[:80], remedy=f"it knows {listed}")

    def take(self, one: Field) -> Any:
        """What the body holds for a field of a record, or its default; null counts as missing where it may be null."""
        value, kind = self._given.get(one.name), one.type
        if value is None:
            if one.name in self._given and not one.nullable:
                remedy = "give a value" if one.is_required else "give a value, or leave it out"
                raise InvalidInput(f"{one.name} is null", one.name, remedy=remedy)
            if one.is_required:
                raise InvalidInput(f"{one.name} is missing", one.name)
            return None if one.default is MISSING else one.default
        if get_origin(kind) is tuple:
            return self._names(one, value)
        if get_origin(kind) is Sequence:
            return self._texts(one, value)
        if get_origin(kind) is Mapping:
            return self._named_texts(one, value)
        if issubclass(kind, StrEnum):
            return self._choice(one, value)
        return {bool: self._flag, int: self._whole, float: self._number, str: self._text}[kind](one, value)

    def all(self) -> dict[str, Any]:
        """All fields as they came."""
        return dict(self._given)

    def get(self, name: str) -> Any:
        """The field as it came, None when it is missing or null."""
        return self._given.get(name)

    def refuse(self, name: str, value: Any, allowed: str) -> NoReturn:
        """Raise InvalidInput for a field."""
        shown = repr(value) if len(repr(value)) <= 80 else repr(value)[:80] + "..."
        raise InvalidInput(f"{name} is {shown}: it must be {allowed}", name)

    def _text(self, one: Field, value: Any) -> str:
        limits = one.described.limits
        most, empty = limits.longest or 0, not limits.shortest
        if not isinstance(value, str) or len(value) > most or not (value or empty):
            self.refuse(one.name, value, f"text of {'at most' if empty else '1 to'} {most} characters")
        if limits.form and not re.fullmatch(limits.pattern or "", value):
            self.refuse(one.name, value, limits.form)
        return str(value)

    def _number(self, one: Field, value: Any) -> float:
        limits = one.described.limits
        above, least = limits.above, limits.least or 0.0
        allowed = f"a number, at least {least:g}" if above is None else f"a number greater than {above:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(one.name, value, allowed)
        if not (value <= LARGEST and (value >= least if above is None else value > above)):
            self.refuse(one.name, value, f"{allowed}, at most {LARGEST:g}")
        return float(value)

    def _whole(self, one: Field, value: Any) -> int:
        least, most = one.described.limits.least or 0, one.described.limits.most or LARGEST
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(one.name, value, f"a whole number from {least} to {most}")
        return int(value)

    def _flag(self, one: Field, value: Any) -> bool:
        if not isinstance(value, bool):
            self.refuse(one.name, value, "true or false")
        return bool(value)

    def _names(self, one: Field, value: Any) -> tuple[str, ...]:
        most = one.described.limits.longest or 0
        if not isinstance(value, list) or len(value) > most or not all(isinstance(item, str) for item in value):
            self.refuse(one.name, value, f"a list of at most {most} data names")
        if len(set(value)) < len(value):
            self.refuse(one.name, value, "a list that holds each name once")
        return tuple(check_name(item, f"{one.name}[{place}]") for place, item in enumerate(value))

    def _texts(self, one: Field, value: Any) -> tuple[str, ...]:
        """A list of texts, none of which a refusal shows: they may be secrets."""
        least, most = one.described.limits.shortest or 0, one.described.limits.longest or 0
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise InvalidInput(f"{one.name} must be a list of {least} to {most} texts", one.name)
        for place, text in enumerate(value):
            _check_hidden(text, one.described.each, one.name, f"{one.name}[{place}]")
        if one.described.limits.unique and len(set(value)) < len(value):
            raise InvalidInput(f"{one.name} must hold each text once", one.name)
        return tuple(value)

    def _named_texts(self, one: Field, value: Any) -> dict[str, str]:
        """An object of texts, of which a refusal shows only the names."""
        most = one.described.limits.longest or 0
        if not isinstance(value, dict) or len(value) > most:
            raise InvalidInput(f"{one.name} must be an object of at most {most} texts", one.name)
        for name, text in value.items():
            _check_hidden(name, one.described.keys, one.name, f"the name {name[:80]!r} in {one.name}")
            _check_hidden(text, one.described.each, one.name, f"{one.name}[{name[:80]!r}]")
        return dict(value)

    def _choice(self, one: Field, value: Any) -> Any:
        if value not in list(one.type):
            self.refuse(one.name, value, "one of " + ", ".join(one.type))
        return one.type(value)


def _check_hidden(text: Any, limits: Limits, field: str, where: str) -> None:
    """InvalidInput says what a text must be, and not what it is."""
    if not isinstance(text, str) or len(text) > (limits.longest or 0):
        raise InvalidInput(f"{where} must be text of at most {limits.longest} characters", field)
    if limits.form and not re.fullmatch(limits.pattern or "", text):
        raise InvalidInput(f"{where} must be {limits.form}", field)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise InvalidInput(f"{name[:80]} stands twice in the body", name[:80], remedy="send it once")
        fields[name] = value
    return fields


def _depth(value: Any) -> int:
    """How many lists and objects stand within each other at most."""
    depth, level = 0, [value]
    while level:
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [each for part in inner for each in (part.values() if isinstance(part, dict) else part)]
        depth += bool(inner)
    return depth


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
