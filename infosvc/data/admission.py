"""Which values callers may write: of which node, and how much. What agents report is bounded by their slots."""

from __future__ import annotations

from infosvc.access.rate_limit import RateLimit, TooFast
from infosvc.access.roles import Caller
from infosvc.settings import Settings
from infosvc.state.transaction import Transaction
from infosvc.state.value import size_of
from infosvc.state.views import Latest
from infosvc.wire.errors import Conflict, NotFound, TooLarge
from infosvc.wire.records import Kind, Role

HOUR = 3600.0


class Admission:
    """The limits of one service."""

    def __init__(self, settings: Settings, latest: Latest) -> None:
        self._settings = settings
        self._latest = latest
        self._written = RateLimit(settings.bytes_per_token / HOUR, HOUR)

    def spend(self, caller: Caller, data_name: str, text: str) -> None:
        """Count what a token writes, twice if history keeps it too; TooFast when that is more than it may in an hour.

        NotFound when nothing is registered under the name.
        """
        size = size_of(text) * (2 if self._latest.configuration.producer(data_name).keep else 1)
        wait = self._written.take(caller.token_id, self._latest.clock.monotonic(), size)
        if wait:
            raise TooFast(
                f"a token may write {self._settings.bytes_per_token} bytes of values an hour (--bytes-per-token)", wait
            )

    def check(self, transaction: Transaction, caller: Caller, data_name: str, node_name: str, text: str) -> None:
        """Refuse a value that must not be written, before the transaction changes; else count it there.

        NotFound for a name or node that is unknown, Conflict when a slot brings the value or too many nodes have one,
        TooLarge when the name or the service would hold too many bytes.
        """
        _refuse_slots_cell(transaction, data_name, node_name)
        self._refuse_unknown_node(transaction, caller, data_name, node_name)
        self._refuse_too_many(transaction, data_name, node_name)
        self._count_bytes(transaction, data_name, node_name, text)

    def _refuse_unknown_node(self, transaction: Transaction, caller: Caller, data_name: str, node_name: str) -> None:
        """Only admins write values of nodes that nobody enrolled; with any_node, others too what is not measured."""
        if caller.role is Role.ADMIN or node_name in transaction.configuration.nodes:
            return
        remedy = f"enrol it with `nodewise node add {node_name}`, or write with an admin's token"
        if transaction.configuration.producer(data_name).kind is Kind.PROGRAM:
            if self._settings.any_node:
                return
            remedy += ", or start the service with --any-node"
        raise NotFound(
            f"no node is called {node_name!r}, and a token of role {caller.role} writes values of enrolled nodes only",
            "node_name",
            remedy=remedy,
        )

    def _refuse_too_many(self, transaction: Transaction, data_name: str, node_name: str) -> None:
        """Nodes need not be enrolled to have values, so that one caller could fill the memory."""
        most = self._settings.max_nodes_per_name
        if self._latest.current_values.count(data_name) < most or transaction.value(data_name, node_name) is not None:
            return
        raise Conflict(
            f"{data_name} has values of {most} nodes already",
            "node_name",
            remedy="forget some with `nodewise data rm`, or register another name",
        )

    def _count_bytes(self, transaction: Transaction, data_name: str, node_name: str, text: str) -> None:
        old = transaction.value(data_name, node_name)
        growth = size_of(text) - (size_of(old.text) if old else 0)
        if growth > 0:
            held, grown = self._latest.current_values, transaction.grown
            of_name = held.size(data_name) + grown[data_name] + growth
            _refuse_overflow(f"the values of {data_name}", of_name, self._settings.bytes_per_name, "--bytes-per-name")
            of_all = held.size() + grown.total() + growth
            _refuse_overflow("all values together", of_all, self._settings.bytes_in_all, "--bytes-in-all")
        transaction.grown[data_name] += growth


def _refuse_overflow(what: str, size: int, most: int, option: str) -> None:
    if most and size > most:
        raise TooLarge(
            f"{what} would have {size} bytes and may have {most}",
            "data_value",
            remedy=f"write shorter ones, forget some with `nodewise data rm`, or start the service with more {option}",
        )


def _refuse_slots_cell(transaction: Transaction, data_name: str, node_name: str) -> None:
    """What a slot brings says how its runs went, which nobody may write over."""
    slot_request = transaction.configuration.slots.get(node_name, {}).get(data_name)
    if slot_request is not None and slot_request.running:
        raise Conflict(
            f"{data_name} runs in a slot on {node_name}",
            "data_name",
            remedy=(
                f"stop it with `nodewise slot stop {data_name} --node {node_name}`, or register the name "
                "with kind program"
            ),
        )
