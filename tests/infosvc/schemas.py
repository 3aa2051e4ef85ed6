"""Hold what is answered to the schemas of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs


def against(schema: Any, said: Any, definitions: Mapping[str, Any] | None = None, *, closed: bool = False) -> list[str]:
    """What a schema has against what is said, in sentences; a `closed` one also against what it does not name."""
    whole = {"definitions": _plain(definitions or {}, closed), **_plain(schema, closed)}
    return [str(error) for error in jsonschema_rs.Draft4Validator(whole).iter_errors(said)]


def _plain(schema: Any, closed: bool) -> Any:
    """The same schema in words that every validator knows: Swagger 2.0 has none for null, nor for one of several."""
    if isinstance(schema, list):
        return [_plain(one, closed) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "x-oneOf" in schema:
        return {"oneOf": _plain(schema["x-oneOf"], closed)}
    plain = {key: _plain(one, closed) for key, one in schema.items() if key not in ("x-nullable", "example")}
    if closed and "properties" in schema and schema.get("type") == "object":
        plain["additionalProperties"] = False
    return {"anyOf": [{"type": "null"}, plain]} if schema.get("x-nullable") else plain
