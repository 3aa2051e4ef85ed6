"""What the service may ask of an agent, over HTTP on the node's own address."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from collectors.agent import probe
from collectors.agent.slot_request import checked, parsed
from infosvc.wire.answers import PastRun
from infosvc.wire.errors import Conflict, InfoError, InvalidInput, NotFound, TooLarge, Unauthorized
from infosvc.wire.records import Wanted, check_name

BODY_LIMIT = 1024 * 1024
PATIENCE_SECONDS = 10  # for a whole request, however slowly it comes
MAX_CONNECTIONS = 16
_LOG_START, _LOG_END = "/api/v1/slots/", "/log"


@dataclass(frozen=True)
class Calls:
    """What the agent does when it is asked; each may raise an InfoError."""

    status: Callable[[], dict[str, Any]]
    want: Callable[[Wanted], None]
    stop: Callable[[], None]
    slot_log: Callable[[str], list[PastRun]]


class AgentServer(ThreadingHTTPServer):
    """What is open to anybody:

    GET /healthz                         who this is
    GET /api/v1/probe?bytes=N            N random bytes, within the limits of Probes; else 429 with Retry-After

    and what needs `Authorization: Bearer SHA256`, the hash of the agent's token:

    POST /api/v1/wanted                  take a wanted state
    POST /api/v1/stop                    end the agent: {"node_name": "..."}
    GET /api/v1/slots/{data_name}/log    the last runs, newest first: {"node_name", "data_name", "runs"}

    With `tls` every connection must begin with a handshake. Beyond MAX_CONNECTIONS a caller is hung up on.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], token: str, calls: Calls, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(address, _Handler)
        # The service keeps no token, only its hash, and so shows that.
        self.secret = f"Bearer {hashlib.sha256(token.encode()).hexdigest()}".encode()
        self.calls = calls
        self.probes = probe.Probes()
        self._tls = tls
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of the host's name, which can hang where there is no name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept; the handshake comes with the first read, in the connection's own thread and within its patience."""
        connection, address = super().get_request()
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, as long as there are few."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be had
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In that thread: the whole life of the connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who hangs up in the middle is no news."""


class _Patient(io.RawIOBase):
    """Reads from a connection until a moment that is set for each request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request came too slowly")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    timeout = PATIENCE_SECONDS
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._patient = _Patient(self.connection)
        self.rfile = io.BufferedReader(self._patient)

    def handle_one_request(self) -> None:
        self._patient.deadline = time.monotonic() + PATIENCE_SECONDS
        super().handle_one_request()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == probe.PATH:
            self._answer_probe(query)
        else:
            self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """No line a request: the log is for what changes."""

    def _get(self) -> dict[str, Any]:
        if self.path == "/healthz":
            return self.server.calls.status()
        if not (self.path.startswith(_LOG_START) and self.path.endswith(_LOG_END)):
            raise NotFound(f"{self.path} is nothing an agent answers: ask for /healthz")
        self._check_secret()
        data_name = check_name(unquote(self.path[len(_LOG_START) : -len(_LOG_END)]))
        runs = [run.to_json() for run in self.server.calls.slot_log(data_name)]
        return {"node_name": self.server.calls.status()["node_name"], "data_name": data_name, "runs": runs}

    def _post(self) -> dict[str, Any]:
        self._check_secret()
        body = self._body()
        if self.path == "/api/v1/stop":
            self._check_name(body)
            self.server.calls.stop()
            return {"stopping": True}
        if self.path != "/api/v1/wanted":
            raise NotFound(f"{self.path} is nothing an agent takes: post to /api/v1/wanted or /api/v1/stop")
        wanted = checked(parsed(body), self.server.calls.status()["node_name"])
        self.server.calls.want(wanted)
        return {"version": wanted.version}

    def _check_secret(self) -> None:
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, self.server.secret):
            self.close_connection = True  # whatever body it sends, it is not read
            raise Unauthorized("this call needs the hash of this agent's token: Authorization: Bearer ...")

    def _check_name(self, body: bytes) -> None:
        """The caller knows an address; who answers there may be another node's agent by now."""
        name = self.server.calls.status()["node_name"]
        try:
            asked = json.loads(body)["node_name"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput('the body must name the node to stop: {"node_name": "..."}', "node_name") from error
        if asked != name:
            raise Conflict(f"this is the agent of {name}, not of {asked!r}", "node_name")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal():
            raise InvalidInput("Content-Length must be a number of bytes", "Content-Length")
        if int(length) > BODY_LIMIT:
            self.close_connection = True
            raise TooLarge(f"the body has {length} bytes, at most {BODY_LIMIT} are taken")
        return self.rfile.read(int(length))

    def _answer_probe(self, query: str) -> None:
        try:
            with self.server.probes.granted(query) as size:
                self._send_probe(size)
        except InfoError as error:
            self._refuse(error)

    def _send_probe(self, size: int) -> None:
        """Who takes it too slowly is hung up on, because the next one waits."""
        deadline = time.monotonic() + probe.patience_seconds(size)
        # Else the last bytes wait for word that those before have come, which would be measured, too.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send_head(HTTPStatus.OK, "application/octet-stream", size)
        for chunk in probe.chunks(size):
            self.connection.settimeout(max(deadline - time.monotonic(), 0.001))
            self.wfile.write(chunk)
        self.connection.settimeout(PATIENCE_SECONDS)

    def _answer(self, call: Callable[[], dict[str, Any]]) -> None:
        try:
            self._send_json(HTTPStatus.OK, call())
        except InfoError as error:
            self._refuse(error)

    def _refuse(self, error: InfoError) -> None:
        wait = {"Retry-After": str(error.retry_after)} if isinstance(error, probe.Busy) else {}
        answer = {"error": {"code": error.code, "message": error.message, "field": error.field}}
        self._send_json(error.status, answer, wait)

    def _send_json(self, status: int, answer: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(answer).encode()
        self._send_head(status, "application/json", len(content), headers)
        self.wfile.write(content)

    def _send_head(self, status: int, content_type: str, size: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(size))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
