"""How a worker speaks with its application master, and finds it again when another one takes its place."""

from __future__ import annotations

import http.client
import json
import sys
from typing import Any
from urllib.parse import urlencode, urlsplit

from jobs.errors import JobError
from jobs.worker.lookout import Found, Lookout

TIMEOUT_SECONDS = 4.0
"""Below the shortest lease, so that a call that hangs does not cost what is held."""
PAUSE_SECONDS = 0.3
"""Between two tries."""


class Away(Exception):
    """The application master does not answer as one does: the call may be made again, to whoever is there then."""


class NotWanted(Exception):
    """This worker has nothing to do any more; the text says why."""


class Master:
    """Whoever is the application master now. `lookout` tells where it is; not for use by several threads."""

    def __init__(
        self, lookout: Lookout, token: str, node_name: str, container_id: str, orphan_seconds: float, now: float
    ) -> None:
        self._lookout = lookout
        self._headers = {"Authorization": f"Bearer {token}"}
        self._names = {"node_name": node_name, "container_id": container_id}
        self._orphan_seconds = orphan_seconds
        self._heard: float | None = None
        self._address: str | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._away = True
        self._again = now

    @property
    def away(self) -> bool:
        """Whether the last call was not answered, or there was none."""
        return self._away

    def is_reached(self, now: float) -> bool:
        """Whether calls make sense now; else it is looked for.

        NotWanted when the job has ended, JobError when nothing was heard of any application master for too long,
        counted from the first call of this.
        """
        if not self._away:
            return True
        if self._heard is None:
            self._heard = now
        self._take(self._lookout.poll(now))
        if now - self._heard > self._orphan_seconds:
            raise JobError(f"the application master has not answered for {self._orphan_seconds:.0f} s: the worker ends")
        return self._address is not None and now >= self._again

    def call(self, path: str, body: dict[str, Any], now: float) -> dict[str, Any]:
        """Its answer to one call; Away, NotWanted, or JobError when it finds the call wrong."""
        return self._answer(path, json.dumps(self._names | body).encode(), "application/json", now)

    def commit(self, lease: str, seconds: float, bytes_read: int, rows: bytes, now: float) -> dict[str, Any]:
        """As `call`, for the rows of a lease."""
        query = self._names | {"lease": lease, "seconds": f"{seconds:.6f}", "bytes_read": bytes_read}
        return self._answer(f"/commit?{urlencode(query)}", rows, "application/vnd.apache.arrow.stream", now)

    def close(self) -> None:
        """Let go of the connection; a forked process does so at once, and its parent's stays."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _take(self, found: Found | None) -> None:
        if found is None:
            return
        if found.gone:
            raise NotWanted("the job has ended: its folder is not there any more")
        if found.address and found.address != self._address:
            print(f"application master at {found.address}", flush=True)
            self.close()
            self._address = found.address

    def _answer(self, path: str, body: bytes, kind: str, now: float) -> dict[str, Any]:
        try:
            status, content = self._post(path, body, self._headers | {"Content-Type": kind})
        except (OSError, http.client.HTTPException) as error:
            raise self._go_away(f"{type(error).__name__}: {error}", now) from error
        if status in (200, 204, 400, 410, 413, 503):
            self._heard = now
        if status == 410:
            raise NotWanted("the application master does not want this container any more")
        if status in (400, 413):
            raise JobError(f"the application master refused {path.partition('?')[0]}: {content[:500].decode()}")
        if status not in (200, 204):
            raise self._go_away(f"it answered {status} to {path.partition('?')[0]}", now)
        self._away = False
        answer: dict[str, Any] = json.loads(content) if content else {}
        return answer

    def _go_away(self, why: str, now: float) -> Away:
        if not self._away:
            print(f"the application master at {self._address} is away: {why}", file=sys.stderr, flush=True)
        self.close()
        self._away = True
        self._again = now + PAUSE_SECONDS
        return Away(why)

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Once more on a new connection if the old one was closed meanwhile."""
        if self._connection:
            try:
                return self._exchange(self._connection, path, body, headers)
            except (ConnectionError, http.client.RemoteDisconnected):
                self.close()
        parts = urlsplit(str(self._address))
        self._connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=TIMEOUT_SECONDS)
        return self._exchange(self._connection, path, body, headers)

    def _exchange(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.will_close:
            self.close()
        return answer.status, content
