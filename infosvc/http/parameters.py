"""Which parameters each call below /api/v1 knows, as its document says; any other is refused by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from flask import Flask
from werkzeug.datastructures import MultiDict

from infosvc.http.api.call_group import PREFIX, CallGroup
from infosvc.wire.errors import InvalidInput

_IN_RULE = re.compile(r"<(?:\w+:)?(\w+)>")
ByName = dict[str, dict[str, Any]]  # what the document says of each parameter


class Parameters:
    """The parameters of all calls of an application."""

    def __init__(self, app: Flask, groups: Iterable[CallGroup]) -> None:
        self._app = app
        self._groups = tuple(groups)

    def check(self, endpoint: str, rule: str, method: str, given: MultiDict[str, str]) -> None:
        """InvalidInput for a parameter that a call does not know, or that stands twice where one is meant."""
        known = self._known_parameters(endpoint, rule, "get" if method == "HEAD" else method.lower())
        if known is None:
            return
        for name in given:
            if name not in known:
                message = f"this call knows no parameter {name[:80]!r}"
                raise InvalidInput(message, name[:80], remedy=f"it knows {', '.join(sorted(known)) or 'none'}")
            if known[name].get("type") != "array" and len(given.getlist(name)) > 1:
                raise InvalidInput(f"{name} stands more than once", name, remedy="give it once")

    def _known_parameters(self, endpoint: str, rule: str, method: str) -> ByName | None:
        """What stands in the document; None for a call that is not in it."""
        resource = getattr(self._app.view_functions.get(endpoint), "view_class", None)
        described = getattr(resource, method, None)
        if described is None:
            path = _IN_RULE.sub(r"{\1}", rule)
            return self._of_routes.get(f"{method} {path}")
        return _in_query(_parameters_of(resource) | _parameters_of(described))

    @cached_property
    def _of_routes(self) -> dict[str, ByName]:
        """Of the calls that are not made with Flask-RESTX; made when somebody first gives one a parameter."""
        documents = [group.document() for group in self._groups if group.document]
        return {
            f"{method} {PREFIX}{path}": _in_query({one["name"]: one for one in call["parameters"]})
            for document in documents
            for path, methods in document["paths"].items()
            for method, call in methods.items()
            if method != "parameters"
        }


def _parameters_of(described: Any) -> ByName:
    parameters: ByName = getattr(described, "__apidoc__", {}).get("params", {})
    return parameters


def _in_query(parameters: Mapping[str, dict[str, Any]]) -> ByName:
    return {name: one for name, one in parameters.items() if one.get("in") == "query"}
