"""Which producer runs where, and the master's word to the agents when that changes."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from infosvc.errors import InfoError, InvalidInput
from infosvc.latest import Latest, Picture
from infosvc.records import Node, Producer, Scope
from infosvc.settings import Settings

_log = logging.getLogger(__name__)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `host:port` (an IPv6 host in brackets); InvalidInput names what was given."""
    host, _, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or set(host) & set("/@ \t\n") or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidInput(f"address {address!r} is not HOST:PORT, for example 127.0.0.1:8410", "address")
    return host, int(port)


def nodes_for(producer: Producer, nodes: Sequence[Node]) -> list[str]:
    """The nodes on which a producer is started when nobody names any, by name.

    Scope node: all of them. Scope cluster: the first `replicas` that are ready; InvalidInput when there are fewer.
    """
    names = sorted(node.node_name for node in nodes)
    if producer.scope is Scope.CLUSTER:
        names = sorted(node.node_name for node in nodes if node.state == "ready")[: producer.replicas]
    wanted = producer.replicas if producer.scope is Scope.CLUSTER else 1
    if len(names) < wanted:
        raise InvalidInput(
            f"{producer.data_name} needs {wanted} node(s) and {len(names)} can be had: "
            "see `nodewise node list`, add one with `nodewise node add`, or choose with --node",
            "node_name",
        )
    return names


class Notices:
    """Tells agents their new wanted state in the background; one that does not hear it asks after its next report."""

    def __init__(self, settings: Settings) -> None:
        self.latest: Latest | None = None
        self._settings = settings
        self._pending: set[str] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(settings.notice_threads, thread_name_prefix="notice")

    def tell(self, before: Picture, after: Picture) -> None:
        """Called with the pictures around a commit: nodes whose wanted version changed are told, forgotten ones end."""
        for node_name in before.nodes.keys() - after.nodes.keys():
            self._pool.submit(self._stop_one, node_name, before.nodes[node_name].address)
        for node_name, machine in after.nodes.items():
            old = before.nodes.get(node_name)
            if old is machine or (old and (old.version, old.address) == (machine.version, machine.address)):
                continue
            with self._lock:
                if node_name in self._pending:
                    continue
                self._pending.add(node_name)
            self._pool.submit(self._tell_one, node_name)

    def close(self) -> None:
        """Forget what was not told yet and end."""
        self._pool.shutdown(cancel_futures=True)

    def _tell_one(self, node_name: str) -> None:
        with self._lock:
            self._pending.discard(node_name)
        try:
            if self.latest is not None:
                address, wanted = self.latest.node(node_name).address, self.latest.wanted(node_name).to_json()
                self._post(address, "/api/v1/wanted", wanted)
        except (OSError, http.client.HTTPException, InfoError) as error:
            _log.info("%s was not told its wanted state (%s); its agent will ask", node_name, error)

    def _stop_one(self, node_name: str, address: str) -> None:
        # A node that was enrolled at this address since has replaced the agent there, and keeps its own.
        if self.latest is None or any(machine.address == address for machine in self.latest.picture.nodes.values()):
            return
        try:
            self._post(address, "/api/v1/stop", {"node_name": node_name})
        except (OSError, http.client.HTTPException) as error:
            _log.warning("the agent of %s could not be stopped (%s); what it sends is refused", node_name, error)

    def _post(self, address: str, path: str, body: object) -> None:
        host, port = split_address(address)
        connection = http.client.HTTPConnection(host, port, timeout=self._settings.notice_timeout)
        headers = {"Authorization": f"Bearer {self._settings.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            status = connection.getresponse().status
            if status >= HTTPStatus.MULTIPLE_CHOICES:
                raise http.client.HTTPException(f"it answered {status}")
        finally:
            connection.close()
