"""Block locations over WebHDFS with the standard library alone, for nodes that have only python3."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from hadoop.errors import HadoopError


@dataclass(frozen=True)
class StoredBlock:
    """One block of a file: `length` bytes, on the DataNodes `hosts`."""

    path: str
    offset: int
    length: int
    hosts: tuple[str, ...]


class WebHdfs:
    """One NameNode, asked over one connection; every call raises HadoopError with the reason and the remedy."""

    def __init__(self, namenode_http: str, user: str | None = None, timeout: float = 10.0) -> None:
        parts = urlsplit(namenode_http)
        if parts.scheme != "http" or not parts.hostname:
            raise HadoopError(f"{namenode_http!r} is not the web address of a NameNode: use http://HOST:9870")
        self._address = namenode_http
        self._user = user
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 9870, timeout=timeout)

    def __enter__(self) -> WebHdfs:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def files(self, path: str) -> Iterator[tuple[str, int]]:
        """Path and size in bytes of a file, or of every file below a directory."""
        folders = [path]
        while folders:
            folder = folders.pop()
            for status in self._get(folder, "LISTSTATUS")["FileStatuses"]["FileStatus"]:
                name = f"{folder.rstrip('/')}/{status['pathSuffix']}" if status["pathSuffix"] else folder
                if status["type"] == "DIRECTORY":
                    folders.append(name)
                else:
                    yield name, int(status["length"])

    def blocks(self, path: str) -> Iterator[StoredBlock]:
        """Every block of a file, or of all files below a directory; one call to the NameNode a file."""
        for name, size in self.files(path):
            found = self._get(name, "GETFILEBLOCKLOCATIONS", length=size)
            for block in found["BlockLocations"]["BlockLocation"]:
                yield StoredBlock(name, int(block["offset"]), int(block["length"]), tuple(block["hosts"]))

    def _get(self, path: str, operation: str, **parameters: str | int) -> dict[str, Any]:
        if not path.startswith("/"):
            raise HadoopError(f"{path!r} is not a path in HDFS: it starts with /, for example /data/images")
        query = {"op": operation} | parameters | ({"user.name": self._user} if self._user else {})
        status, body = self._exchange(f"/webhdfs/v1{quote(path)}?{urlencode(query)}")
        try:
            answer: dict[str, Any] = json.loads(body)
        except ValueError:
            raise HadoopError(
                f"{self._address} answered {status} and no JSON to {operation}: is it the web address of a NameNode?"
            ) from None
        if status != http.client.OK:
            reason = str(answer.get("RemoteException", {}).get("message", status)).partition("\n")[0]
            raise HadoopError(f"the NameNode at {self._address} refused {operation} of {path}: {reason}")
        return answer

    def _exchange(self, target: str) -> tuple[int, bytes]:
        try:
            self._connection.request("GET", target)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise HadoopError(
                f"the NameNode at {self._address} does not answer ({error}): start HDFS, or give its web address"
            ) from error
