"""Flask-RESTX behind types: what the namespaces use of it, and its errors in our form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from flask import Blueprint, Response, jsonify, request
from flask import current_app as app
from werkzeug.exceptions import HTTPException

from infosvc.access.rate_limit import TooFast
from infosvc.access.tickets import SCHEME, WantsTicket
from infosvc.http.openapi.document import add_described, add_refusals, name_media_types
from infosvc.http.openapi.examples import add_examples
from infosvc.wire.errors import BY_STATUS, InfoError

C = TypeVar("C")

if TYPE_CHECKING:

    class Resource:
        """One path; its methods are named after the HTTP ones."""

    class Namespace:
        """The paths of one file."""

        path: str
        models: dict[str, Any]

        def __init__(self, name: str, description: str = "", path: str = "") -> None: ...

        def route(self, *urls: str) -> Callable[[C], C]: ...

        def doc(self, **said: Any) -> Callable[[C], C]: ...

        def expect(self, *models: Any) -> Callable[[C], C]: ...

        def param(self, name: str, text: str, **said: Any) -> Callable[[C], C]: ...

        def response(self, code: int, text: str, model: Any = None, **said: Any) -> Callable[[C], C]: ...

        def produces(self, kinds: list[str]) -> Callable[[C], C]: ...

        def schema_model(self, name: str, schema: dict[str, Any]) -> Any: ...

    class Raw:
        """A schema that is written down."""

    class ApiBase:
        """All namespaces together, and their documentation."""

        def __init__(self, blueprint: Blueprint, **said: Any) -> None: ...

        models: dict[str, Any]

        def add_namespace(self, namespace: Namespace) -> None: ...

        @property
        def __schema__(self) -> dict[str, Any]: ...

else:
    from flask_restx import Api as ApiBase
    from flask_restx import Namespace, Resource
    from flask_restx.fields import Raw


class File(Raw):
    """An answer that is a file."""

    __schema_type__ = "file"


class Api(ApiBase):
    """The API whose every error is `{"error": {"code", "message", "field"}}`.

    `documents` make what describes calls that are not made with Flask-RESTX.
    """

    documents: Sequence[Callable[[], Mapping[str, Any]]] = ()

    def handle_error(self, error: Exception) -> Response:
        """Answer an exception of one of our paths."""
        return error_response(error)

    @cached_property
    def __schema__(self) -> dict[str, Any]:
        """The OpenAPI document."""
        document = super().__schema__
        if "error" not in document:  # models within models, of which Flask-RESTX itself does not know
            document["definitions"] |= {name: deepcopy(model.__schema__) for name, model in self.models.items()}
        name_media_types(document)
        add_described(document, [deepcopy(make()) for make in self.documents])  # the document adds to it
        add_refusals(document)
        add_examples(document)
        return document


def error_response(error: Exception) -> Response:
    """Any exception as our error body: ours as they are, HTTP's with a sentence, a fault of our own as 500."""
    allowed = None
    if isinstance(error, InfoError):
        status, code, message, field = error.status, error.code, str(error), error.field
    elif isinstance(error, HTTPException) and error.code:
        status, message, field = error.code, _sentence(error), None
        code = BY_STATUS[status].code if status in BY_STATUS else error.name.lower().replace(" ", "_")
        allowed = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
    else:
        app.logger.error("a request failed", exc_info=error)
        status, code, message, field = 500, "fault", "the service failed at this request; its log says more", None
    answer = jsonify({"error": {"code": code, "message": message, "field": field}})
    answer.status_code = status
    if allowed:
        answer.headers["Allow"] = allowed
    if status == 401:
        answer.headers["WWW-Authenticate"] = SCHEME if isinstance(error, WantsTicket) else "Bearer"
    if isinstance(error, TooFast):
        answer.headers["Retry-After"] = str(error.retry_after)
    elif status in (429, 503):
        answer.headers["Retry-After"] = "1"
    return answer


def _sentence(error: HTTPException) -> str:
    """What HTTP's own errors mean here."""
    if error.code == 404:
        return f"there is nothing at {request.path}: the calls are listed at /api/v1/"
    if error.code == 405:
        return f"{request.method} is not possible at {request.path}: the calls are listed at /api/v1/"
    if error.code == 413:
        return f"the body is larger than {app.config['MAX_CONTENT_LENGTH']} bytes: send it in smaller parts"
    return str(error.description)


__all__ = ["Api", "File", "Namespace", "Resource", "error_response"]
