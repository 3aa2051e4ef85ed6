"""Examples of bodies and answers in the OpenAPI document, put together from those of their fields."""

from __future__ import annotations

from typing import Any

EVENTS = 'id: 7\nevent: node\ndata: {"node_name":"127.0.1.11","state":"lost"}\n\n'


class NoExample(LookupError):
    """A field whose model gives no example."""


def add_examples(document: dict[str, Any]) -> None:
    """Show of every call one whole body and one whole answer.

    NoExample names a field that leaves a gap in an example.
    """
    if "error" in document:  # it could not be made
        return
    models = document["definitions"]
    for path in document["paths"].values():
        for method, call in path.items():
            if method != "parameters":
                _show_body(call, models)
                _show_answers(call, models)


def example_of(schema: dict[str, Any], models: dict[str, Any], where: str = "") -> Any:
    """A value that a schema allows: its own example, or one made of those of its parts.

    >>> example_of({"type": "array", "items": {"type": "string", "example": "a"}}, {})
    ['a']
    """
    for key in ("example", "default"):
        if key in schema:
            return schema[key]
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return example_of(models[name], models, name)
    if "x-oneOf" in schema:
        return example_of(schema["x-oneOf"][0], models, where)
    if "allOf" in schema:
        return {key: value for part in schema["allOf"] for key, value in example_of(part, models, where).items()}
    if "properties" in schema:
        return {key: example_of(part, models, f"{where}.{key}") for key, part in schema["properties"].items()}
    if schema.get("x-nullable"):
        return None
    if "items" in schema:
        return [example_of(schema["items"], models, f"{where}[]")]
    raise NoExample(f"{where} has no example: give it one where its model is made")


def _show_body(call: dict[str, Any], models: dict[str, Any]) -> None:
    for found in call.get("parameters", []):
        if found["in"] == "body" and "$ref" in found["schema"]:  # a file has no example
            name = found["schema"]["$ref"].rpartition("/")[2]
            models[name].setdefault("example", example_of(models[name], models, name))


def _show_answers(call: dict[str, Any], models: dict[str, Any]) -> None:
    for code, answer in call["responses"].items():
        if code.startswith("2") and answer.get("schema", {"type": "file"}) != {"type": "file"}:
            answer["examples"] = {"application/json": example_of(answer["schema"], models)}
        elif code == "200" and "text/event-stream" in call.get("produces", []):
            answer["examples"] = {"text/event-stream": EVENTS}
