"""The audit log: to be read, and its oldest entries to be removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import current_app, request

from infosvc.access.audit import position
from infosvc.access.roles import needs
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import latest, query_number, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.document import SECONDS
from infosvc.http.openapi.schemas import answer_model
from infosvc.settings import Settings
from infosvc.state.database import Most
from infosvc.state.transaction import Transaction
from infosvc.wire.answers import AuditEntry, AuditEntryList, AuditPruned
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Role

ns = Namespace("audit", "Audit log: every change and every refused call", path="/audit")
calls = CallGroup("audit", ns)

DEFAULT_LIMIT = 1_000
MOST_PRUNED = 2_000  # in one commit: with the longest entries, reports wait a tenth of a second for it
LARGEST_SEQUENCE = 2**62

entry_list = answer_model(ns, AuditEntryList)
pruned_said = answer_model(ns, AuditPruned)


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

    @ns.param("before", "Unix seconds", required=True, **SECONDS)
    @ns.response(200, "what was removed", pruned_said)
    @ns.response(422, "before is missing or wrong")
    @needs(Role.ADMIN)
    def delete(self) -> Any:
        """Remove the oldest entries, those made before a moment: at most 2,000 at once.

        An entry that says so takes their place, so that what is left can still be proven whole. Call again until `last`
        is null.
        """
        before = query_number("before")
        if before is None:
            raise InvalidInput("before is missing", "before", remedy="say in Unix seconds which entries may go")
        if before > latest().clock.wall():
            raise InvalidInput(f"before={before:.0f} is in the future", "before", remedy="name a moment that is past")
        last = components_of(current_app).store.last_entry_before(before, MOST_PRUNED)
        if last is None:
            return AuditPruned(None).to_json()
        return write(lambda transaction: _prune(transaction, last), f"removed up to {position(last)}").to_json()


def _prune(transaction: Transaction, last: AuditEntry) -> AuditPruned:
    transaction.forget_audit_to = max(transaction.forget_audit_to, last.sequence)
    return AuditPruned(position(last))


def _whole(name: str, default: int, least: int, most: int) -> int:
    """A whole number of the query string."""
    text = request.args.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise InvalidInput(f"{name}={text!r} is not allowed: a whole number from {least} to {most}", name)
    return int(text)
