"""Daemons whose pages answer as Hadoop's do: who stands by, who wants a ticket, and an HDFS to be written to."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import secrets
import ssl
from collections.abc import Callable
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from threading import Thread
from urllib.parse import parse_qsl, unquote, urlsplit

STANDBY = {
    "RemoteException": {
        "exception": "StandbyException",
        "javaClassName": "org.apache.hadoop.ipc.StandbyException",
        "message": "Operation category READ is not supported in state standby. Visit https://s.apache.org/sbnn-error",
    }
}
STANDBY_TO_A_TOKEN = {
    "RemoteException": {
        "exception": "SecurityException",
        "javaClassName": "java.lang.SecurityException",
        "message": "Failed to obtain user group information: "
        "org.apache.hadoop.security.token.SecretManager$InvalidToken: StandbyException",
    }
}


@dataclass
class Asked:
    """One request: `user` is who has shown a ticket, "" for nobody, and `cookie` what was given to him before."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    user: str = ""
    cookie: str = ""


@dataclass
class Said:
    """An answer."""

    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)


def say(body: object, status: int = 200) -> Said:
    return Said(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


class Daemon:
    """A real HTTP server that `answer` speaks for; with `kerberos` it wants a ticket first, as Hadoop's filter does."""

    def __init__(
        self, answer: Callable[[Asked], Said], kerberos: bool = False, context: ssl.SSLContext | None = None
    ) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.handshakes = 0
        self.kerberos = kerberos
        self.cookies: dict[str, str] = {}
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
        self.address = f"http{'s' if context else ''}://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def let_in(self, cookie: str, shown: str) -> tuple[str, dict[str, str]] | None:
        """The user and further headers, None for whoever has to show a ticket first."""
        if not self.kerberos:
            return "", {}
        if user := self.cookies.get(cookie.partition("hadoop.auth=")[2].strip('"')):
            return user, {}
        if not shown.startswith("Negotiate "):
            return None
        self.handshakes += 1
        user = accept(base64.b64decode(shown.removeprefix("Negotiate ")))
        given = secrets.token_hex(8)
        self.cookies[given] = user
        return user, {"Set-Cookie": f'hadoop.auth="{given}"; Path=/; HttpOnly'}


class _Server(ThreadingHTTPServer):
    request_queue_size = 64  # as many may connect at once


def _handler(daemon: Daemon) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer goes in one piece, as those of Hadoop do

        def do_GET(self) -> None:
            body = _body(self)
            cookie = self.headers["Cookie"] or ""
            found = daemon.let_in(cookie, self.headers["Authorization"] or "")
            if found is None:
                refused = {"WWW-Authenticate": "Negotiate", "Set-Cookie": "hadoop.auth=; Path=/; Max-Age=0"}
                self._send(Said(401, b"<html>Authentication required</html>", refused), "Authentication required")
                return
            user, headers = found
            parts = urlsplit(self.path)
            asked = Asked(self.command, unquote(parts.path), dict(parse_qsl(parts.query)), body, user, cookie)
            daemon.asked.append(asked)
            said = daemon.answer(asked)
            self._send(Said(said.status, said.content, said.headers | headers))

        def do_PUT(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def _send(self, said: Said, reason: str | None = None) -> None:
            self.send_response(said.status, reason)
            for name, text in said.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(said.content)))
            self.end_headers()
            self.wfile.write(said.content)

        def log_message(self, format: str, *args: object) -> None:
            """Tests need no log."""

    return Handler


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers["Transfer-Encoding"] != "chunked":
        return handler.rfile.read(int(handler.headers["Content-Length"] or 0))
    pieces = []
    while size := int(handler.rfile.readline(), 16):
        pieces.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(pieces)


