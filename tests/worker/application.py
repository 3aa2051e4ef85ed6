"""An application master for tests of the worker: real HTTP, real suspects, and every call noted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from jobs.images.rows import SCHEMA
from jobs.itemwork.messages import Item, Task
from jobs.itemwork.suspects import Suspects

TOKEN = "secret"


class Application:
    """Leases given one after the other, each until its rows are committed; `refuses` answers instead, if it does.

    Leases that are named in `urgent` are so; `wait` is said to whoever asks while others are given.
    """

    def __init__(self, leases: dict[str, Sequence[Item]], suspects: Suspects | None = None) -> None:
        self.waiting = dict(leases)
        self.given: dict[str, Sequence[Item]] = {}
        self.most = 0
        self.urgent: set[str] = set()
        self.wait = 0.05
        self.suspects = suspects or Suspects()
        self.rows: list[dict[str, Any]] = []
        self.commits: dict[str, tuple[float, int]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refuses: Callable[[str], int | None] = lambda path: None
        self.changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.refuses = lambda path: 500  # connections that are open still

    def until(self, condition: Callable[[], bool], seconds: float = 90) -> None:
        """Wait for what a worker does."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds), self.calls[-20:]

    def said(self, path: str) -> list[dict[str, Any]]:
        return [body for called, body in self.calls if called == path]

    def answer(self, path: str, query: dict[str, str], content: bytes) -> tuple[int, Any]:
        with self.changed:
            if refused := self.refuses(path):
                return refused, {"error": "refused by the test"}
            body = query if path == "/commit" else json.loads(content)
            assert body["node_name"] == "worker1"
            assert body["container_id"] == "container_1"
            self.calls.append((path, body))
            answer = self._commit(query, content) if path == "/commit" else getattr(self, path[1:])(body)
            self.changed.notify_all()
            return (204, None) if answer is None else (200, answer)

    def take(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.waiting:
            lease = next(iter(self.waiting))
            pictures = self.given[lease] = self.waiting.pop(lease)
            self.most = max(self.most, len(self.given))
            convicted = {one.name: why for one in pictures if (why := self.suspects.convictions.get(one.name))}
            task = Task(lease, self.suspects.split(pictures), convicted, lease in self.urgent)
            return {"lease": task.to_json()}
        return {"wait": self.wait} if self.given else {"done": True}

    def _commit(self, query: dict[str, str], content: bytes) -> dict[str, Any]:
        table = pa.ipc.open_stream(content).read_all()
        table.validate(full=True)
        assert table.schema == SCHEMA
        pictures = self.given.pop(query["lease"], None)
        if pictures is None:
            return {"answer": "expired", "why": "this lease has ended"}
        rows = table.to_pylist()
        assert sorted(row["path"] for row in rows) == sorted(one.name for one in pictures)
        self.rows += rows
        self.suspects.clear(row["path"] for row in rows)
        self.commits[query["lease"]] = float(query["seconds"]), int(query["bytes_read"])
        return {"answer": "accepted"}

    def heartbeat(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"holding": list(self.given)}

    def working(self, body: dict[str, Any]) -> None:
        pass

    def died(self, body: dict[str, Any]) -> dict[str, Any]:
        convicted = self.suspects.note_death(body["group"], body["reason"])
        pictures = [one for one in self.given[body["lease"]] if one.name in body["group"]]
        return {"groups": [one.to_json() for one in self.suspects.split(pictures)], "convicted": convicted}

    def failed(self, body: dict[str, Any]) -> None:
        pass


def _handler(application: Application) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            called = urlsplit(self.path)
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, answer = 401, None
            else:
                status, answer = application.answer(called.path, dict(parse_qsl(called.query)), content)
            body = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    return Handler
