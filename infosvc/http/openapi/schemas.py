"""The models of the OpenAPI document, made from what records say of their fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, is_dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, Protocol, Union, cast, get_args, get_origin

from infosvc.wire.fields import FREE, NO_EXAMPLE, Field, Limits, fields_of

Schema = dict[str, Any]
Models = dict[str, Any]
"""Schemas by name."""


class Namespace(Protocol):
    """What holds the models of some calls, as Flask-RESTX has it."""

    models: Models

    def schema_model(self, name: str, schema: Schema) -> Any:
        """Add a model; what stands for it."""


_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}
_OF_NUMBERS = {"least": "minimum", "above": "minimum", "most": "maximum"}
_OF_TEXTS = {"shortest": "minLength", "longest": "maxLength", "pattern": "pattern", "choices": "enum"}
_OF_LISTS = {"shortest": "minItems", "longest": "maxItems", "unique": "uniqueItems"}
_OF_MAPPINGS = {"shortest": "minProperties", "longest": "maxProperties"}


def body_model(ns: Namespace, record: type) -> Any:
    """The model of what a call sends; it ends in Body where the record has fields that are only answered."""
    whole = all(one.described.sent for one in fields_of(record))
    return _into(ns, record, record.__name__ if whole else f"{record.__name__}Body", sent=True)


def answer_model(ns: Namespace, record: type) -> Any:
    """The model of what a call answers, in which no field is missing."""
    return _into(ns, record, record.__name__, sent=False)


def body_schema(models: Models, record: type) -> Schema:
    """The schema of a body that holds a record, whose model is added to `models`; ValueError as of an answer's."""
    return _model(models, record, record.__name__, sent=True)


def answer_schema(models: Models, records: Any) -> Schema:
    """The schema of an answer that is a record, or one of several (A | B), whose models are added to `models`.

    ValueError when something else has the name of one of them.
    """
    return _type(models, Field("", records, False, MISSING), records, FREE, False)


def _into(ns: Namespace, record: type, name: str, *, sent: bool) -> Any:
    models: Models = {}
    _model(models, record, name, sent=sent)
    return {key: ns.schema_model(key, schema) for key, schema in models.items()}[name]


def _model(models: Models, record: type, name: str, *, sent: bool, without: Collection[str] = ()) -> Schema:
    """A reference to the model of a record, which is added to `models`."""
    fields = [one for one in fields_of(record) if one.name not in without and _is_in(one, sent)]
    schema: Schema = {"type": "object", "properties": {one.answer_name: _field(models, one, sent) for one in fields}}
    required = [one.answer_name for one in fields if one.is_required or not sent]
    schema |= {"required": required} if required else {}
    if models.setdefault(name, schema) != schema:
        raise ValueError(f"two models have the name {name}")
    return {"$ref": f"#/definitions/{name}"}


def _is_in(one: Field, sent: bool) -> bool:
    return one.described.sent if sent else one.described.answered


def _field(models: Models, one: Field, sent: bool) -> Schema:
    described = one.described
    schema = _type(models, one, one.type, described.limits, sent)
    if "$ref" in schema and one.nullable:
        schema = {"allOf": [schema]}
    if "$ref" in schema:  # nothing may stand beside it
        return schema
    if described.text:
        schema["description"] = described.text
    if described.unit:
        schema["x-unit"] = described.unit
    if one.nullable:
        schema["x-nullable"] = True
    if sent and one.default is not MISSING and one.default not in (None, "", ()):
        schema["default"] = one.default
    if described.example is not NO_EXAMPLE:
        schema["example"] = described.example
    elif "enum" in schema and not one.nullable and "default" not in schema:
        schema["example"] = schema["enum"][0]
    return schema


def _type(models: Models, one: Field, plain: Any, limits: Limits, sent: bool) -> Schema:
    origin, inner = get_origin(plain), get_args(plain)
    if is_dataclass(plain):
        record = cast(type, plain)
        name, without = one.described.row or (record.__name__, ())
        return _model(models, record, name, sent=sent, without=without)
    if plain is Any:
        return {}
    if origin is None and issubclass(plain, StrEnum):
        return {"type": "string", "enum": [each.value for each in plain]}
    if origin is None:
        return {"type": _PLAIN[plain]} | _limits_schema(limits, _OF_TEXTS if plain is str else _OF_NUMBERS)
    if type(None) in inner:  # of a list's items; of fields it is said already
        return _type(models, one, inner[0], limits, sent) | {"x-nullable": True}
    if origin in (Union, UnionType):
        return _one_of(models, [_type(models, one, each, limits, sent) for each in inner])
    if issubclass(origin, Mapping):
        values = _type(models, one, inner[1], one.described.each, sent)
        return {"type": "object", "additionalProperties": values} | _limits_schema(limits, _OF_MAPPINGS)
    if Ellipsis not in inner and origin is tuple:  # so many values of different types
        return {"type": "array", "items": {}, "minItems": len(inner), "maxItems": len(inner)}
    items = _type(models, one, inner[0], one.described.each, sent)
    return {"type": "array", "items": items} | _limits_schema(limits, _OF_LISTS)


def _one_of(models: Models, forms: list[Schema]) -> Schema:
    """One of several records: Swagger 2.0 can only say what all of them have, and x-oneOf says the rest."""
    schemas = [models[form["$ref"].rpartition("/")[2]] for form in forms]
    properties = {name: said for each in reversed(schemas) for name, said in each["properties"].items()}
    required = [name for name in properties if all(name in each["required"] for each in schemas)]
    return {"type": "object", "properties": properties, "required": required, "x-oneOf": forms}


def _limits_schema(limits: Limits, words: Mapping[str, str]) -> Schema:
    """Limits in the words of JSON Schema."""
    schema = {words[name]: getattr(limits, name) for name in words if getattr(limits, name) != getattr(FREE, name)}
    return schema | ({"exclusiveMinimum": True} if limits.above is not None and "above" in words else {})
