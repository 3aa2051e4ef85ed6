"""The service's word to the agents that something is new for them; what it is, they ask the service."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from infosvc.management.agent_client import AgentClient
from infosvc.settings import Settings
from infosvc.state.configuration import Configuration
from infosvc.state.transaction import Commit
from infosvc.state.views import Latest
from infosvc.wire.errors import InfoError

_log = logging.getLogger(__name__)


class Notifier:
    """Tells agents in the background to ask; one that does not hear it asks after its next report."""

    def __init__(self, settings: Settings, latest: Latest, agents: AgentClient) -> None:
        self._latest = latest
        self._agents = agents
        self._pending: set[str] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(settings.notice_threads, thread_name_prefix="notice")

    def tell(self, commit: Commit) -> None:
        """Called after a commit: nodes whose wanted version changed are told, agents of forgotten ones end."""
        for table, (node_name, *_) in commit.changed:
            old, new = commit.before.nodes.get(node_name), commit.after.nodes.get(node_name)
            if table != "nodes" or old is new:
                continue
            if new is None:
                self._pool.submit(self._stop_one, commit.before, node_name)
            elif old is None or (old.version, old.address) != (new.version, new.address):
                self._schedule(node_name)

    def close(self) -> None:
        """Forget what was not told yet and end, without waiting for agents that are slow to listen."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _schedule(self, node_name: str) -> None:
        with self._lock:
            if node_name in self._pending:
                return
            self._pending.add(node_name)
        self._pool.submit(self._tell_one, node_name)

    def _tell_one(self, node_name: str) -> None:
        with self._lock:
            self._pending.discard(node_name)
        try:
            self._agents.notify(self._latest.configuration, node_name)
        except InfoError as error:
            _log.info("%s was not told that its wanted state is new (%s); its agent will ask", node_name, error)

    def _stop_one(self, before: Configuration, node_name: str) -> None:
        """Let the agent of a node that only the configuration `before` knew ask, and so hear that it is to end."""
        address = before.nodes[node_name].address
        # A node that was enrolled at this address since has replaced the agent there, and keeps its own.
        if any(machine.address == address for machine in self._latest.configuration.nodes.values()):
            return
        try:
            self._agents.notify(before, node_name)
        except InfoError as error:
            _log.warning("the agent of %s was not told to end (%s); what it sends is refused", node_name, error)
