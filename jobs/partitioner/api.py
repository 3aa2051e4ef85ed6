"""What workers say to the application master, over HTTP on its node's own address."""

from __future__ import annotations

import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jobs.worker.master import Progress

LARGEST_BODY = 64 * 1024


class Listener:
    """The latest progress of each node and the reasons of those that failed, behind a token."""

    def __init__(self, host: str, token: str) -> None:
        self._progress: dict[str, Progress] = {}
        self._reasons: dict[str, str] = {}
        self._heard: dict[str, float] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer((host, 0), _handler(self, token))
        self._server.daemon_threads = True
        self.address = f"http://{host}:{self._server.server_port}"
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, name="listener", daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def images_done(self) -> int:
        """Pictures that all nodes together have finished."""
        with self._lock:
            return sum(progress.images for progress in self._progress.values())

    def finished(self) -> dict[str, Progress]:
        """The last word of each node whose results are stored."""
        with self._lock:
            return {name: progress for name, progress in self._progress.items() if progress.finished}

    def reason(self, node_name: str) -> str | None:
        """What the worker of a node said when it gave up."""
        with self._lock:
            return self._reasons.get(node_name)

    def last_heard(self, node_name: str) -> float | None:
        """The monotonic second at which the worker of a node last said anything."""
        with self._lock:
            return self._heard.get(node_name)

    def hear(self, path: str, body: dict[str, Any]) -> None:
        """Take one message; KeyError, TypeError or ValueError when it is none of ours."""
        with self._lock:
            if path == "/progress":
                progress = Progress(**body)
                self._progress[progress.node_name] = progress
                self._heard[progress.node_name] = time.monotonic()
            elif path == "/failed":
                self._reasons[str(body["node_name"])] = str(body["reason"])
            else:
                raise KeyError(path)


def _handler(listener: Listener, token: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(self._take())
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _take(self) -> int:
            said = self.headers.get("Authorization", "")
            if not hmac.compare_digest(said.encode(), f"Bearer {token}".encode()):
                return 401
            length = int(self.headers.get("Content-Length", "0"))
            if length > LARGEST_BODY:
                return 413
            try:
                listener.hear(self.path, json.loads(self.rfile.read(length)))
            except (KeyError, TypeError, ValueError):
                return 400
            return 204

        def log_message(self, format: str, *args: object) -> None:
            """Progress is no news for the container's log."""

    return Handler
