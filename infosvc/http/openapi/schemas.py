"""The models of the OpenAPI document, made from what the records of the wire say of their fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, is_dataclass
from enum import StrEnum
from typing import Any, cast, get_args, get_origin

from infosvc.http.api.restx import Namespace
from infosvc.wire.fields import FREE, NO_EXAMPLE, Field, Limits, fields_of

Schema = dict[str, Any]

_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}
_OF_NUMBERS = {"least": "minimum", "above": "minimum", "most": "maximum"}
_OF_TEXTS = {"shortest": "minLength", "longest": "maxLength", "pattern": "pattern", "choices": "enum"}
_OF_LISTS = {"shortest": "minItems", "longest": "maxItems", "unique": "uniqueItems"}
_OF_MAPPINGS = {"shortest": "minProperties", "longest": "maxProperties"}


def body_model(ns: Namespace, record: type) -> Any:
    """The model of what a call sends; it ends in Body where the record has fields that are only answered."""
    whole = all(one.described.sent for one in fields_of(record))
    return _model(ns, record, record.__name__ if whole else f"{record.__name__}Body", sent=True)


def answer_model(ns: Namespace, record: type) -> Any:
    """The model of what a call answers, in which no field is missing."""
    return _model(ns, record, record.__name__, sent=False)


def _model(ns: Namespace, record: type, name: str, *, sent: bool, without: Collection[str] = ()) -> Any:
    fields = [one for one in fields_of(record) if one.name not in without and (one.described.sent or not sent)]
    schema: Schema = {"type": "object", "properties": {one.name: _field(ns, one, sent) for one in fields}}
    required = [one.name for one in fields if one.is_required or not sent]
    return ns.schema_model(name, schema | ({"required": required} if required else {}))


def _field(ns: Namespace, one: Field, sent: bool) -> Schema:
    said = one.described
    schema = _type(ns, one, one.type, said.limits, sent)
    if "$ref" in schema:  # nothing may stand beside it
        return schema
    if said.text:
        schema["description"] = said.text
    if said.unit:
        schema["x-unit"] = said.unit
    if one.nullable:
        schema["x-nullable"] = True
    if sent and one.default is not MISSING and one.default not in (None, "", ()):
        schema["default"] = one.default
    if said.example is not NO_EXAMPLE:
        schema["example"] = said.example
    elif "enum" in schema and not one.nullable and "default" not in schema:
        schema["example"] = schema["enum"][0]
    return schema


def _type(ns: Namespace, one: Field, plain: Any, limits: Limits, sent: bool) -> Schema:
    origin, inner = get_origin(plain), get_args(plain)
    if is_dataclass(plain):
        record = cast(type, plain)
        name, without = one.described.row or (record.__name__, ())
        return {"$ref": f"#/definitions/{_model(ns, record, name, sent=sent, without=without).name}"}
    if origin is None and issubclass(plain, StrEnum):
        return {"type": "string", "enum": [each.value for each in plain]}
    if origin is None:
        return {"type": _PLAIN[plain]} | _limits_schema(limits, _OF_TEXTS if plain is str else _OF_NUMBERS)
    if issubclass(origin, Mapping):
        values = _type(ns, one, inner[1], one.described.each, sent)
        return {"type": "object", "additionalProperties": values} | _limits_schema(limits, _OF_MAPPINGS)
    if Ellipsis not in inner and origin is tuple:  # so many values of different types
        return {"type": "array", "items": {}, "minItems": len(inner), "maxItems": len(inner)}
    items = _type(ns, one, inner[0], one.described.each, sent)
    return {"type": "array", "items": items} | _limits_schema(limits, _OF_LISTS)


def _limits_schema(limits: Limits, words: Mapping[str, str]) -> Schema:
    """Limits in the words of JSON Schema."""
    found = {words[name]: getattr(limits, name) for name in words if getattr(limits, name) != getattr(FREE, name)}
    return found | ({"exclusiveMinimum": True} if limits.above is not None and "above" in words else {})
