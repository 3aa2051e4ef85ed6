"""What the service may ask of an agent, over HTTP on the node's own address."""

from __future__ import annotations

import hmac
import json
import socketserver
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from infosvc.errors import Conflict, InfoError, InvalidInput, NotFound, TooLarge, Unauthorized
from infosvc.records import Wanted, check_name

BODY_LIMIT = 1024 * 1024
PATIENCE_SECONDS = 10


class AgentServer(ThreadingHTTPServer):
    """GET /healthz, POST /api/v1/wanted, POST /api/v1/stop; what is POSTed needs the token."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        status: Callable[[], dict[str, Any]],
        on_wanted: Callable[[Wanted], None],
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(address, _Handler)
        self.token = token
        self.status = status
        self.on_wanted = on_wanted
        self.on_stop = on_stop

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of the host's name, which can hang where there is no name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who hangs up in the middle is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    timeout = PATIENCE_SECONDS
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """No line a request: the log is for what changes."""

    def _get(self) -> dict[str, Any]:
        if self.path != "/healthz":
            raise NotFound(f"{self.path} is nothing an agent answers: ask for /healthz")
        return self.server.status()

    def _post(self) -> dict[str, Any]:
        body = self._body()
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            raise Unauthorized("this call needs the token of the service: Authorization: Bearer ...")
        if self.path == "/api/v1/stop":
            self._check_name(body)
            self.server.on_stop()
            return {"stopping": True}
        if self.path != "/api/v1/wanted":
            raise NotFound(f"{self.path} is nothing an agent takes: post to /api/v1/wanted or /api/v1/stop")
        wanted = parse_wanted(body)
        self.server.on_wanted(wanted)
        return {"version": wanted.version}

    def _check_name(self, body: bytes) -> None:
        """The caller knows an address; who answers there may be another node's agent by now."""
        name = self.server.status()["node_name"]
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

    def _answer(self, call: Callable[[], dict[str, Any]]) -> None:
        try:
            status, answer = int(HTTPStatus.OK), call()
        except InfoError as error:
            status = error.status
            answer = {"error": {"code": error.code, "message": error.message, "field": error.field}}
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def parse_wanted(body: bytes) -> Wanted:
    """A wanted state as the service writes it; InvalidInput tells what is wrong with it."""
    try:
        wanted = Wanted.from_json(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"the body is no wanted state: {type(error).__name__}: {error}") from error
    for slot in wanted.slots:
        check_name(slot.data_name)
        for field in ("interval", "timeout"):
            seconds = getattr(slot, field)
            if not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
                raise InvalidInput(f"{field} of {slot.data_name} is {seconds!r}: give seconds above 0", field)
    return wanted
