"""Management service: which producer is wanted on which node, and how it last did."""

from __future__ import annotations

from typing import Any

from flask import current_app
from flask_restx import fields

from infosvc.access.roles import needs
from infosvc.core.service import parts_of
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.document import DATA_NAME, NODE_NAME, or_null
from infosvc.http.api.exchange import LARGEST, body, latest, write
from infosvc.http.api.restx import Namespace, Resource
from infosvc.management import cluster_slots
from infosvc.management.agent_client import Agents
from infosvc.management.cluster_slots import ANYWHERE
from infosvc.management.slots import delete_slot, lift_slot, set_slot
from infosvc.state.transaction import Draft
from infosvc.wire.records import Outcome, Role, Scope

ns = Namespace("slots", "Management: what runs on a node", path="/nodes/<node_name>/slots")
calls = CallGroup("slots", ns)

WHERE = "the node that runs it; * for wherever the service runs a producer of scope cluster"

slot_body = ns.model(
    "SlotBody",
    {
        "running": fields.Boolean(default=True, description="false stops it; its value stays and grows old"),
        "interval": fields.Float(
            description="seconds between two runs here; the producer's time_max if left out",
            example=5,
            min=0,
            exclusiveMin=True,
            max=LARGEST,
        ),
        "lift": fields.Boolean(default=False, description="true ends its quarantine and starts it afresh"),
    },
)
slot_said = ns.model(
    "Slot",
    {
        "data_name": fields.String(required=True, example="load_1m"),
        "cmd": fields.String(required=True, example="scripts/load_1m.sh"),
        "interval": fields.Float(required=True, description="seconds between two runs", example=5),
        "timeout": fields.Float(required=True, description="seconds until a run is killed", example=10),
        "running": fields.Boolean(required=True, description="what is wanted", example=True),
        "sha256": or_null(fields.String(description="checksum that the command's file must have")),
        "scope": fields.String(required=True, enum=list(Scope)),
        "emits": fields.List(fields.String, required=True, example=[]),
        "inputs": fields.List(fields.String, required=True, example=[]),
        "epoch": fields.Integer(required=True, description="how often its quarantine was lifted", example=0),
        "skipped": fields.Integer(required=True, description="ticks that it has missed", example=0),
        "outcome": or_null(fields.String(enum=list(Outcome), description="of the last run; null before the first")),
        "duration": or_null(fields.Float(description="seconds that the last run took", example=0.1)),
        "reason": or_null(fields.String(description="what the last run complained")),
        "age": or_null(fields.Float(description="seconds since the last run", example=1.5)),
    },
)
slots_said = ns.model(
    "Wanted",
    {
        "node_name": fields.String(required=True, example="127.0.1.11"),
        "version": fields.Integer(required=True, description="grows with each change", example=1700000003),
        "slots": fields.List(fields.Nested(slot_said), required=True),
    },
)
placement_said = ns.model(
    "Placement",
    {
        "data_name": fields.String(required=True, example="access_cost"),
        "node_name": fields.String(required=True, enum=[ANYWHERE]),
        "running": fields.Boolean(required=True, example=True),
        "interval": fields.Float(required=True, description="seconds between two runs", example=5),
        "replicas": fields.Integer(required=True, description="on how many nodes it should run", example=1),
        "nodes": fields.List(
            fields.String, required=True, description="where the service runs it now", example=["127.0.1.11"]
        ),
    },
)
log_said = ns.model(
    "SlotLog",
    {
        "node_name": fields.String(required=True, example="127.0.1.11"),
        "data_name": fields.String(required=True, example="load_1m"),
        "runs": fields.List(
            fields.Nested(
                ns.model(
                    "PastRun",
                    {
                        "ended_at": fields.Float(
                            required=True, description="Unix seconds by the node's clock", example=1700000000.0
                        ),
                        "outcome": fields.String(required=True, enum=list(Outcome)),
                        "duration": fields.Float(required=True, description="seconds", example=0.1),
                        "exit_status": or_null(
                            fields.Integer(description="negative for a signal, null if it never started", example=0)
                        ),
                        "value": or_null(fields.String(description="what it printed", example="0.93")),
                        "stderr": fields.String(required=True, description="the end of what it complained", example=""),
                    },
                )
            ),
            required=True,
            description="newest first",
        ),
    },
)


