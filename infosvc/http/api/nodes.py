"""The machines: where their agents listen and when they were last heard of."""

from __future__ import annotations

from typing import Any

from flask import current_app, request

from infosvc.access.roles import about_one_node, needs
from infosvc.core.service import components_of
from infosvc.data.agent_report import read_report
from infosvc.data.curves import Curves
from infosvc.http.api.body import body, read_fields
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import latest, take_in, write
from infosvc.http.api.paging import AFTER, LINK, answer_list
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.document import NODE_NAME
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.management.nodes import delete_node, put_node, split_address
from infosvc.state.current_values import STEP
from infosvc.wire import answers
from infosvc.wire.records import Node, Receipt, Report, Role, check_node_name

ns = Namespace("nodes", "Management: the machines", path="/nodes")
calls = CallGroup("nodes", ns)

node_body = body_model(ns, Node)
node_said = answer_model(ns, Node)
nodes_said = answer_model(ns, answers.Nodes)
hour_said = answer_model(ns, answers.NodeHour)
report_body = body_model(ns, Report)
receipt_said = answer_model(ns, Receipt)


@ns.route("")
class Nodes(Resource):
    """All of them."""

    @ns.doc(security=[])
    @ns.param("after", "leave out those up to this one", **AFTER)
    @ns.response(200, "all of them", nodes_said, headers=LINK)
    @needs(Role.READER)
    def get(self) -> Any:
        """List all nodes by name.

        A node whose agent is silent for three heartbeats is stale, and lost after 15 s. A list of more than about 8 MiB
        comes in parts: follow the header Link.
        """
        return answer_list("nodes", latest().nodes(), "node_name")


@ns.route("/<node_name>")
@ns.param("node_name", "HDFS and YARN host name of the machine", **NODE_NAME)
class OneNode(Resource):
    """One of them."""

    @ns.doc(security=[])
    @ns.response(200, "the node", node_said)
    @ns.response(404, "no node of this name is enrolled, though it may have values that programs wrote")
    @about_one_node
    @needs(Role.READER)
    def get(self, node_name: str) -> Any:
        """Show one node.

        A node whose agent is silent for three heartbeats is stale, and lost after 15 s; silence begins when the node is
        enrolled, and when the service starts.
        """
        return latest().node(node_name).to_json()

    @ns.expect(node_body)
    @ns.response(200, "changed, or as it was", node_said)
    @ns.response(201, "enrolled", node_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.ADMIN)
    def put(self, node_name: str) -> Any:
        """Enrol a node, or say that its agent listens elsewhere.

        The agent at this address is told what it should run.
        """
        check_node_name(node_name)
        given = read_fields(Node, body())
        split_address(given["address"])
        # Seconds since 1970 outgrow any count of changes, so a node enrolled anew never reuses a version.
        first = int(latest().clock.wall())
        new = write(
            lambda transaction: put_node(transaction, node_name, given["address"], given["agent_version"], first)
        )
        return latest().node(node_name).to_json(), 201 if new else 200

    @ns.response(204, "forgotten")
    @ns.response(404, "no node of this name is enrolled, and it has no values")
    @needs(Role.ADMIN)
    def delete(self, node_name: str) -> Any:
        """Forget a node, its slots and its values, also one that was never enrolled and has values only.

        Its tokens are revoked, and its agent is told to end.
        """
        now = latest().clock.wall()
        write(lambda transaction: delete_node(transaction, node_name, now))
        return "", 204


@ns.route("/<node_name>/hour")
@ns.param("node_name", "the node whose values are asked for", **NODE_NAME)
class NodeHour(Resource):
    """What all numbers of a node were lately."""

    @ns.doc(security=[])
    @ns.param("after", "leave out the data names up to this one", **AFTER)
    @ns.response(200, "their last hours; of a node that has no numbers, an empty list", hour_said, headers=LINK)
    @about_one_node
    @needs(Role.READER)
    def get(self, node_name: str) -> Any:
        """Read the last hour of every number of a node as 120 steps of 30 s.

        The service keeps them in memory, so a restart empties them. A list of more than about 8 MiB comes in parts:
        follow the header Link.
        """
        check_node_name(node_name)
        curves: Curves = components_of(current_app).curves
        since, found, full = curves.last_hour(node_name)
        head = {"node_name": node_name, "since": since, "step": STEP, "full": full}
        units = {name: row.unit for name, row in latest().configuration.producers.items()}
        rows = (answers.Curve(name, units[name], numbers) for name, numbers in found.items() if name in units)
        return answer_list("curves", rows, "data_name", head)


@ns.route("/<node_name>/report")
@ns.param("node_name", "the node whose agent reports", **NODE_NAME)
class NodeReport(Resource):
    """What an agent sends."""

    @ns.expect(report_body)
    @ns.response(200, "taken, or taken before", receipt_said)
    @ns.response(400, "the body is not a JSON object")
    @ns.response(404, "no node has this name")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.AGENT)
    def post(self, node_name: str) -> Any:
        """Take one batch of runs; the answer says which wanted state is current, and which inputs have changed.

        Runs of names that are no longer registered are left out.
        """
        latest().configuration.node(node_name)
        report = read_report(request.get_data(), components_of(current_app).metrics.passed_over.count)
        return take_in(node_name, report).to_json()
