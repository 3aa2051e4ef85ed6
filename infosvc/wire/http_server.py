"""A small HTTP server with bounds, which the agent and the application master share. Standard library only.

Write a class of `Handler` with `get` and `post`, each of which ends with `self.reply(Reply(200, content))`, and serve
it:

    server = Server(("127.0.0.1", 0), MyHandler, patience=10)
    threading.Thread(target=server.serve_forever).start()
"""

from __future__ import annotations

import io
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from infosvc.wire.deadline import DeadlineReader

JSON, HTML = "application/json", "text/html; charset=utf-8"
RETRY_AFTER = "Retry-After"


@dataclass(frozen=True)
class Reply:
    """What is sent back."""

    status: int
    content: bytes = b""
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    """Serves each connection in a thread of its own.

    A request must come within `patience` seconds, the wait for it included, and its answer may stop for as long. Beyond
    `most_connections` a caller is hung up on. Connections are strangers until the handler calls `trust`; beyond
    `most_strangers` the oldest of these is ended. With `tls` every connection must begin with a handshake.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[Handler],
        patience: float,
        most_connections: int | None = None,
        tls: ssl.SSLContext | None = None,
        most_strangers: int | None = None,
    ) -> None:
        self.patience = patience
        self._tls = tls
        self._places = threading.BoundedSemaphore(most_connections) if most_connections else None
        self._most_strangers = most_strangers
        self._strangers: dict[socket.socket, None] = {}
        self._strangers_lock = threading.Lock()
        super().__init__(address, handler)

    def trust(self, connection: socket.socket) -> None:
        """Whoever calls here has shown who it is: the connection is not ended in favour of others."""
        with self._strangers_lock:
            self._strangers.pop(connection, None)

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
        """Start the connection's thread, unless there are too many."""
        if self._places is not None and not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._note_stranger(request)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be had
            self._leave_place()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In that thread: the whole life of the connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.trust(request)  # its descriptor is another connection's by now
            self._leave_place()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is the caller's to notice."""

    def _note_stranger(self, connection: socket.socket) -> None:
        """Count a connection that has just come, and end the oldest stranger where there are too many."""
        if self._most_strangers is None:
            return
        with self._strangers_lock:
            self._strangers[connection] = None
            if len(self._strangers) > self._most_strangers:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with suppress(OSError):  # it may have hung up
                    oldest.shutdown(socket.SHUT_RDWR)

    def _leave_place(self) -> None:
        if self._places is not None:
            self._places.release()


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "nodewise", ""
    disable_nagle_algorithm = True  # the head and the body of an answer are two small packets
    server: Server

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._reader = DeadlineReader(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        self._renew_patience()
        super().handle_one_request()

    def do_GET(self) -> None:
        self.get()

    def do_POST(self) -> None:
        self.post()

    def get(self) -> None:
        """Answer a GET."""
        raise NotImplementedError

    def post(self) -> None:
        """Answer a POST."""
        raise NotImplementedError

    def body_length(self) -> int | None:
        """The bytes that Content-Length announces; None without it, or when that is not a number."""
        text = self.headers.get("Content-Length", "")
        return int(text) if text.isascii() and text.isdecimal() else None

    def read_body(self, length: int, in_own_time: bool = False) -> bytes:
        """Read exactly so many bytes; OSError, which ends the connection, when they do not come in time.

        A large body gets the server's patience once more when it comes `in_own_time`.
        """
        if in_own_time:
            self._renew_patience()
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError("the caller hung up in the middle of a body")
        return body

    def reply(self, reply: Reply) -> None:
        """Send an answer; after one that sets `close_connection` the connection ends."""
        self.send_head(reply.status, len(reply.content), reply.kind if reply.content else "", reply.headers)
        self.wfile.write(reply.content)

    def send_head(self, status: int, size: int, kind: str, headers: Mapping[str, str] | None = None) -> None:
        """Send the head of an answer whose `size` bytes follow."""
        self.connection.settimeout(self.server.patience)  # what reading left of it would be too little
        self.send_response(status)
        self.send_header("Content-Length", str(size))
        for name, value in {**({"Content-Type": kind} if kind else {}), **(headers or {})}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests are no news."""

    def _renew_patience(self) -> None:
        self._reader.deadline = time.monotonic() + self.server.patience
