"""Takes the reports of agents in, which is nearly all that is ever written."""

from __future__ import annotations

from dataclasses import replace

from infosvc.access.roles import Caller
from infosvc.data import values
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.records import Receipt, Report, Role


def take(latest: Latest, writer: Writer, node_name: str, report: Report, caller: Caller) -> Receipt:
    """One report, once it is acknowledged; NotReady when the database does not take it in time.

    That the node lives is noted whether its values can be stored or not, and a heartbeat of an agent that is known
    already says no more than that. An agent may bring what its slots produce, an admin anything.
    """
    now = latest.clock.monotonic()
    machine = latest.configuration.node(node_name)
    latest.heard[node_name] = now
    receipt = Receipt(machine.version)
    if report.runs or (report.boot, report.dropped) != (machine.boot, machine.dropped):
        own = caller.role is Role.AGENT
        receipt = writer.write_report(
            lambda transaction: values.take_report(transaction, node_name, report, now, only_slots=own)
        )
    return replace(receipt, inputs=latest.inputs(node_name))
