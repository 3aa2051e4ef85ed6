"""Hears the containers and shows how far the job is, over HTTP on the application master's node."""

from __future__ import annotations

import hmac
import json
import threading
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from hadoop.errors import HadoopError
from infosvc.wire.http_server import HTML, JSON, RETRY_AFTER, Handler, Reply, Server
from jobs.application.calls import LARGEST_CALL, Failed, Gone, NotYet, Refused, Request, decode_body
from jobs.application.status import JobStatus
from jobs.errors import JobError

BODY_SECONDS = 30.0
"""How long a request may take to arrive, and a connection to be silent."""
RETRY_SECONDS = 1
MOST_STRANGERS = 64
"""Connections that have not shown the token, such as those of YARN's proxy; all other ones are containers'."""
POLL_SECONDS = 0.05
"""How long `close` may take to be noticed."""
MOST_IGNORED = 1 << 20
"""Bytes of a body that is refused unread."""
FAILED = "/failed"
"""The call that every kind of job has: a container tells why it ends."""
TOO_EARLY = "the application master has nothing to tell now: try again"


class _Shown(NamedTuple):
    status: Callable[[], JobStatus]
    page: Callable[[], str]


class Hearer(Protocol):
    """Who answers the containers of a job: `calls` are the paths that it knows, with the most bytes of a body."""

    @property
    def calls(self) -> Mapping[str, int]: ...

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None: ...

    def hang_up(self, connection: object) -> None: ...


class Listener:
    """Listens from the beginning; before `tell` there is nothing to show, and before `serve` nothing to do.

    `reasons` are what workers said before they ended, by container.
    """

    def __init__(self, host: str, token: str, body_seconds: float = BODY_SECONDS) -> None:
        self.reasons: dict[str, str] = {}
        self._everywhere: str | None = None
        self._fault: Exception | None = None
        self._token = f"Bearer {token}".encode()
        self._shown: _Shown | None = None
        self._hearer: Hearer | None = None
        self._server = _Server(host, self, body_seconds)
        self.port = self._server.server_port
        self.address = f"http://{host}:{self.port}"
        serve = partial(self._server.serve_forever, poll_interval=POLL_SECONDS)
        threading.Thread(target=serve, name="listener", daemon=True).start()

    def tell(self, status: Callable[[], JobStatus], page: Callable[[], str]) -> None:
        """From now on everyone gets the status and the page."""
        self._shown = _Shown(status, page)

    def serve(self, hearer: Hearer, status: Callable[[], JobStatus], page: Callable[[], str]) -> None:
        """From now on containers are answered, too."""
        self.tell(status, page)
        self._hearer = hearer

    def check(self) -> None:
        """Raise what ends the job: JobError when a worker says that none can work, or a fault in answering."""
        if self._everywhere:
            raise JobError(self._everywhere)
        if self._fault:
            raise self._fault

    def close(self) -> None:
        """Stop listening; connections that are open are answered no more."""
        self._shown = self._hearer = None
        self._server.shutdown()
        self._server.server_close()

    def allows(self, header: str) -> bool:
        """Whether an Authorization header has the token."""
        return hmac.compare_digest(header.encode("utf-8", "replace"), self._token)

    def show(self, path: str) -> Reply:
        """Answer a GET."""
        shown = {"/": HTML, "/status": JSON}
        if path not in shown:
            return _error(404, f"there is no {path} here: / and /status tell how far the job is")
        if (now := self._shown) is None:
            return _error(503, TOO_EARLY)
        try:
            return Reply(200, _content(now, path), shown[path])
        except Exception as error:  # what is shown must not end what is done
            traceback.print_exc()
            return _error(500, f"{path} cannot be shown: {error}")

    def largest_body(self, path: str) -> int:
        """Bytes that a call may bring."""
        return self._hearer.calls.get(path, LARGEST_CALL) if self._hearer else LARGEST_CALL

    def hear(self, path: str, request: Request) -> Reply:
        """Answer a POST that had the token: the one place where what went wrong becomes a status."""
        if (hearer := self._hearer) is None:
            return _error(503, TOO_EARLY)
        try:
            if path == FAILED:
                return self._note(decode_body(request.body, Failed))
            if path in hearer.calls:
                return _reply(hearer.hear(path, request))
            return _error(404, f"there is no call {path}: there are {', '.join([*hearer.calls, FAILED])}")
        except Gone as error:
            return _error(410, str(error))
        except Refused as error:
            return _error(400, str(error))
        except (HadoopError, NotYet) as error:
            return _error(503, str(error))
        except Exception as error:
            self._fault = self._fault or error
            if not isinstance(error, JobError):
                traceback.print_exc()
            return _error(500, str(error))

    def hang_up(self, connection: object) -> None:
        """A connection has ended."""
        if (hearer := self._hearer) is not None:
            hearer.hang_up(connection)

    def _note(self, call: Failed) -> Reply:
        self.reasons[call.container_id] = call.reason
        if call.everywhere:
            self._everywhere = call.reason
        return Reply(204)


def _content(shown: _Shown, path: str) -> bytes:
    return shown.page().encode() if path == "/" else json.dumps(shown.status().to_json()).encode()


def _reply(told: Mapping[str, Any] | None) -> Reply:
    return Reply(204) if told is None else Reply(200, json.dumps(told).encode())


def _error(status: int, why: str) -> Reply:
    headers = {RETRY_AFTER: str(RETRY_SECONDS)} if status == 503 else {}
    return Reply(status, json.dumps({"error": why}).encode(), headers=headers)


class _Handler(Handler):
    server: _Server

    def get(self) -> None:
        self.reply(self.server.listener.show(urlsplit(self.path).path))

    def post(self) -> None:
        target = urlsplit(self.path)
        length = self.body_length()
        most = self.server.listener.largest_body(target.path)
        if not self.server.listener.allows(self.headers.get("Authorization", "")):
            self._refuse(_error(401, "the token is missing or wrong"), length)
            return
        self.server.trust(self.connection)
        if length is None:
            self._refuse(_error(411, "the length of the body has to be known: send Content-Length"), length)
        elif length > most:
            self._refuse(_error(413, f"the body has {length} bytes, and {target.path} takes {most}"), length)
        else:
            request = Request(target.query, self.read_body(length, in_own_time=True), self.connection)
            self.reply(self.server.listener.hear(target.path, request))

    def _refuse(self, reply: Reply, length: int | None) -> None:
        """Without an own look at the body; some of it is taken, so that the answer is not lost with it."""
        self.close_connection = True
        self.reply(reply)
        self.read_body(min(length or 0, MOST_IGNORED), in_own_time=True)


class _Server(Server):
    def __init__(self, host: str, listener: Listener, patience: float) -> None:
        self.listener = listener
        super().__init__((host, 0), _Handler, patience, most_strangers=MOST_STRANGERS)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.listener.hang_up(request)
