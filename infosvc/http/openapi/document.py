"""What the OpenAPI document says in many places: names, seconds, null, and how any call is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from infosvc.http.openapi.schemas import answer_schema, body_schema
from infosvc.wire.errors import BY_STATUS
from infosvc.wire.records import NAME
from infosvc.wire.records import NODE_NAME as NODE

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
_OF_ALL = {
    400: "not a call as HTTP has it",
    411: "the body comes in chunks: send it whole, with its Content-Length",
    422: "a parameter is not known here, or is wrong; the answer names it",
    401: "no token where one is needed, or one that is wrong, has expired or was revoked",
    429: "more calls than one caller may make; Retry-After says in how many seconds to call again",
}
_OF_WHAT_READERS_MAY_NOT = {403: "the token is of another role, or a browser's call came without its X-CSRF-Token"}
_OF_CHANGES = {
    503: "the change cannot be stored now: the database does not answer, or too many bodies come in; see Retry-After"
}
_OF_BODIES = {
    413: "the body is larger than the service takes: send it in smaller parts",
}


ARCHIVE = "application/x-tar"
MEDIA_TYPE = "x-media-type"
FILE = {"type": "file"}
"""Schema of an answer that is not JSON."""


def name_media_types(document: dict[str, Any]) -> None:
    """Say of each call whose body is bytes that it is not JSON: an archive, unless its parameter names another type."""
    if "error" in document:  # it could not be made
        return
    for call in _calls(document["paths"]):
        for one in call.get("parameters", ()):
            if one.get("schema", {}).get("format") == "binary":
                call["consumes"] = [one.pop(MEDIA_TYPE, ARCHIVE)]


def add_described(document: dict[str, Any], calls: Iterable[Mapping[str, Any]]) -> None:
    """Take in what was said of calls that are not made with Flask-RESTX, with schemas of what they take and answer."""
    if "error" in document:  # it could not be made
        return
    for one in calls:
        document["tags"] += one["tags"]
        document["paths"] |= one["paths"]
        for call in _calls(one["paths"]):
            for given in call.get("parameters", ()):
                if isinstance(given.get("schema"), type):
                    given["schema"] = body_schema(document["definitions"], given["schema"])
            for answer in call["responses"].values():
                if "schema" in answer and answer["schema"] != FILE:
                    answer["schema"] = answer_schema(document["definitions"], answer["schema"])


def _calls(paths: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [call for path in paths.values() for method, call in path.items() if method != "parameters"]


def add_refusals(document: dict[str, Any]) -> None:
    """Say of every call how it is refused, and that all refusals have one form."""
    if "error" in document:  # it could not be made
        return
    document["definitions"]["Refusal"] = REFUSAL
    for path in document["paths"].values():
        for method, call in path.items():
            if method != "parameters":
                for code, text in _refusals(method, call).items():
                    call["responses"].setdefault(str(code), {"description": text})
                call["responses"].pop("default", None)  # it would stand for answers that are not in the document
                _give_form(call["responses"])


def _refusals(method: str, call: dict[str, Any]) -> dict[int, str]:
    """By status, what may befall a call whatever it is about."""
    texts = dict(_OF_ALL)
    if call.get("security") != []:  # without a list of its own, it takes a token
        texts |= _OF_WHAT_READERS_MAY_NOT
    if method != "get":
        texts |= _OF_CHANGES
    if any(one["in"] == "body" for one in call.get("parameters", [])):
        texts |= _OF_BODIES
    return texts


def _give_form(responses: dict[str, Any]) -> None:
    for code, response in responses.items():
        if int(code) >= 400:
            response["schema"] = _REFUSED
            example = {"code": BY_STATUS[int(code)].code, "message": response["description"], "field": None}
            response["examples"] = {"application/json": {"error": example}}