@dataclass
class Hdfs:
    """Files in memory, told and written as over WebHDFS; its DataNode is at `datanode`, which says it too."""

    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {"/"})
    is_active: bool = True
    datanode: str = ""
    ids: dict[str, int] = field(default_factory=dict)

    def __call__(self, asked: Asked) -> Said:
        if asked.path == "/jmx":
            return say({"beans": [{"State": "active" if self.is_active else "standby"}]})
        path = asked.path.removeprefix("/webhdfs/v1").rstrip("/") or "/"
        if "written" in asked.query:  # which a DataNode does
            return self._write(path, asked)
        if not self.is_active:
            return say(STANDBY_TO_A_TOKEN if "delegation" in asked.query else STANDBY, 403)
        operations: dict[str, Callable[[str, Asked], Said]] = {
            "CREATE": self._create,
            "GETFILESTATUS": self._status,
            "GETHOMEDIRECTORY": lambda _, who: say({"Path": f"/user/{who.user.partition('@')[0] or 'nobody'}"}),
            "LISTSTATUS": self._list,
            "MKDIRS": self._make,
            "RENAME": self._rename,
            "DELETE": self._delete,
            "OPEN": lambda name, _: Said(200, self.files[name]),
        }
        return operations[asked.query["op"]](path, asked)

    def _create(self, path: str, asked: Asked) -> Said:
        assert asked.query["noredirect"] == "true"
        query = f"written=1&overwrite={asked.query['overwrite']}&blocksize={asked.query.get('blocksize', '')}"
        return say({"Location": f"{self.datanode}/webhdfs/v1{path.replace(' ', '%20')}?{query}"})

    def _write(self, path: str, asked: Asked) -> Said:
        if path in self.files and asked.query["overwrite"] == "false":
            return say({"RemoteException": {"message": f"{path} for client 127.0.0.1 already exists"}}, 403)
        self.files[path] = asked.body
        self.folders |= set(map(str, PurePosixPath(path).parents))
        return Said(201, b"")

    def _status(self, path: str, _: Asked) -> Said:
        if path not in self.files and path not in self.folders:
            return say({"RemoteException": {"message": f"File does not exist: {path}"}}, 404)
        return say({"FileStatus": self._told(path, "")})

    def _told(self, path: str, name: str) -> dict[str, object]:
        kind = "FILE" if path in self.files else "DIRECTORY"
        length = len(self.files.get(path, b""))
        file_id = self.ids.setdefault(path, len(self.ids))
        return {"pathSuffix": name, "type": kind, "length": length, "modificationTime": 0, "fileId": file_id}

    def _list(self, path: str, _: Asked) -> Said:
        there = sorted(
            one for one in {*self.files, *self.folders} if one != "/" and str(PurePosixPath(one).parent) == path
        )
        return say({"FileStatuses": {"FileStatus": [self._told(one, PurePosixPath(one).name) for one in there]}})

    def _make(self, path: str, _: Asked) -> Said:
        self.folders |= {path, *map(str, PurePosixPath(path).parents)}
        return say({"boolean": True})

    def _rename(self, path: str, asked: Asked) -> Said:
        target = asked.query["destination"]

        def moved(one: str) -> str:
            return target + one.removeprefix(path) if one == path or one.startswith(f"{path}/") else one

        if path not in self.folders and path not in self.files:
            return say({"boolean": False})
        self.files = {moved(one): content for one, content in self.files.items()}
        self.folders = set(map(moved, self.folders))
        self.ids = {moved(one): number for one, number in self.ids.items()}
        return say({"boolean": True})

    def _delete(self, path: str, _: Asked) -> Said:
        before = len(self.files) + len(self.folders)
        self.files = {one: text for one, text in self.files.items() if one != path and not one.startswith(f"{path}/")}
        self.folders = {one for one in self.folders if one != path and not one.startswith(f"{path}/")}
        return say({"boolean": len(self.files) + len(self.folders) < before})


class _Buffer(ctypes.Structure):
    _fields_ = [("length", c_size_t), ("value", c_void_p)]


def accept(token: bytes) -> str:
    """Who shows a token, as Kerberos knows him, by the keytab of KRB5_KTNAME; AssertionError for one that is wrong."""
    library = ctypes.CDLL("libgssapi_krb5.so.2")
    minor, context, source = c_uint32(), c_void_p(), c_void_p()
    held = ctypes.create_string_buffer(token, len(token))
    shown, said, name = _Buffer(len(token), ctypes.cast(held, c_void_p)), _Buffer(), _Buffer()
    major = library.gss_accept_sec_context(
        byref(minor), byref(context), None, byref(shown), None, byref(source), None, byref(said), None, None, None
    )
    assert not major & 0xFFFF0000, (hex(major), minor.value, os.environ["KRB5_KTNAME"])
    library.gss_display_name(byref(minor), source, byref(name), None)
    return ctypes.string_at(ctypes.cast(name.value or 0, c_char_p), name.length).decode()
