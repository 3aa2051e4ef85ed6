"""Further things that a service answers: whoever starts it hands them over, for the service knows none of them.

An extra is a function of the application, for example one that registers a blueprint. Its views declare what a caller
needs by infosvc.access.roles.needs; those that declare nothing are for admins. What they raise of
infosvc.wire.errors is answered in the form of all errors, and `flask.g.caller` is who calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from flask import Flask

Extra: TypeAlias = "Callable[[Flask], None]"

EXTRAS = "infosvc.extras"  # under which name a command's context holds those that `nodewise serve` mounts


def describe(app: Flask, calls: Mapping[str, Any]) -> None:
    """Have the OpenAPI document, and so Swagger UI, show calls that are not made with Flask-RESTX.

    `calls` are `tags`, `paths` (below /api/v1) and `definitions` of Swagger 2.0. How any call is refused is added, and
    its schema to an answer that only shows an example.
    """
    app.extensions.setdefault(_DESCRIBED, []).append(calls)


def described(app: Flask) -> Iterator[Mapping[str, Any]]:
    """What was said of such calls, each time anew: the document adds to it."""
    return iter(deepcopy(app.extensions.get(_DESCRIBED, [])))


_DESCRIBED = "infosvc.described"
