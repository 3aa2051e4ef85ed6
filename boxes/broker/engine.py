"""Speaks to Docker's Engine API over its socket: in version 1.41, or the least that Docker knows if that is later."""

from __future__ import annotations

import base64
import http.client
import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode

LEAST_VERSION = (1, 41)
SECONDS = 60.0
LOAD_SECONDS = 1800.0
BAD_REQUEST, NOT_FOUND = 400, 404


class EngineError(Exception):
    """Docker has refused a call; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Engine:
    """One Docker. Every call has a connection of its own; OSError when Docker does not answer."""

    def __init__(self, path: str, seconds: float = SECONDS) -> None:
        self._path = path
        self._seconds = seconds
        self._prefix = ""

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The answer's JSON, None where there is none."""
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self._call(method, self._target(path, query), content, headers, self._seconds)

    def load(self, archive: Iterable[bytes]) -> None:
        """Take an image from its archive; EngineError when Docker cannot use it."""
        headers = {"Content-Type": "application/x-tar"}
        told = self._call("POST", self._target("/images/load", {"quiet": "1"}), archive, headers, LOAD_SECONDS)
        if isinstance(told, dict) and "error" in told:
            raise EngineError(500, str(told["error"]))

    def pull(
        self, name: str, digest: str, seconds: float, on_asked: Callable[[socket.socket], None]
    ) -> Iterator[Mapping[str, Any]]:
        """Have Docker pull an image by the digest of its manifest, and tell how far it is until it has all of it.

        `on_asked` gets the connection: Docker gives the pull up when that is shut down. OSError when Docker tells
        nothing for so many seconds, EngineError when it cannot pull.
        """
        with closing(_Connection(self._path, seconds)) as connection:
            connection.request("POST", self._target("/images/create", {"fromImage": name, "tag": digest}))
            on_asked(connection.sock)
            try:
                answer = connection.getresponse()
                if answer.status >= BAD_REQUEST:
                    raise EngineError(answer.status, _message(answer.read()))
                while line := answer.readline():
                    told = _json(line)
                    if isinstance(told, dict):
                        if "error" in told:
                            raise EngineError(500, str(told["error"]))
                        yield told
            except http.client.HTTPException as error:
                raise ConnectionError(f"Docker's answer has no end: {error}") from error

    def stat(self, container: str, path: str) -> Mapping[str, Any] | None:
        """What a path of a container's image is, by name; None when it is not there."""
        with closing(_Connection(self._path, self._seconds)) as connection:
            connection.request("HEAD", self._target(f"/containers/{quote(container)}/archive", {"path": path}))
            answer = connection.getresponse()
        if answer.status == NOT_FOUND:
            return None
        if answer.status >= BAD_REQUEST:
            raise EngineError(answer.status, f"{path} of the image cannot be looked at")
        found: Mapping[str, Any] = json.loads(base64.b64decode(answer.getheader("X-Docker-Container-Path-Stat", "")))
        return found

    def attach(self, container: str) -> socket.socket:
        """A connection that brings what the container prints, in frames, from now on."""
        query = {"stream": "1", "stdout": "1", "stderr": "1"}
        return self._upgrade(self._target(f"/containers/{quote(container)}/attach", query), b"")

    def start_terminal(self, exec_id: str) -> socket.socket:
        """Start a program that was laid out to have a terminal; the connection is the other end of that."""
        return self._upgrade(self._target(f"/exec/{quote(exec_id)}/start", {}), b'{"Detach": false, "Tty": true}')

    def _upgrade(self, target: str, body: bytes) -> socket.socket:
        """What the connection of a call is once Docker has answered it."""
        connection = _connect(self._path, self._seconds)
        head = f"POST {target} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        connection.sendall(head.encode() + b"\r\n" + body)
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            if not (byte := connection.recv(1)):  # one by one: what follows is the container's
                raise ConnectionError("Docker has hung up")
            said += byte
        if not said.startswith((b"HTTP/1.1 101 ", b"HTTP/1.1 200 ")):
            raise EngineError(int(said.split()[1]), "Docker does not let its broker follow the container")
        connection.settimeout(None)
        return connection

    def _target(self, path: str, query: Mapping[str, str]) -> str:
        """The path of a call in the version that both know; Docker is asked for its own once."""
        if not self._prefix:
            told = self._call("GET", "/version", None, {}, self._seconds)
            least = tuple(int(part) for part in str(told["MinAPIVersion"]).split("."))
            self._prefix = "/v{}.{}".format(*max(LEAST_VERSION, least))
        return f"{self._prefix}{path}?{urlencode(query)}" if query else self._prefix + path

    def _call(self, method: str, target: str, body: Any, headers: Mapping[str, str], seconds: float) -> Any:
        with closing(_Connection(self._path, seconds)) as connection:
            try:
                connection.request(method, target, body, headers)
                answer = connection.getresponse()
                content = answer.read()
            except http.client.HTTPException as error:
                raise ConnectionError(f"Docker's answer has no end: {error}") from error
        if answer.status >= BAD_REQUEST:
            raise EngineError(answer.status, _message(content))
        return _json(content)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("docker")
        self._path = path
        self._seconds = seconds

    def connect(self) -> None:
        self.sock = _connect(self._path, self._seconds)


def _connect(path: str, seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _json(content: bytes) -> Any:
    """The last line's object: answers that go on for a while are an object a line."""
    lines = content.strip().splitlines()
    try:
        return json.loads(content) if content.strip() else None
    except ValueError:
        try:
            return json.loads(lines[-1])
        except ValueError:
            return None


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace").strip()
