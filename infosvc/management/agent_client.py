"""How the service calls an agent: at the address it was enrolled with, with a signature that only it can make."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from email.utils import parsedate_to_datetime
from typing import Any

from infosvc.access.tokens import agent_secrets
from infosvc.management.nodes import split_address
from infosvc.settings import Settings
from infosvc.state.configuration import Configuration
from infosvc.wire.answers import PastRun
from infosvc.wire.bounded_answer import answer_by, new_connection, read_whole
from infosvc.wire.errors import InfoError, InvalidInput, NotFound, NotReady, Unauthorized
from infosvc.wire.signature import WINDOW_SECONDS, sign

NOTICE = "/api/v1/notice"
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

    def notify(self, configuration: Configuration, node_name: str) -> None:
        """Tell the agent of a node of this configuration that something is new, of which it then asks the service."""
        self._ask(configuration, node_name, "POST", NOTICE)

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
            answer = self._ask(configuration, node_name, "GET", f"/api/v1/slots/{data_name}/log")
            return [PastRun.from_json(run) for run in answer["runs"]]
        except NotFound:
            return []
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise NotReady(
                f"what answers for the agent of {node_name} sent no log",
                "node_name",
                remedy="renew the agent with `nodewise node add`",
            ) from error

    def _ask(self, configuration: Configuration, node_name: str, method: str, path: str) -> Any:
        address = configuration.node(node_name).address
        try:
            return self._convince(agent_secrets(configuration, node_name), address, method, path)
        except (OSError, ValueError, RecursionError, http.client.HTTPException, Unauthorized) as error:
            raise NotReady(
                f"the agent of {node_name} at {address} does not answer ({error})",
                "node_name",
                remedy="see that it runs and can be reached, or start it with `nodewise node add`",
            ) from error

    def _convince(self, secrets: list[str], address: str, method: str, path: str) -> Any:
        """The answer to the first secret that the agent believes; without any, it believes nobody."""
        newest, *older = secrets or [""]
        try:
            return self._exchange(newest, address, method, path)
        except Unauthorized:
            if not older:
                raise
            return self._convince(older, address, method, path)

    def _exchange(self, secret: str, address: str, method: str, path: str) -> Any:
        patience = self._settings.notice_timeout
        deadline = time.monotonic() + patience
        connection = new_connection(*split_address(address), patience, self._tls)
        try:
            connection.request(method, path, headers={"Authorization": sign(secret, method, path)})
            response = answer_by(connection, deadline)
            if response.status >= 300:
                raise _error(response)
            return json.loads(read_whole(response, MOST_BYTES) or b"null")
        finally:
            connection.close()


def _error(response: http.client.HTTPResponse) -> InfoError | http.client.HTTPException:
    if response.status == NotFound.status:
        return NotFound("the agent knows nothing of this")
    if response.status == Unauthorized.status:
        return Unauthorized(_reason(response.headers["Date"]))
    return http.client.HTTPException(f"it answered {response.status}")


def _reason(date: str | None) -> str:
    """Why an agent that answers with this Date does not believe the service."""
    try:
        late = time.time() - parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        late = 0.0
    if abs(late) > WINDOW_SECONDS:
        way = "behind" if late > 0 else "ahead"
        return f"its clock is {abs(late):.0f} s {way}: set both clocks, for example by NTP"
    return "it holds a token that the service does not know, or is of a former release"
