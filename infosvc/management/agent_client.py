"""How the service calls an agent: at the address it was enrolled with, showing that it knows the agent's token."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import Any

from infosvc.access.tokens import agent_secrets
from infosvc.management.nodes import split_address
from infosvc.settings import Settings
from infosvc.state.configuration import Configuration
from infosvc.wire.answers import PastRun
from infosvc.wire.deadline import DeadlineReader
from infosvc.wire.errors import InfoError, InvalidInput, NotFound, NotReady, Unauthorized

MOST_BYTES = 1 << 20  # of an answer
MOST_LOGS = 8  # asked for at the same time, each by a thread that could answer others


class AgentClient:
    """All agents, each called with `notice_timeout` seconds of patience; over https when their authority is known.

    Every call raises NotFound when the agent knows nothing of it, and NotReady for any other answer or none.
    """

    def __init__(self, settings: Settings) -> None:
        """InvalidInput when the authority's file cannot be used."""
        self._settings = settings
        self._logs = threading.BoundedSemaphore(MOST_LOGS)
        try:
            self._tls = ssl.create_default_context(cafile=settings.agent_ca) if settings.agent_ca else None
        except OSError as error:
            raise InvalidInput(
                f"the agents' authority {settings.agent_ca} cannot be used ({error})",
                "agent_ca",
                remedy="name a file of PEM certificates",
            ) from error

    def post(self, configuration: Configuration, node_name: str, path: str, body: Any) -> None:
        """Tell the agent of a node of this configuration something."""
        self._ask(configuration, node_name, "POST", path, body)

    def runs(self, configuration: Configuration, node_name: str, data_name: str) -> list[PastRun]:
        """The last runs of a slot from its agent, newest first; none when it has not run there yet."""
        if not self._logs.acquire(blocking=False):
            raise NotReady(f"{MOST_LOGS} logs are being asked for already", remedy="try again later")
        try:
            return self._runs(configuration, node_name, data_name)
        finally:
            self._logs.release()

    def _runs(self, configuration: Configuration, node_name: str, data_name: str) -> list[PastRun]:
        try:
            said = self._ask(configuration, node_name, "GET", f"/api/v1/slots/{data_name}/log")
            return [PastRun.from_json(run) for run in said["runs"]]
        except NotFound:
            return []
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotReady(
                f"what answers for the agent of {node_name} sent no log",
                "node_name",
                remedy="renew the agent with `nodewise node add`",
            ) from error

    def _ask(self, configuration: Configuration, node_name: str, method: str, path: str, body: Any = None) -> Any:
        address = configuration.node(node_name).address
        sent = None if body is None else json.dumps(body)
        try:
            return self._convince(agent_secrets(configuration, node_name), address, method, path, sent)
        except (OSError, ValueError, RecursionError, http.client.HTTPException, Unauthorized) as error:
            raise NotReady(
                f"the agent of {node_name} at {address} does not answer ({error})",
                "node_name",
                remedy="see that it runs and can be reached, or start it with `nodewise node add`",
            ) from error

    def _convince(self, secrets: list[str], address: str, method: str, path: str, body: str | None) -> Any:
        """The answer to the first secret that the agent believes; without any, it believes nobody."""
        newest, *older = secrets or [""]
        try:
            return self._exchange(newest, address, method, path, body)
        except Unauthorized:
            if not older:
                raise
            return self._convince(older, address, method, path, body)

    def _exchange(self, secret: str, address: str, method: str, path: str, body: str | None) -> Any:
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        deadline = time.monotonic() + self._settings.notice_timeout
        connection = self._connection(*split_address(address))
        try:
            connection.request(method, path, body, headers)
            response = http.client.HTTPResponse(DeadlineReader(connection.sock, deadline), method=method)  # type: ignore[arg-type]
            response.begin()
            if response.status >= 300:
                raise _error(response.status)
            return json.loads(response.read(MOST_BYTES) or b"null")
        finally:
            connection.close()

    def _connection(self, host: str, port: int) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=self._settings.notice_timeout)
        return http.client.HTTPSConnection(host, port, timeout=self._settings.notice_timeout, context=self._tls)


def _error(status: int) -> InfoError | http.client.HTTPException:
    if status == NotFound.status:
        return NotFound("the agent knows nothing of this")
    if status == Unauthorized.status:
        return Unauthorized("it holds a token that the service does not know")
    return http.client.HTTPException(f"it answered {status}")
