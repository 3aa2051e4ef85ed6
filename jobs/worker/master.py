"""What a worker tells its application master: how far it is, what it did, why it cannot go on."""

from __future__ import annotations

import http.client
import json
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Progress:
    """Pictures done so far on a node, those of them with an error, bytes read, seconds since the first read."""

    node_name: str
    images: int
    errors: int
    bytes_read: int
    seconds: float
    finished: bool = False


class Master:
    """The application master at `address` (http://host:port), which wants to hear `token`."""

    def __init__(self, address: str, token: str, timeout: float = 10.0) -> None:
        parts = urlsplit(address)
        self._host, self._port = str(parts.hostname), parts.port
        self._token = token
        self._timeout = timeout

    def progress(self, progress: Progress) -> None:
        """Report; OSError when the application master is gone."""
        self._post("/progress", asdict(progress))

    def failed(self, node_name: str, reason: str) -> None:
        """Say in one sentence why this worker ends without a result."""
        self._post("/failed", {"node_name": node_name, "reason": reason})

    def _post(self, path: str, body: dict[str, Any]) -> None:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {self._token}"})
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != 204:
            raise OSError(f"the application master answered {status} to {path}")
