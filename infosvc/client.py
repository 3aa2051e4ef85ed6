"""The only caller of the service's URLs. Standard library only, so it travels to nodes and containers.

>>> client = InfoClient("http://127.0.0.1:8400")                                   # doctest: +SKIP
>>> {datum.node_name: datum.number() for datum in client.data("cpu_free_ratio")}   # doctest: +SKIP
{'worker1': 0.93, 'worker2': 0.12}
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from infosvc.errors import BY_STATUS, InfoError, InvalidInput, NotReady, Unreachable
from infosvc.records import Datum, Node, Producer, Report, Wanted

DEFAULT_URL = "http://127.0.0.1:8400"


class InfoClient:
    """One service, spoken to with `timeout` seconds of patience a call; a token is needed to write.

    Every method raises an InfoError: Unreachable when there is no answer, else the error the service named.
    """

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, timeout: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise Unreachable(f"{url!r} is not an address of an information service: use http://HOST:PORT", "url")
        self.url = url.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or 80
        self._base = parts.path.rstrip("/") + "/api/v1"
        self._token = token
        self._timeout = timeout

    @classmethod
    def from_token_file(cls, url: str, token_file: str | Path | None, timeout: float = 10.0) -> InfoClient:
        """A client whose token is the content of a file; a missing file means reading only."""
        path = Path(token_file) if token_file else None
        token = path.read_text().strip() if path and path.is_file() else None
        return cls(url, token, timeout)

    def producers(self) -> list[Producer]:
        """All registered producers, by name."""
        return [Producer.from_json(row) for row in self._call("GET", "/producers")["producers"]]

    def producer(self, data_name: str) -> Producer:
        """One registered producer; NotFound when the name is unknown."""
        return Producer.from_json(self._call("GET", f"/producers/{quote(data_name)}"))

    def put_producer(self, producer: Producer, if_match: int | None = None) -> Producer:
        """Register or update; `if_match` makes the update conditional on the stored version."""
        body = {key: value for key, value in producer.to_json().items() if key not in ("data_name", "version")}
        headers = {"If-Match": str(if_match)} if if_match is not None else {}
        return Producer.from_json(self._call("PUT", f"/producers/{quote(producer.data_name)}", body, headers))

    def delete_producer(self, data_name: str) -> None:
        """Forget a producer, its slots and its values."""
        self._call("DELETE", f"/producers/{quote(data_name)}")

    def nodes(self) -> list[Node]:
        """All enrolled nodes, by name."""
        return [Node.from_json(row) for row in self._call("GET", "/nodes")["nodes"]]

    def put_node(self, node_name: str, address: str, agent_version: str = "") -> Node:
        """Enrol a node whose agent listens at `address` (host:port)."""
        body = {"address": address, "agent_version": agent_version}
        return Node.from_json(self._call("PUT", f"/nodes/{quote(node_name)}", body))

    def delete_node(self, node_name: str) -> None:
        """Forget a node, its slots and its values."""
        self._call("DELETE", f"/nodes/{quote(node_name)}")

    def slots(self, node_name: str) -> Wanted:
        """The wanted state of one node with the last outcome of each slot."""
        return Wanted.from_json(self._call("GET", f"/nodes/{quote(node_name)}/slots"))

    def put_slot(self, node_name: str, data_name: str, running: bool, interval: float | None = None) -> None:
        """Start or stop a producer on a node; `interval` seconds replaces the producer's time_max there."""
        body = {"running": running, "interval": interval}
        self._call("PUT", f"/nodes/{quote(node_name)}/slots/{quote(data_name)}", body)

    def delete_slot(self, node_name: str, data_name: str) -> None:
        """Remove a slot from a node."""
        self._call("DELETE", f"/nodes/{quote(node_name)}/slots/{quote(data_name)}")

    def report(self, node_name: str, report: Report) -> int:
        """Send one batch of runs; the answer is the version of the wanted state that is current."""
        answer = self._call("POST", f"/nodes/{quote(node_name)}/report", report.to_json())
        return int(answer["wanted_version"])

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        """The latest value on every node, or on one; NotFound when nothing produces this name."""
        asked = {"node": node, "max_age": max_age}
        query = urlencode({key: value for key, value in asked.items() if value is not None})
        answer = self._call("GET", f"/data/{quote(data_name)}" + (f"?{query}" if query else ""))
        shared = {"data_name": answer["data_name"], "unit": answer["unit"]}
        return [Datum.from_json(shared | row) for row in answer["values"]]

    def put_value(self, data_name: str, node_name: str, data_value: str | float) -> None:
        """Write one value of a registered data name."""
        self._call("PUT", f"/data/{quote(data_name)}/{quote(node_name)}", {"data_value": str(data_value)})

    def delete_value(self, data_name: str, node_name: str) -> None:
        """Forget one value."""
        self._call("DELETE", f"/data/{quote(data_name)}/{quote(node_name)}")

    def _call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        sent = dict(headers or {}) | {"Accept": "application/json"}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else _encoded(body)
        if data is not None:
            sent["Content-Type"] = "application/json"
        status, answer = self._exchange(method, self._base + path, data, sent)
        if status >= 400:
            raise _error(status, answer)
        decoded: dict[str, Any] = json.loads(answer) if answer else {}
        return decoded

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"the information service at {self.url} does not answer ({error}): "
                "start it with `nodewise serve`, or name another one with --url"
            ) from error
        finally:
            connection.close()


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except ValueError as error:
        raise InvalidInput("a number that is infinite or not a number cannot be sent: give a finite one") from error


def _error(status: int, answer: bytes) -> InfoError:
    """The service's own error as an exception; anything that is not its error page becomes NotReady."""
    kind = BY_STATUS.get(status, NotReady)
    try:
        said = json.loads(answer)["error"]
        return kind(str(said["message"]), said.get("field"))
    except (ValueError, KeyError, TypeError):
        return kind(f"the information service answered {status} without saying why")
