"""Registration service: which data exists and how it is produced."""

from __future__ import annotations

import shlex
from typing import Any

from flask import g, request

from infosvc.access.roles import needs
from infosvc.http.api.body import Fields, body, read_fields
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import if_match, latest, write
from infosvc.http.api.paging import AFTER, LINK, answer_list
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.document import DATA_NAME
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.registration.producers import delete_producer, put_producer
from infosvc.registration.rules import refuse_known
from infosvc.state.transaction import Transaction
from infosvc.wire import answers
from infosvc.wire.errors import Forbidden, InvalidInput
from infosvc.wire.records import Kind, Producer, Role, check_name

ns = Namespace("producers", "Registration: which data exists and how it is produced", path="/producers")
calls = CallGroup("producers", ns)

VERSION = {"pattern": '^("?[0-9]{1,18}"?|[*])$', "x-example": "1"}

producer_body = body_model(ns, Producer)
producer_said = answer_model(ns, Producer)
producers_said = answer_model(ns, answers.Producers)


@ns.route("")
class Producers(Resource):
    """All of them."""

    @ns.doc(security=[])
    @ns.param("after", "leave out those up to this one", **AFTER)
    @ns.response(200, "all of them", producers_said, headers=LINK)
    @needs(Role.READER)
    def get(self) -> Any:
        """List all producers by name.

        Those of kind emitted are brought by the runs of another one, which names them in its emits. A list of more than
        about 8 MiB comes in parts: follow the header Link.
        """
        return answer_list("producers", latest().producers(), "data_name")


@ns.route("/<data_name>")
@ns.param("data_name", "letters, digits and _.:- only, at most 128", **DATA_NAME)
class OneProducer(Resource):
    """One of them."""

    @ns.doc(security=[])
    @ns.response(200, "the producer", producer_said)
    @ns.response(404, "nothing is registered under this name")
    @needs(Role.READER)
    def get(self, data_name: str) -> Any:
        """Show one producer.

        Its version, sent back in If-Match, guards an update against changes that others make meanwhile.
        """
        return latest().configuration.producer(data_name).to_json()

    @ns.expect(producer_body)
    @ns.param("If-Match", "update only this version", _in="header", **VERSION)
    @ns.param("If-None-Match", "* to register only what is not registered yet", _in="header", enum=["*"])
    @ns.response(200, "updated, or as it was", producer_said)
    @ns.response(201, "registered", producer_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(409, "another producer stands in the way")
    @ns.response(412, "the stored version is another one, or registered already")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN, Role.SUBMITTER)
    def put(self, data_name: str) -> Any:
        """Register or update a producer; the agents that run it are told.

        For each name that it emits there is a producer of kind emitted, of which unit, help, ttl and keep may be put.
        Submitters register new names of kind program alone, which no node runs.
        """
        producer, guard, only_new = read_producer(data_name, body()), if_match(), if_none_match()
        if g.caller.role is Role.SUBMITTER and not (only_new and producer.kind is Kind.PROGRAM):
            raise Forbidden("a submitter registers names of kind program alone, with If-None-Match: *")

        def change(transaction: Transaction) -> tuple[Producer, bool]:
            if only_new:
                refuse_known(transaction.configuration, data_name)
            return put_producer(transaction, producer, guard)

        stored, new = write(change)
        return stored.to_json(), 201 if new else 200

    @ns.param("If-Match", "remove only this version", _in="header", **VERSION)
    @ns.response(204, "forgotten")
    @ns.response(404, "nothing is registered under this name")
    @ns.response(409, "another producer emits it or reads it")
    @ns.response(412, "the stored version is another one")
    @ns.response(422, "If-Match is not a version")
    @needs(Role.ADMIN)
    def delete(self, data_name: str) -> Any:
        """Forget a producer and what it emits, its slots and its values.

        The agents that run it are told.
        """
        guard = if_match()
        write(lambda transaction: delete_producer(transaction, data_name, guard))
        return "", 204


def if_none_match() -> bool:
    """Whether `If-None-Match: *` asks that nothing is registered yet; InvalidInput for any other value."""
    header = request.headers.get("If-None-Match", "").strip()
    if header not in ("", "*"):
        raise InvalidInput(f"If-None-Match is {header[:80]!r}: it must be *, or left out", "If-None-Match")
    return bool(header)


def read_producer(data_name: str, given: Fields) -> Producer:
    """A producer from a request's body; InvalidInput names the field that is wrong."""
    fields = read_fields(Producer, given)
    kind: Kind = fields["kind"]
    fields["cmd"] = _command(given, fields["cmd"], kind)
    for field in ("emits", "inputs"):
        if fields[field] and not kind.in_slot:
            given.refuse(field, list(fields[field]), f"left out for the kind {kind}, which no slot runs")
    return Producer(data_name=check_name(data_name), **fields)


def _command(given: Fields, cmd: str | None, kind: Kind) -> str:
    if not kind.in_slot:
        return cmd or ""
    if cmd is None:
        raise InvalidInput("cmd is missing", "cmd")
    allowed = "a command: a path and its arguments, quotes closed"
    try:
        argv = shlex.split(cmd)
    except ValueError:
        given.refuse("cmd", cmd, allowed)
    if not argv or not argv[0] or "\0" in cmd:
        given.refuse("cmd", cmd, allowed)
    return cmd
