"""Hold what is answered to the schemas of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs


def against(schema: Any, said: Any, definitions: Mapping[str, Any] | None = None) -> list[str]:
    """What a schema has against what is said, in sentences."""
    whole = {"definitions": _plain(definitions or {}), **_plain(schema)}
    return [str(error) for error in jsonschema_rs.Draft4Validator(whole).iter_errors(said)]


def _plain(schema: Any) -> Any:
    """The same schema in words that every validator knows: Swagger 2.0 has none for a value that may be null."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    plain = {key: _plain(one) for key, one in schema.items() if key not in ("x-nullable", "example")}
    return {"anyOf": [{"type": "null"}, plain]} if schema.get("x-nullable") else plain
