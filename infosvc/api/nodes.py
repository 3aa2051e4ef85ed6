"""The machines: where their agents listen and when they were last heard of."""

from __future__ import annotations

import sys
from typing import Any

from flask_restx import fields

from infosvc import changes
from infosvc.api.exchange import Fields, body, latest, write
from infosvc.api.restx import Namespace, Resource
from infosvc.manage import split_address
from infosvc.records import Outcome, Report, Run, check_name, check_node_name

ns = Namespace("nodes", "Management: the machines", path="/nodes")

LONGEST_VALUE = 65_535
LONGEST_REASON = 4_000
MOST_RUNS = 10_000
LARGEST_SEQUENCE = 2**62

node_body = ns.model(
    "NodeBody",
    {
        "address": fields.String(required=True, description="HOST:PORT of the agent", example="127.0.1.11:8410"),
        "agent_version": fields.String(),
    },
)
run_body = ns.model(
    "Run",
    {
        "data_name": fields.String(required=True),
        "outcome": fields.String(required=True, enum=list(Outcome)),
        "duration": fields.Float(required=True, description="seconds the run took"),
        "value": fields.String(description="what it printed, with outcome ok"),
        "reason": fields.String(description="last lines of stderr"),
        "age": fields.Float(default=0, description="seconds since the run"),
    },
)
report_body = ns.model(
    "Report",
    {
        "boot": fields.String(required=True, description="names this start of the agent"),
        "sequence": fields.Integer(
            required=True, description="grows from 1 within a boot; a repeated one is not taken twice"
        ),
        "agent_version": fields.String(),
        "runs": fields.List(fields.Nested(run_body), required=True),
    },
)


@ns.route("")
class Nodes(Resource):
    """All of them."""

    @ns.doc(security=[])
    def get(self) -> Any:
        """List all nodes by name; `last_seen` in Unix seconds, `state` one of ready, stale, lost."""
        return {"nodes": [node.to_json() for node in latest().nodes()]}


@ns.route("/<node_name>")
@ns.param("node_name", "HDFS and YARN host name of the machine")
class OneNode(Resource):
    """One of them."""

    @ns.doc(security=[])
    @ns.response(404, "no node has this name")
    def get(self, node_name: str) -> Any:
        """Show one node."""
        return latest().node(node_name).to_json()

    @ns.expect(node_body)
    @ns.response(422, "a field is wrong; the answer names it")
    def put(self, node_name: str) -> Any:
        """Enrol a node, or say that its agent listens elsewhere."""
        check_node_name(node_name)
        given = body()
        address, agent_version = given.text("address", most=255), given.text("agent_version", "", most=64)
        split_address(address)
        # Seconds since 1970 outgrow any count of changes, so a node enrolled anew never reuses a version.
        first = int(latest().clock.wall())
        new = write(lambda draft: changes.put_node(draft, node_name, address, agent_version, first))
        return latest().node(node_name).to_json(), 201 if new else 200

    @ns.response(204, "forgotten")
    def delete(self, node_name: str) -> Any:
        """Forget a node, its slots and its values."""
        write(lambda draft: changes.delete_node(draft, node_name))
        return "", 204


@ns.route("/<node_name>/report")
@ns.param("node_name", "the node whose agent reports")
class NodeReport(Resource):
    """What an agent sends."""

    @ns.expect(report_body)
    @ns.response(404, "no node has this name")
    def post(self, node_name: str) -> Any:
        """Take one batch of runs; the answer says which version of the wanted state is current."""
        latest().picture.node(node_name)
        report, now = read_report(body()), latest().clock.monotonic()
        return {"wanted_version": write(lambda draft: changes.take_report(draft, node_name, report, now))}


def read_report(given: Fields) -> Report:
    """A report from a request's body; InvalidInput names the field that is wrong."""
    return Report(
        given.text("boot", most=64, empty=False),
        given.whole("sequence", least=0, most=LARGEST_SEQUENCE),
        given.text("agent_version", "", most=64),
        tuple(_run(run) for run in given.objects("runs", MOST_RUNS)),
    )


def _run(given: Fields) -> Run:
    outcome = given.choice("outcome", Outcome)
    return Run(
        check_name(given.text("data_name", most=128)),
        outcome,
        given.number("duration"),
        read_value(given, "value") if outcome is Outcome.OK else None,
        given.text("reason", "", most=LONGEST_VALUE)[-LONGEST_REASON:] or None,
        given.number("age", 0.0),
    )


def read_value(given: Fields, name: str) -> str:
    """A value as text, at most 65535 bytes; a number is taken as its text."""
    value = given.given(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) > sys.float_info.max:
            given.refuse(name, value, "text or a finite number")
        return repr(value)
    text = given.text(name, most=LONGEST_VALUE)
    if len(text.encode()) > LONGEST_VALUE:
        given.refuse(name, text, f"text of at most {LONGEST_VALUE} bytes")
    return text
