"""What the OpenAPI document says in many places: names, seconds, null, and how any call is refused."""

from __future__ import annotations

from typing import Any

from infosvc.records import NAME
from infosvc.records import NODE_NAME as NODE

# More about parameters; Swagger 2.0 has no examples for them but these.
DATA_NAME = {"pattern": NAME.pattern, "x-example": "load_1m"}
NODE_NAME = {"pattern": NODE.pattern, "x-example": "127.0.1.11"}
SECONDS = {"type": "number", "minimum": 0, "x-example": 60}

REFUSAL = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "field"],
            "properties": {
                "code": {"type": "string", "example": "invalid_input"},
                "message": {"type": "string", "description": "what failed, and how to mend it"},
                "field": {
                    "type": "string",
                    "description": "the field, parameter or header that is wrong",
                    "example": "ttl",
                    "x-nullable": True,
                },
            },
        }
    },
}
_REFUSED = {"$ref": "#/definitions/Refusal"}
_ANY_OTHER = "refused: 401 for a token that is missing or wrong, 403 for one of another role, 413 for a body that is "
_ANY_OTHER += "too large, 429 for too many calls, 503 for a service that cannot answer now"


def said(field: Any, **more: Any) -> Any:
    """The field of a model, about which the document says more."""
    field.__schema__.update(more)
    return field


def or_null(field: Any) -> Any:
    """The field of a model, which may be null."""
    return said(field, **{"x-nullable": True})


def add_refusals(document: dict[str, Any]) -> None:
    """Say of every call how it is refused, and that all refusals have one form."""
    if "error" in document:  # it could not be made
        return
    document["definitions"]["Refusal"] = REFUSAL
    for path in document["paths"].values():
        for method, call in path.items():
            if method != "parameters":
                call["responses"].setdefault("default", {"description": _ANY_OTHER})
                _give_form(call["responses"])


def _give_form(responses: dict[str, Any]) -> None:
    for code, response in responses.items():
        if code == "default" or int(code) >= 400:
            response["schema"] = _REFUSED