@ns.route("")
@ns.param("node_name", "the node that runs them", **NODE_NAME)
class Slots(Resource):
    """All of one node."""

    @ns.doc(security=[])
    @ns.response(200, "what is wanted, and how it went", slots_said)
    @ns.response(404, "no node has this name")
    @needs(Role.READER)
    def get(self, node_name: str) -> Any:
        """Show the wanted state of a node, its version, and how each slot last ended.

        An agent asks for it when it starts, and when the answer to a report names a newer version.
        """
        return latest().wanted(node_name).to_json()


@ns.route("/<data_name>")
@ns.param("node_name", WHERE, **NODE_NAME | {"pattern": f"^[*]$|{NODE_NAME['pattern']}"})
@ns.param("data_name", "the producer it runs", **DATA_NAME)
class OneSlot(Resource):
    """One producer on one node, or wherever the service chooses."""

    @ns.doc(security=[])
    @ns.response(200, "the slot; under * a Placement", slot_said)
    @ns.response(404, "no such node, or no such slot on it")
    @needs(Role.READER)
    def get(self, node_name: str, data_name: str) -> Any:
        """Show one slot, or under * where the service runs a producer of scope cluster.

        Outcome, duration, reason and age are those of the last run, null before the first.
        """
        return _shown(node_name, data_name)

    @ns.expect(slot_body)
    @ns.response(200, "changed, or as it was; under * a Placement", slot_said)
    @ns.response(201, "made; under * a Placement", slot_said)
    @ns.response(400, "the body is no JSON object")
    @ns.response(404, "no such node or producer, or no such slot to lift")
    @ns.response(409, "no slot can run the producer, or no node can take it")
    @ns.response(422, "a field is wrong; the answer names it")
    @needs(Role.SCHEDULER)
    def put(self, node_name: str, data_name: str) -> Any:
        """Start, stop or re-time a producer on a node; its agent is told at once.

        Under * the service runs it on as many ready nodes as it has replicas, and on others when one is lost. A slot
        that is put by the name of its node stays there.
        """
        given = body()
        running = given.flag("running", True)
        lift = given.flag("lift", False)
        if lift and not running:
            given.refuse("lift", lift, "false when running is false")
        interval = None if given.given("interval") is None else given.number("interval", above=0)
        known = latest()

        def is_ready(node_name: str) -> bool:
            return known.state(node_name) == "ready"

        def change(draft: Draft) -> bool:
            if lift:
                return _lift(draft, node_name, data_name, interval)
            if node_name != ANYWHERE:
                return set_slot(draft, node_name, data_name, running, interval)
            return cluster_slots.place(draft, data_name, running, interval, is_ready)

        new = write(change)
        return _shown(node_name, data_name), 201 if new else 200

    @ns.response(204, "removed")
    @ns.response(404, "no such node, or no such slot on it")
    @needs(Role.SCHEDULER)
    def delete(self, node_name: str, data_name: str) -> Any:
        """Remove a slot, or under * all that the service placed; its last value stays and grows old.

        The agents that run it are told.
        """
        if node_name == ANYWHERE:
            write(lambda draft: cluster_slots.withdraw(draft, data_name))
        else:
            write(lambda draft: delete_slot(draft, node_name, data_name))
        return "", 204


@ns.route("/<data_name>/log")
@ns.param("node_name", "the node that runs it", **NODE_NAME)
@ns.param("data_name", "the producer it runs", **DATA_NAME)
class SlotLog(Resource):
    """The last runs of one slot."""

    @ns.doc(security=[])
    @ns.response(200, "the last runs", log_said)
    @ns.response(404, "no such node, or no such slot on it")
    @ns.response(503, "the node's agent, which keeps the log, does not answer")
    @needs(Role.READER)
    def get(self, node_name: str, data_name: str) -> Any:
        """Show how the last runs of a slot ended, newest first, as its agent tells.

        The agent keeps the last 20 of each slot; the service asks it now.
        """
        picture = latest().picture
        picture.wish(node_name, data_name)
        agents: Agents = parts_of(current_app).agents
        runs = [run.to_json() for run in agents.runs(picture, node_name, data_name)]
        return {"node_name": node_name, "data_name": data_name, "runs": runs}


def _shown(node_name: str, data_name: str) -> dict[str, Any]:
    if node_name == ANYWHERE:
        return cluster_slots.described(latest().picture, data_name)
    return latest().slot(node_name, data_name).to_json()


def _lift(draft: Draft, node_name: str, data_name: str, interval: float | None) -> bool:
    if node_name == ANYWHERE:
        return cluster_slots.lift(draft, data_name, interval)
    return lift_slot(draft, node_name, data_name, interval)
