"""Registration service: which data exists and how it is produced."""

from __future__ import annotations

import re
import shlex
from typing import Any

from flask_restx import fields

from infosvc import changes
from infosvc.api.exchange import Fields, body, if_match, latest, write
from infosvc.api.restx import Namespace, Resource
from infosvc.records import Kind, Producer, Scope, check_name

ns = Namespace("producers", "Registration: which data exists and how it is produced", path="/producers")

SHA256 = re.compile(r"[0-9a-f]{64}")

producer_body = ns.model(
    "ProducerBody",
    {
        "cmd": fields.String(description="command, split into argv without a shell", example="scripts/cpu_count.sh"),
        "time_max": fields.Float(required=True, description="seconds between two runs", example=5),
        "kind": fields.String(enum=list(Kind), default="collector"),
        "scope": fields.String(enum=list(Scope), default="node"),
        "replicas": fields.Integer(default=1, description="on how many nodes a cluster producer runs"),
        "timeout": fields.Float(default=10, description="seconds until a run is killed"),
        "ttl": fields.Float(description="seconds until a value is stale; 3 x time_max if left out"),
        "unit": fields.String(example="ratio"),
        "help": fields.String(),
        "keep": fields.Float(default=0, description="seconds of history"),
        "sha256": fields.String(description="checksum that the command's file must have"),
    },
)


@ns.route("")
class Producers(Resource):
    """All of them."""

    @ns.doc(security=[])
    def get(self) -> Any:
        """List all producers by name."""
        return {"producers": [producer.to_json() for producer in latest().producers()]}


@ns.route("/<data_name>")
@ns.param("data_name", "letters, digits and _.:- only, at most 128")
class OneProducer(Resource):
    """One of them."""

    @ns.doc(security=[])
    @ns.response(404, "nothing is registered under this name")
    def get(self, data_name: str) -> Any:
        """Show one producer."""
        return latest().picture.producer(data_name).to_json()

    @ns.expect(producer_body)
    @ns.param("If-Match", "update only this version", _in="header")
    @ns.response(412, "the stored version is another one")
    @ns.response(422, "a field is wrong; the answer names it")
    def put(self, data_name: str) -> Any:
        """Register or update a producer; the agents that run it are told."""
        producer, guard = read_producer(data_name, body()), if_match()
        stored, new = write(lambda draft: changes.put_producer(draft, producer, guard))
        return stored.to_json(), 201 if new else 200

    @ns.param("If-Match", "remove only this version", _in="header")
    @ns.response(204, "forgotten")
    def delete(self, data_name: str) -> Any:
        """Forget a producer, its slots and its values."""
        guard = if_match()
        write(lambda draft: changes.delete_producer(draft, data_name, guard))
        return "", 204


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
        given.number("ttl", 3 * time_max, above=0),
        given.text("unit", "", most=64),
        given.text("help", "", most=4096),
        given.number("keep", 0.0),
        _checksum(given),
    )


def _command(given: Fields, kind: Kind) -> str:
    if kind is Kind.PROGRAM:
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
