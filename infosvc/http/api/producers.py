"""Registration service: which data exists and how it is produced."""

from __future__ import annotations

import re
import shlex
from typing import Any

from flask import request
from flask_restx import fields

from infosvc.access.roles import needs
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.document import DATA_NAME, or_null
from infosvc.http.api.exchange import LARGEST, Fields, body, if_match, latest, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.registration.producers import delete_producer, put_producer
from infosvc.registration.rules import refuse_known
from infosvc.state.transaction import Draft
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import NAME, Kind, Producer, Role, Scope, check_name

ns = Namespace("producers", "Registration: which data exists and how it is produced", path="/producers")
calls = CallGroup("producers", ns)

SHA256 = re.compile(r"[0-9a-f]{64}")
VERSION = {"pattern": '^("?[0-9]{1,18}"?|[*])$', "x-example": "1"}
POSITIVE = {"min": 0, "exclusiveMin": True, "max": LARGEST}
ONE_NAME = fields.String(pattern=NAME.pattern)

producer_body = ns.model(
    "ProducerBody",
    {
        "cmd": fields.String(
            description="command, split into argv without a shell: an absolute path, or one below what is pushed to "
            "the nodes; a program needs none",
            max_length=4096,
            example="scripts/cpu_count.sh",
        ),
        "time_max": fields.Float(required=True, description="seconds between two runs", example=5, **POSITIVE),
        "kind": fields.String(enum=list(Kind), default="collector", description="who brings the value"),
        "scope": fields.String(enum=list(Scope), default="node", description="cluster: on `replicas` nodes"),
        "replicas": fields.Integer(
            default=1, description="on how many nodes a cluster producer runs", example=1, min=1, max=100_000
        ),
        "timeout": fields.Float(default=10, description="seconds until a run is killed", example=10, **POSITIVE),
        "ttl": fields.Float(
            description="seconds until a value is stale; 3 x time_max if left out", example=15, **POSITIVE
        ),
        "unit": fields.String(description="unit of the value, in base units", example="processors", max_length=64),
        "help": fields.String(
            description="what the value says", example="Processors that the node has", max_length=4096
        ),
        "keep": fields.Float(default=0, description="seconds of history", example=86400, min=0, max=LARGEST),
        "sha256": or_null(
            fields.String(
                description="checksum that the command's file must have",
                example="0f" * 32,
                pattern=f"^{SHA256.pattern}$",
            )
        ),
        "emits": fields.List(
            ONE_NAME,
            description="names of which a run prints lines `name value`; a line of the producer's own name brings its "
            "own value, which without one is how many names came",
            example=[],
            unique=True,
        ),
        "inputs": fields.List(
            ONE_NAME, description="names whose changes run it at once", example=["cpu_free_ratio"], unique=True
        ),
    },
)
producer_said = ns.inherit(
    "Producer",
    producer_body,
    {
        "data_name": fields.String(required=True, example="cpu_count"),
        "version": fields.Integer(required=True, description="grows with each change; for If-Match", example=1),
    },
)
producers_said = ns.model("Producers", {"producers": fields.List(fields.Nested(producer_said), required=True)})


@ns.route("")
class Producers(Resource):
    """All of them."""

    @ns.doc(security=[])
    @ns.response(200, "all of them", producers_said)
    @needs(Role.READER)
    def get(self) -> Any:
        """List all producers by name.

        Those of kind emitted are brought by the runs of another one, which names them in its emits.
        """
        return {"producers": [producer.to_json() for producer in latest().producers()]}


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
        return latest().picture.producer(data_name).to_json()

    @ns.expect(producer_body)
    @ns.param("If-Match", "update only this version", _in="header", **VERSION)
    @ns.param("If-None-Match", "* to register only what is not registered yet", _in="header", enum=["*"])
    @ns.response(200, "updated, or as it was", producer_said)
    @ns.response(201, "registered", producer_said)
    @ns.response(400, "the body is no JSON object")
    @ns.response(409, "another producer stands in the way")
    @ns.response(412, "the stored version is another one, or registered already")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN)
    def put(self, data_name: str) -> Any:
        """Register or update a producer; the agents that run it are told.

        For each name that it emits there is a producer of kind emitted, of which unit, help, ttl and keep may be put.
        """
        producer, guard, only_new = read_producer(data_name, body()), if_match(), if_none_match()

        def change(draft: Draft) -> tuple[Producer, bool]:
            if only_new:
                refuse_known(draft.picture, data_name)
            return put_producer(draft, producer, guard)

        stored, new = write(change)
        return stored.to_json(), 201 if new else 200

    @ns.param("If-Match", "remove only this version", _in="header", **VERSION)
    @ns.response(204, "forgotten")
    @ns.response(404, "nothing is registered under this name")
    @ns.response(409, "another producer emits it or reads it")
    @ns.response(412, "the stored version is another one")
    @ns.response(422, "If-Match is no version")
    @needs(Role.ADMIN)
    def delete(self, data_name: str) -> Any:
        """Forget a producer and what it emits, its slots and its values.

        The agents that run it are told.
        """
        guard = if_match()
        write(lambda draft: delete_producer(draft, data_name, guard))
        return "", 204


def if_none_match() -> bool:
    """Whether `If-None-Match: *` asks that nothing is registered yet; InvalidInput for any other value."""
    header = request.headers.get("If-None-Match", "").strip()
    if header not in ("", "*"):
        raise InvalidInput(f"If-None-Match is {header[:80]!r}: it must be *, or left out", "If-None-Match")
    return bool(header)


def read_producer(data_name: str, given: Fields) -> Producer:
    """A producer from a request's body; InvalidInput names the field that is wrong."""
    kind = given.choice("kind", Kind, Kind.COLLECTOR)
    time_max = given.number("time_max", above=0)
    return Producer(
        check_name(data_name),
        _command(given, kind),
        time_max,
        kind,
        given.choice("scope", Scope, Scope.NODE),
        given.whole("replicas", 1, least=1, most=100_000),
        given.number("timeout", 10.0, above=0),
        given.number("ttl", min(3 * time_max, LARGEST), above=0),
        given.text("unit", "", most=64),
        given.text("help", "", most=4096),
        given.number("keep", 0.0),
        _checksum(given),
        _names(given, "emits", kind),
        _names(given, "inputs", kind),
    )


def _names(given: Fields, field: str, kind: Kind) -> tuple[str, ...]:
    names = given.names(field)
    if names and not kind.in_slot:
        given.refuse(field, list(names), f"left out for the kind {kind}, which no slot runs")
    return names


def _command(given: Fields, kind: Kind) -> str:
    if not kind.in_slot:
        return given.text("cmd", "", most=4096)
    cmd = given.text("cmd", most=4096)
    allowed = "a command: a path and its arguments, quotes closed"
    try:
        argv = shlex.split(cmd)
    except ValueError:
        given.refuse("cmd", cmd, allowed)
    if not argv or not argv[0] or "\0" in cmd:
        given.refuse("cmd", cmd, allowed)
    return cmd


def _checksum(given: Fields) -> str | None:
    if given.given("sha256") is None:
        return None
    text = given.text("sha256", most=64)
    if not SHA256.fullmatch(text):
        given.refuse("sha256", text, "64 hexadecimal digits in lower case, as sha256sum prints them")
    return text
