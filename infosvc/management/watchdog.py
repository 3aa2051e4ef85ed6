"""Looks after the cluster once a second: who was lost, what must run elsewhere now, which history is too old."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from infosvc.access.audit import AuditLog
from infosvc.management.cluster_slots import Moves, apply, choose, find_placed, place
from infosvc.settings import Settings
from infosvc.state.configuration import Configuration, SlotRequest
from infosvc.state.transaction import Commit, Past, Transaction
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.errors import InfoError, NotReady
from infosvc.wire.records import Scope

STEP_SECONDS = 1.0
PRUNE_SECONDS = 60.0
FORGOTTEN = "forgotten"  # the state of a node that was removed, as events say it

_log = logging.getLogger(__name__)


class Watchdog:
    """One thread; each of `listeners` is called with "node" and {node_name, state} when a node's state changes.

    Here a node counts as lost only for silence while the service listened: after a pause of its own, every node gets
    the full time to report again.
    """

    def __init__(self, latest: Latest, writer: Writer, settings: Settings, audit_log: AuditLog) -> None:
        self.listeners: list[Callable[[str, dict[str, Any]], None]] = []
        self._latest, self._writer, self._settings = latest, writer, settings
        self._audit_log = audit_log
        self._now = latest.clock.monotonic
        self._listening_since = self._stepped_at = self._pruned_at = self._now()
        self._gone: deque[str] = deque()
        self._placed: set[str] = set()
        self._placed_changed = True
        self._orphans: dict[str, SlotRequest] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        writer.listeners.append(self.note)
        self._states = self._look()  # from now on every node that goes is noted
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Do what is due now."""
        with self._lock:
            self._listen()
            self._keep_placed()
            self._tell_states()
            self._prune()

    def note(self, commit: Commit) -> None:
        """Called after a commit: other producers may be placed now, or a node that was forgotten ran the only slot."""
        gone = commit.before.nodes.keys() - commit.after.nodes.keys()
        self._gone.extend(gone)
        for node_name in gone:
            self._latest.forget_node(node_name)
        if not any(table == "slots" for table, _ in commit.changed):
            return
        for node_name in gone:
            for name, slot_request in commit.before.slots.get(node_name, {}).items():
                if slot_request.placed and slot_request.running and not find_placed(commit.after, name):
                    self._orphans[name] = slot_request
        self._placed_changed = True

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(STEP_SECONDS):
            try:
                self.step()
            except Exception:  # the next second may go better
                _log.exception("the watchdog failed at a step")

    def _listen(self) -> None:
        now = self._now()
        if now - self._stepped_at > 2 * self._settings.heartbeat:
            self._listening_since = now
        self._stepped_at = now

    def is_lost(self, node_name: str) -> bool:
        """Whether a node was silent for so long while the service listened."""
        seen = self._latest.last_seen(node_name)
        heard = self._listening_since if seen is None else max(seen, self._listening_since)
        return self._now() - heard > self._settings.lost_after

    def _is_ready(self, node_name: str) -> bool:
        return self._latest.state(node_name) == "ready"

    def _look(self) -> dict[str, str]:
        return {name: self._latest.state(name) for name in self._latest.configuration.nodes}

    def _tell_states(self) -> None:
        # A node that came and went between two looks is told of too: who listed it in between shows it.
        noted = [self._gone.popleft() for _ in range(len(self._gone))]
        before, now = dict.fromkeys(noted, "") | self._states, self._look()
        # Readers see a node gone before `note` hears of it. Told at both times, it would be told twice, so it keeps its
        # old state until then.
        not_yet_noted = {name: state for name, state in before.items() if name not in now and name not in noted}
        self._states = now | not_yet_noted
        gone = dict.fromkeys(before.keys() - self._states.keys(), FORGOTTEN)
        for node_name, state in (self._states | gone).items():
            if before.get(node_name) != state:
                for listener in self.listeners:
                    listener("node", {"node_name": node_name, "state": state})

    def _keep_placed(self) -> None:
        for name, slot_request in list(self._orphans.items()):
            self._adopt(name, slot_request)
        if self._placed_changed:
            self._placed_changed = False  # before the configuration is read: a commit meanwhile sets it again
            slot_requests = [pair for slots in self._latest.configuration.slots.values() for pair in slots.items()]
            self._placed = {name for name, slot_request in slot_requests if slot_request.placed}
        for name in sorted(self._placed):
            if any(self._choose(self._latest.configuration, name)):
                self._write(name, partial(self._settle, data_name=name))

    def _adopt(self, data_name: str, slot_request: SlotRequest) -> None:
        """Place anew what ran only on a node that was forgotten; where no other node is, that is the end of it."""

        def place_anew(transaction: Transaction) -> None:
            if data_name in transaction.configuration.producers and not find_placed(
                transaction.configuration, data_name
            ):
                place(transaction, data_name, True, slot_request.interval, self._is_ready)
                self._record(
                    transaction, data_name, f"to {', '.join(find_placed(transaction.configuration, data_name))}"
                )

        if self._write(data_name, place_anew):
            del self._orphans[data_name]

    def _choose(self, configuration: Configuration, data_name: str) -> Moves:
        """The moves that are due, none for a producer that is stopped or no longer placed by the service."""
        producer, here = configuration.producers.get(data_name), find_placed(configuration, data_name)
        if (
            producer is None
            or producer.scope is not Scope.CLUSTER
            or not any(slot_request.running for slot_request in here.values())
        ):
            return Moves((), ())
        return choose(configuration, producer, self._is_ready, self.is_lost)

    def _settle(self, transaction: Transaction, data_name: str) -> None:
        moves = self._choose(transaction.configuration, data_name)
        if any(moves):
            slot_request = next(iter(find_placed(transaction.configuration, data_name).values()))
            apply(transaction, data_name, moves, SlotRequest(True, slot_request.interval, placed=True))
            self._record(
                transaction, data_name, f"to {', '.join(moves.to) or 'none'}, off {', '.join(moves.off) or 'none'}"
            )

    def _record(self, transaction: Transaction, data_name: str, detail: str) -> None:
        self._audit_log.record(
            transaction, self._latest.clock.wall(), "nodewise", "", f"PLACE {data_name}", 200, detail
        )
        _log.info("%s was placed anew: %s", data_name, detail)

    def _write(self, data_name: str, change: Callable[[Transaction], None]) -> bool:
        """Make a change; False when the database did not take it, so that it must be tried again."""
        try:
            self._writer.write(change)
        except InfoError as error:
            _log.warning("%s could not be placed anew (%s)", data_name, error)
            return not isinstance(error, NotReady)
        return True

    def _prune(self) -> None:
        """Once a minute, history that is older than its producer keeps it goes."""
        if self._now() - self._pruned_at < PRUNE_SECONDS:
            return
        self._pruned_at = self._now()
        for producer in self._latest.producers():
            if producer.keep:
                too_old = Past(producer.data_name, None, self._latest.clock.wall() - producer.keep)
                try:
                    # One at a time, so that no commit takes long.
                    self._writer.write(partial(_forget, too_old=too_old))
                except InfoError as error:
                    _log.warning("old values of %s stay for now (%s)", producer.data_name, error)
                    return


def _forget(transaction: Transaction, too_old: Past) -> None:
    transaction.forget.append(too_old)
