"""The only caller of the service's URLs. Standard library only, so it travels to nodes and containers.

>>> client = InfoClient("http://127.0.0.1:8400")                                   # doctest: +SKIP
>>> {datum.node_name: datum.number() for datum in client.data("cpu_free_ratio")}   # doctest: +SKIP
{'worker1': 0.93, 'worker2': 0.12}
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from infosvc.errors import BY_STATUS, InfoError, InvalidInput, NotReady, Unauthorized, Unreachable
from infosvc.records import Datum, Node, Producer, Report, Wanted

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8400"


def token_path(home: Path, token_file: Path | None) -> Path:
    """The token file that was named, or the one under home."""
    return token_file or home / "service" / "token"


def read_token(home: Path, token_file: Path | None) -> str | None:
    """The token, None when nothing lies at the default place; InvalidInput when a named file cannot be read."""
    path = token_path(home, token_file)
    if not token_file and not path.exists():
        return None
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {path} cannot be read ({error}): `nodewise serve` makes it; name it with --token-file",
            "token_file",
        ) from error


class InfoClient:
    """One service, spoken to with `timeout` seconds of patience a call; a token is needed to write.

    Every method raises an InfoError: Unreachable when there is no answer, else the error the service named.
    """

    def __init__(self, url: str = DEFAULT_URL, token: str | None = None, timeout: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._host, self._port, path = _parts(url)
        self._base = path.rstrip("/") + "/api/v1"
        if token and not (token.isascii() and len(token.split()) == 1):
            raise Unauthorized("the token is not one word of plain characters: name the service's with --token-file")
        self._token = token
        self._timeout = timeout

    @classmethod
    def from_token_file(cls, url: str, token_file: str | Path | None, timeout: float = 10.0) -> InfoClient:
        """A client whose token is the content of a file; a missing file means reading only.

        Unauthorized when the file is there and cannot be read.
        """
        try:
            token = Path(token_file).read_text().strip() if token_file else None
        except FileNotFoundError:
            token = None
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(f"the token file {token_file} cannot be read ({error}): chown or chmod it") from error
        return cls(url, token, timeout)

    def producers(self) -> list[Producer]:
        """All registered producers, by name."""
        return self._ask("/producers", lambda said: [Producer.from_json(row) for row in said["producers"]])

    def producer(self, data_name: str) -> Producer:
        """One registered producer; NotFound when the name is unknown."""
        return self._ask(f"/producers/{quote(data_name)}", Producer.from_json)

    def put_producer(self, producer: Producer, if_match: int | None = None) -> Producer:
        """Register or update; `if_match` makes the update conditional on the stored version."""
        body = {key: value for key, value in producer.to_json().items() if key not in ("data_name", "version")}
        headers = {"If-Match": str(if_match)} if if_match is not None else {}
        answer = self._call("PUT", f"/producers/{quote(producer.data_name)}", body, headers)
        return self._read(answer, Producer.from_json)

    def delete_producer(self, data_name: str) -> None:
        """Forget a producer, its slots and its values."""
        self._call("DELETE", f"/producers/{quote(data_name)}")

    def nodes(self) -> list[Node]:
        """All enrolled nodes, by name."""
        return self._ask("/nodes", lambda said: [Node.from_json(row) for row in said["nodes"]])

    def put_node(self, node_name: str, address: str, agent_version: str = "") -> Node:
        """Enrol a node whose agent listens at `address` (host:port)."""
        body = {"address": address, "agent_version": agent_version}
        return self._read(self._call("PUT", f"/nodes/{quote(node_name)}", body), Node.from_json)

    def delete_node(self, node_name: str) -> None:
        """Forget a node, its slots and its values."""
        self._call("DELETE", f"/nodes/{quote(node_name)}")

    def slots(self, node_name: str) -> Wanted:
        """The wanted state of one node with the last outcome of each slot."""
        return self._ask(f"/nodes/{quote(node_name)}/slots", Wanted.from_json)

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
        return self._read(answer, lambda said: int(said["wanted_version"]))

    def data(self, data_name: str, node: str | None = None, max_age: float | None = None) -> list[Datum]:
        """The latest value on every node, or on one; NotFound when nothing produces this name."""
        asked = {"node": node, "max_age": max_age}
        query = urlencode({key: value for key, value in asked.items() if value is not None})
        return self._ask(f"/data/{quote(data_name)}" + (f"?{query}" if query else ""), _data)

    def put_value(self, data_name: str, node_name: str, data_value: str | float) -> None:
        """Write one value of a registered data name."""
        self._call("PUT", f"/data/{quote(data_name)}/{quote(node_name)}", {"data_value": str(data_value)})

    def delete_value(self, data_name: str, node_name: str) -> None:
        """Forget one value."""
        self._call("DELETE", f"/data/{quote(data_name)}/{quote(node_name)}")

    def _ask(self, path: str, read: Callable[[Any], T]) -> T:
        return self._read(self._call("GET", path), read)

    def _read(self, answer: Any, read: Callable[[Any], T]) -> T:
        """What `read` makes of an answer; whatever else listens there can answer anything."""
        try:
            return read(answer)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._foreign() from error

    def _foreign(self) -> NotReady:
        return NotReady(f"{self.url} answered, but is no information service: name another one with --url", "url")

    def _call(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        sent = dict(headers or {}) | {"Accept": "application/json"}
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else _encoded(body)
        if data is not None:
            sent["Content-Type"] = "application/json"
        status, answer = self._exchange(method, self._base + path, data, sent)
        if status >= 400:
            raise _error(status, answer)
        if status >= 300:
            raise self._foreign()
        return self._read(answer or b"{}", json.loads)

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unreachable(
                f"the information service at {self.url} does not answer ({error}): "
                "start it with `nodewise serve`, or name another one with --url"
            ) from error
        finally:
            connection.close()


def _parts(url: str) -> tuple[str, int, str]:
    """Host, port and path of a URL; Unreachable when it is not one that can be called."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
        if parts.scheme == "http" and host and host.encode("idna"):
            return host, port, parts.path
    except ValueError:  # also a UnicodeError: an impossible host name
        pass
    raise Unreachable(f"{url!r} is not an address of an information service: use http://HOST:PORT", "url")


def _data(said: Any) -> list[Datum]:
    shared = {"data_name": said["data_name"], "unit": said["unit"]}
    return [Datum.from_json(shared | row) for row in said["values"]]


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
