"""Management service: which producer is wanted on which node, and how it last did."""

from __future__ import annotations

from typing import Any

from flask_restx import fields

from infosvc import changes
from infosvc.api.exchange import body, latest, write
from infosvc.api.restx import Namespace, Resource
from infosvc.latest import Wish

ns = Namespace("slots", "Management: what runs on a node", path="/nodes/<node_name>/slots")

slot_body = ns.model(
    "SlotBody",
    {
        "running": fields.Boolean(default=True),
        "interval": fields.Float(description="seconds between two runs here; the producer's time_max if left out"),
    },
)


@ns.route("")
@ns.param("node_name", "the node that runs them")
class Slots(Resource):
    """All of one node."""

    @ns.doc(security=[])
    @ns.response(404, "no node has this name")
    def get(self, node_name: str) -> Any:
        """Show the wanted state of a node, its version, and how each slot last ended."""
        return {"node_name": node_name} | latest().wanted(node_name).to_json()


@ns.route("/<data_name>")
@ns.param("node_name", "the node that runs it")
@ns.param("data_name", "the producer it runs")
class OneSlot(Resource):
    """One producer on one node."""

    @ns.doc(security=[])
    @ns.response(404, "no such node, or no such slot on it")
    def get(self, node_name: str, data_name: str) -> Any:
        """Show one slot."""
        return latest().slot(node_name, data_name).to_json()

    @ns.expect(slot_body)
    @ns.response(404, "no such node or producer")
    @ns.response(409, "the producer is a program that no slot runs")
    def put(self, node_name: str, data_name: str) -> Any:
        """Start, stop or re-time a producer on a node; its agent is told at once."""
        given = body()
        interval = None if given.given("interval") is None else given.number("interval", above=0)
        wish = Wish(given.flag("running", True), interval)
        new = write(lambda draft: changes.put_slot(draft, node_name, data_name, wish))
        return latest().slot(node_name, data_name).to_json(), 201 if new else 200

    @ns.response(204, "removed")
    def delete(self, node_name: str, data_name: str) -> Any:
        """Remove a slot; its last value stays and grows old."""
        write(lambda draft: changes.delete_slot(draft, node_name, data_name))
        return "", 204
