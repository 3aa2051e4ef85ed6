"""The audit log, to be read only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import current_app, request

from infosvc.access.roles import needs
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import latest
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.schemas import answer_model
from infosvc.settings import Settings
from infosvc.state.database import Most
from infosvc.wire.answers import AuditEntryList
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Role

ns = Namespace("audit", "Audit log: every change and every refused call", path="/audit")
calls = CallGroup("audit", ns)

DEFAULT_LIMIT = 1_000
LARGEST_SEQUENCE = 2**62

entry_list = answer_model(ns, AuditEntryList)


@ns.route("")
class Audit(Resource):
    """All of it, page by page."""

    @ns.param(
        "since", "only entries after the one with this number", type=int, default=0, minimum=0, maximum=LARGEST_SEQUENCE
    )
    @ns.param("limit", "at most so many entries", type=int, default=DEFAULT_LIMIT, minimum=1)
    @ns.response(200, "the next entries; none after the newest", entry_list)
    @ns.response(422, "since or limit is wrong")
    @ns.response(503, "the database, which keeps the log, does not answer")
    @needs(Role.ADMIN)
    def get(self) -> Any:
        """Read entries, oldest first.

        When the database does not hold the newest entry that the service remembers, the last page ends with that
        one, its hash left empty: the log was cut short or written anew behind the service's back.
        """
        settings: Settings = components_of(current_app).settings
        since, limit = _whole("since", 0, 0, LARGEST_SEQUENCE), _whole("limit", DEFAULT_LIMIT, 1, settings.max_rows)
        newest = latest().configuration.audit.get("last")  # taken first: what is written meanwhile is not a gap
        found, more = components_of(current_app).store.audit(since, Most(limit, settings.max_body))
        if newest is not None and newest.sequence > since and not more and len(found) < limit and newest not in found:
            found.append(replace(newest, hash=""))
        return AuditEntryList(tuple(found)).to_json()


def _whole(name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query string."""
    text = request.args.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise InvalidInput(f"{name}={text!r} is not allowed: a whole number from {least} to {most}", name)
    return int(text)
