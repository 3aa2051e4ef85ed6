"""A Docker that is played: it has no containers, but pulls images over real HTTP, and compares what it gets."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit


class PlayedDocker:
    """Listens at `socket` until it is closed.

    images     that it has, by id
    layers     that it has, by digest
    pulls      what it was asked to pull: name and digest
    says       lines that it tells of a pull before it begins, and that it goes on to tell for ever when it `hangs`
    given_up   set once the caller has hung up in the middle of a pull
    """

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "docker.sock"
        self.root = folder
        self.images: set[str] = set()
        self.layers: set[str] = set()
        self.pulls: list[tuple[str, str]] = []
        self.loads = 0
        self.says: list[dict[str, Any]] = []
        self.hangs = False
        self.given_up = threading.Event()
        self._server = _Server(str(self.socket), _Handler)
        self._server.docker = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def pull(self, name: str, digest: str) -> None:
        """Pull what it lacks; ValueError for other bytes than it asked for."""
        address, _, repository = name.partition("/")
        manifest = json.loads(_got(address, f"/v2/{repository}/manifests/{digest}", digest))
        configuration = manifest["config"]["digest"]
        _got(address, f"/v2/{repository}/blobs/{configuration}", configuration)
        for layer in manifest["layers"]:
            if layer["digest"] not in self.layers:
                _got(address, f"/v2/{repository}/blobs/{layer['digest']}", layer["digest"])
                self.layers.add(layer["digest"])
        self.images.add(configuration)


def _got(address: str, path: str, digest: str) -> bytes:
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        connection.request("GET", path)
        content = connection.getresponse().read()
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        raise ValueError(f"verification failed for digest {digest}")
    return content


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True
    docker: PlayedDocker


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "a caller"

    def log_message(self, *_: object) -> None:
        pass

    @property
    def docker(self) -> PlayedDocker:
        return cast("_Server", self.server).docker

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/version":
            self._answer(200, {"MinAPIVersion": "1.12"})
        elif path.endswith("/info"):
            self._answer(200, {"DockerRootDir": str(self.docker.root)})
        else:
            image = path.split("/")[-2]
            there = image in self.docker.images
            self._answer(200 if there else 404, {"Id": image} if there else {"message": "no such image"})

    def do_POST(self) -> None:
        asked = urlsplit(self.path)
        if asked.path.endswith("/images/load"):
            self.docker.loads += 1
            while size := int(self.rfile.readline(), 16):
                self.rfile.read(size + 2)
            self._answer(400, {"message": "played Dockers do not load"})
            return
        query = parse_qs(asked.query)
        name, digest = query["fromImage"][0], query["tag"][0]
        self.docker.pulls.append((name, digest))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        try:
            self.end_headers()
            self._pull(name, digest)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.docker.given_up.set()

    def _pull(self, name: str, digest: str) -> None:
        for line in self.docker.says:
            self._tell(line)
        while self.docker.hangs:
            time.sleep(0.02)
            for line in self.docker.says:
                self._tell(line)
            if not self.docker.says and self._has_hung_up():
                raise ConnectionError
        try:
            self.docker.pull(name, digest)
            self._tell({"status": "Pull complete"})
        except (ValueError, http.client.HTTPException) as error:
            self._tell({"errorDetail": {"message": str(error)}, "error": str(error)})

    def _has_hung_up(self) -> bool:
        self.connection.settimeout(0.01)
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return False

    def _tell(self, line: dict[str, Any]) -> None:
        content = json.dumps(line).encode() + b"\r\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
