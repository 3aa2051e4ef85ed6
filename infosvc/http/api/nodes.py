"""The machines: where their agents listen and when they were last heard of."""

from __future__ import annotations

from typing import Any

from flask import request
from flask_restx import fields

from infosvc.access.roles import needs
from infosvc.data.agent_report import LONGEST_VALUE, MOST_RUNS, read_batch
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.document import NODE_NAME, or_null, said
from infosvc.http.api.exchange import LARGEST, body, latest, take_in, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.management.nodes import delete_node, put_node, split_address
from infosvc.wire.records import Outcome, Role, check_node_name

ns = Namespace("nodes", "Management: the machines", path="/nodes")
calls = CallGroup("nodes", ns)

COUNT = {"min": 0, "max": 10**9}
SECONDS = {"min": 0, "max": LARGEST}

node_body = ns.model(
    "NodeBody",
    {
        "address": fields.String(
            required=True, description="HOST:PORT of the agent", example="127.0.1.11:8410", max_length=255
        ),
        "agent_version": fields.String(description="version of the agent", example="0.1.0", max_length=64),
    },
)
node_said = ns.model(
    "Node",
    {
        "node_name": fields.String(required=True, description="HDFS and YARN host name", example="127.0.1.11"),
        "address": fields.String(required=True, description="HOST:PORT of the agent", example="127.0.1.11:8410"),
        "state": fields.String(
            required=True, description="lost after 15 s of silence", enum=["ready", "stale", "lost"]
        ),
        "last_seen": or_null(
            fields.Float(required=True, description="Unix seconds; null before the first report", example=1700000000.0)
        ),
        "agent_version": fields.String(required=True, description="empty as long as no agent said it", example="0.1.0"),
        "dropped": fields.Integer(required=True, description="runs that the agent has lost since its start", example=0),
    },
)
nodes_said = ns.model("Nodes", {"nodes": fields.List(fields.Nested(node_said), required=True)})
run_body = ns.model(
    "Run",
    {
        "data_name": fields.String(required=True, example="load_1m", max_length=128),
        "outcome": fields.String(required=True, enum=list(Outcome)),
        "duration": or_null(fields.Float(required=True, description="seconds the run took", example=0.1, **SECONDS)),
        "value": or_null(
            fields.String(
                description="what it printed, with outcome ok; with emits may be left out: the count of values",
                example="0.93",
                max_length=LONGEST_VALUE,
            )
        ),
        "values": said(
            or_null(fields.Raw(description="what a producer with emits printed: an object of name and text")),
            additionalProperties={"type": "string", "maxLength": LONGEST_VALUE},
        ),
        "reason": or_null(fields.String(description="last lines of stderr", max_length=LONGEST_VALUE)),
        "age": fields.Float(default=0, description="seconds since the run", **SECONDS),
        "exit_status": or_null(fields.Integer(description="negative for a signal", min=-(2**31), max=2**31 - 1)),
        "skipped": fields.Integer(default=0, description="ticks missed since the run before", **COUNT),
    },
)
report_body = ns.model(
    "Report",
    {
        "boot": fields.String(
            required=True, description="names this start of the agent", example="b1", min_length=1, max_length=64
        ),
        "sequence": fields.Integer(
            required=True,
            description="grows from 1 within a boot; a repeated one is not taken twice",
            example=1,
            min=0,
            max=2**62,
        ),
        "agent_version": fields.String(description="version of the agent", example="0.1.0", max_length=64),
        "dropped": fields.Integer(default=0, description="runs that the agent has lost since its start", **COUNT),
        "runs": fields.List(fields.Nested(run_body), required=True, max_items=MOST_RUNS),
    },
)
receipt_said = ns.model(
    "Receipt",
    {
        "wanted_version": fields.Integer(
            required=True, description="the wanted state that is current", example=1700000003
        ),
        "inputs": said(
            fields.Raw(
                required=True,
                description="how often each input of a cluster's processors has changed",
                example={"load_1m": 12},
            ),
            additionalProperties={"type": "integer"},
        ),
    },
)


@ns.route("")
class Nodes(Resource):
    """All of them."""

    @ns.doc(security=[])
    @ns.response(200, "all of them", nodes_said)
    @needs(Role.READER)
    def get(self) -> Any:
        """List all nodes by name.

        A node whose agent is silent for three heartbeats is stale, and lost after 15 s.
        """
        return {"nodes": [node.to_json() for node in latest().nodes()]}


@ns.route("/<node_name>")
@ns.param("node_name", "HDFS and YARN host name of the machine", **NODE_NAME)
class OneNode(Resource):
    """One of them."""

    @ns.doc(security=[])
    @ns.response(200, "the node", node_said)
    @ns.response(404, "no node has this name")
    @needs(Role.READER)
    def get(self, node_name: str) -> Any:
        """Show one node.

        A node whose agent is silent for three heartbeats is stale, and lost after 15 s.
        """
        return latest().node(node_name).to_json()

    @ns.expect(node_body)
    @ns.response(200, "changed, or as it was", node_said)
    @ns.response(201, "enrolled", node_said)
    @ns.response(400, "the body is no JSON object")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN)
    def put(self, node_name: str) -> Any:
        """Enrol a node, or say that its agent listens elsewhere.

        The agent at this address is told what it should run.
        """
        check_node_name(node_name)
        given = body()
        address, agent_version = given.text("address", most=255), given.text("agent_version", "", most=64)
        split_address(address)
        # Seconds since 1970 outgrow any count of changes, so a node enrolled anew never reuses a version.
        first = int(latest().clock.wall())
        new = write(lambda draft: put_node(draft, node_name, address, agent_version, first))
        return latest().node(node_name).to_json(), 201 if new else 200

    @ns.response(204, "forgotten")
    @ns.response(404, "no node has this name")
    @needs(Role.ADMIN)
    def delete(self, node_name: str) -> Any:
        """Forget a node, its slots and its values.

        Its tokens are revoked, and its agent is told to end.
        """
        now = latest().clock.wall()
        write(lambda draft: delete_node(draft, node_name, now))
        return "", 204


@ns.route("/<node_name>/report")
@ns.param("node_name", "the node whose agent reports", **NODE_NAME)
class NodeReport(Resource):
    """What an agent sends."""

    @ns.expect(report_body)
    @ns.response(200, "taken, or taken before", receipt_said)
    @ns.response(400, "the body is no JSON object")
    @ns.response(404, "no node has this name")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.AGENT)
    def post(self, node_name: str) -> Any:
        """Take one batch of runs; the answer says which wanted state is current, and which inputs have changed.

        Runs of names that are no longer registered are left out.
        """
        latest().picture.node(node_name)
        return take_in(node_name, read_batch(request.get_data())).to_json()
