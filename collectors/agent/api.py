"""What the service may ask of an agent, over HTTP on the node's own address."""

from __future__ import annotations

import hashlib
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from collectors.agent import probe
from infosvc.wire.answers import PastRun
from infosvc.wire.errors import InfoError, InvalidInput, NotFound, TooLarge, Unauthorized
from infosvc.wire.http_server import RETRY_AFTER, Handler, Reply, Server
from infosvc.wire.records import check_name
from infosvc.wire.signature import Signature, Signatures

BODY_LIMIT = 1024  # no call needs one
PATIENCE_SECONDS = 10  # for a whole request, however slowly it comes
MAX_CONNECTIONS = 16
NOTICE = "/api/v1/notice"
_LOG_START, _LOG_END = "/api/v1/slots/", "/log"


@dataclass(frozen=True)
class Calls:
    """What the agent does when it is asked; each may raise an InfoError."""

    status: Callable[[], dict[str, Any]]
    refresh: Callable[[], None]
    slot_log: Callable[[str], list[PastRun]]


class AgentServer(Server):
    """What is open to anybody:

    GET /healthz                         who this is
    GET /api/v1/probe?bytes=N            N random bytes, within the limits of Probes; else 429 with Retry-After

    and what needs a signature of the service (infosvc.wire.signature), made with the hash of the agent's token:

    POST /api/v1/notice                  something is new for this node: ask the service what
    GET /api/v1/slots/{data_name}/log    the last runs, newest first: {"node_name", "data_name", "runs"}

    With `tls` every connection must begin with a handshake. Beyond MAX_CONNECTIONS a caller is hung up on.
    """

    def __init__(self, address: tuple[str, int], token: str, calls: Calls, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(address, _Handler, PATIENCE_SECONDS, MAX_CONNECTIONS, tls=tls)
        # The service keeps no token, only its hash, and so signs with that.
        self.signatures = Signatures(hashlib.sha256(token.encode()).hexdigest())
        self.calls = calls
        self.probes = probe.Probes()


class _Handler(Handler):
    server: AgentServer

    def get(self) -> None:
        path, _, query = self.path.partition("?")
        if path == probe.PATH:
            self._answer_probe(query)
        else:
            self._answer(self._get)

    def post(self) -> None:
        self._answer(self._post)

    def _get(self) -> dict[str, Any]:
        if self.path == "/healthz":
            return self.server.calls.status()
        if not (self.path.startswith(_LOG_START) and self.path.endswith(_LOG_END)):
            raise NotFound(f"{self.path} is nothing an agent answers", remedy="ask for /healthz")
        self._check_signature()
        data_name = check_name(unquote(self.path[len(_LOG_START) : -len(_LOG_END)]))
        runs = [run.to_json() for run in self.server.calls.slot_log(data_name)]
        return {"node_name": self.server.calls.status()["node_name"], "data_name": data_name, "runs": runs}

    def _post(self) -> dict[str, Any]:
        self._check_signature()
        if self.path != NOTICE:
            raise NotFound(f"{self.path} is nothing an agent takes", remedy=f"post to {NOTICE}")
        self.server.calls.refresh()
        return {"node_name": self.server.calls.status()["node_name"]}

    def _check_signature(self) -> None:
        try:
            signature = Signature.read(self.headers.get("Authorization", ""))
            self.server.signatures.check_time(signature)
            self.server.signatures.take(signature, self.command, self.path, self._body())
        except Unauthorized:
            self.close_connection = True  # whatever body it may still send, it is not read
            raise

    def _body(self) -> bytes:
        length = self.body_length() if "Content-Length" in self.headers else 0
        if length is None:
            raise InvalidInput("Content-Length must be a number of bytes", "Content-Length")
        if length > BODY_LIMIT:
            self.close_connection = True
            raise TooLarge(f"the body has {length} bytes, at most {BODY_LIMIT} are taken")
        return self.read_body(length)

    def _answer_probe(self, query: str) -> None:
        try:
            with self.server.probes.grant(query) as size:
                self._send_probe(size)
        except InfoError as error:
            self._refuse(error)

    def _send_probe(self, size: int) -> None:
        """Who takes it too slowly is hung up on, because the next one waits."""
        deadline = time.monotonic() + probe.patience_seconds(size)
        self.send_head(HTTPStatus.OK, size, "application/octet-stream")
        for chunk in probe.chunks(size):
            self.connection.settimeout(max(deadline - time.monotonic(), 0.001))
            self.wfile.write(chunk)

    def _answer(self, call: Callable[[], dict[str, Any]]) -> None:
        try:
            self.reply(Reply(HTTPStatus.OK, json.dumps(call()).encode()))
        except InfoError as error:
            self._refuse(error)

    def _refuse(self, error: InfoError) -> None:
        headers = {RETRY_AFTER: str(error.retry_after)} if isinstance(error, probe.Busy) else {}
        answer = {"error": {"code": error.code, "message": str(error), "field": error.field}}
        self.reply(Reply(error.status, json.dumps(answer).encode(), headers=headers))
