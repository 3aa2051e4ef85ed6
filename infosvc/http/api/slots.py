"""Management service: which producer is wanted on which node, and how it last did."""

from __future__ import annotations

from typing import Any

from flask import current_app

from infosvc.access.roles import needs
from infosvc.core.service import components_of
from infosvc.http.api.body import body, read
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import latest, write
from infosvc.http.api.paging import AFTER, LINK, answer_list
from infosvc.http.api.restx import Namespace, Resource
from infosvc.http.openapi.document import DATA_NAME, NODE_NAME
from infosvc.http.openapi.schemas import answer_model, body_model
from infosvc.management import cluster_slots
from infosvc.management.agent_client import AgentClient
from infosvc.management.cluster_slots import ANYWHERE
from infosvc.management.slots import delete_slot, lift_slot, set_slot
from infosvc.state.transaction import Transaction
from infosvc.wire import answers
from infosvc.wire.bodies import SlotBody
from infosvc.wire.records import Role, Slot, Wanted

ns = Namespace("slots", "Management: what runs on a node", path="/nodes/<node_name>/slots")
calls = CallGroup("slots", ns)

WHERE = "the node that runs it; * for wherever the service runs a producer of scope cluster"

slot_body = body_model(ns, SlotBody)
slot_said = answer_model(ns, Slot)
slots_said = answer_model(ns, Wanted)
placement_said = answer_model(ns, answers.Placement)
log_said = answer_model(ns, answers.SlotLog)


@ns.route("")
@ns.param("node_name", "the node that runs them", **NODE_NAME)
class Slots(Resource):
    """All of one node."""

    @ns.doc(security=[])
    @ns.param("after", "leave out those up to this one", **AFTER)
    @ns.response(200, "what is wanted, and how it went", slots_said, headers=LINK)
    @ns.response(404, "no node has this name")
    @needs(Role.READER)
    def get(self, node_name: str) -> Any:
        """Show the wanted state of a node, its version, and how each slot last ended.

        An agent asks for it when it starts, and when the answer to a report names a newer version. A list of more than
        about 8 MiB comes in parts: follow the header Link.
        """
        wanted = latest().wanted(node_name)
        head = {"node_name": node_name, "version": wanted.version}
        return answer_list("slots", wanted.slots, "data_name", head)


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
        return _slot_view(node_name, data_name)

    @ns.expect(slot_body)
    @ns.response(200, "changed, or as it was; under * a Placement", slot_said)
    @ns.response(201, "made; under * a Placement", slot_said)
    @ns.response(400, "the body is not a JSON object")
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
        asked = read(SlotBody, given)
        if asked.lift and not asked.running:
            given.refuse("lift", asked.lift, "false when running is false")
        known = latest()

        def is_ready(node_name: str) -> bool:
            return known.state(node_name) == "ready"

        def change(transaction: Transaction) -> bool:
            if asked.lift:
                return _lift(transaction, node_name, data_name, asked.interval)
            if node_name != ANYWHERE:
                return set_slot(transaction, node_name, data_name, asked.running, asked.interval)
            return cluster_slots.place(transaction, data_name, asked.running, asked.interval, is_ready)

        new = write(change)
        return _slot_view(node_name, data_name), 201 if new else 200

    @ns.response(204, "removed")
    @ns.response(404, "no such node, or no such slot on it")
    @needs(Role.SCHEDULER)
    def delete(self, node_name: str, data_name: str) -> Any:
        """Remove a slot, or under * all that the service placed; its last value stays and grows old.

        The agents that run it are told.
        """
        if node_name == ANYWHERE:
            write(lambda transaction: cluster_slots.withdraw(transaction, data_name))
        else:
            write(lambda transaction: delete_slot(transaction, node_name, data_name))
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
        configuration = latest().configuration
        configuration.slot_request(node_name, data_name)
        agents: AgentClient = components_of(current_app).agents
        return answers.SlotLog(node_name, data_name, tuple(agents.runs(configuration, node_name, data_name))).to_json()


def _slot_view(node_name: str, data_name: str) -> dict[str, Any]:
    if node_name == ANYWHERE:
        return cluster_slots.placement(latest().configuration, data_name).to_json()
    return latest().slot(node_name, data_name).to_json()


def _lift(transaction: Transaction, node_name: str, data_name: str, interval: float | None) -> bool:
    if node_name == ANYWHERE:
        return cluster_slots.lift(transaction, data_name, interval)
    return lift_slot(transaction, node_name, data_name, interval)
