"""HDFS over WebHDFS: what the board reads of it, named as hadoop.client.filesystem names it, without a JVM."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from requests import RequestException, Response, Session
from requests.adapters import HTTPAdapter

from hadoop.errors import HadoopError
from hadoop.rest.logs import NotKnown, get
from infosvc.wire.errors import InvalidInput
from jobs.dashboard.site import Place

TIMEOUTS = (2.0, 10.0)
"""Seconds to connect, seconds without an answer."""
MOST_BYTES = 64 * 1024 * 1024
"""Of one answer, such as a file that is read whole into the service or a folder of 150,000 files."""
CHUNK_BYTES = 1024 * 1024
CONNECTIONS = 8
_HDFS = re.compile(r"^hdfs:(//[^/]*)?(?=/)")


def plain_path(said: str) -> str:
    """A path without scheme and host, as HDFS has it; InvalidInput when it is none.

    >>> plain_path("hdfs:///data/images/")
    '/data/images'
    """
    path = PurePosixPath(_HDFS.sub("", said.strip()))
    if not path.is_absolute() or ".." in path.parts or "\0" in said:
        raise InvalidInput(f"{said!r} is no path of HDFS: write it like /data/images or hdfs:///data/images", "path")
    return f"/{str(path).lstrip('/')}"


class WebHdfs:
    """The NameNode of a place; any number of threads may ask. Every method raises HadoopError."""

    def __init__(self, place: Place) -> None:
        self._namenode_http = place.namenode_http
        self._user = place.user
        self._session = Session()
        self._session.trust_env = False  # a proxy from the environment must not stand between this and its own cluster
        self._session.mount("http://", HTTPAdapter(pool_maxsize=CONNECTIONS))

    def home(self) -> str:
        """The user's own folder."""
        return str(self._json("/", "GETHOMEDIRECTORY")["Path"])

    def status(self, path: str) -> dict[str, Any] | None:
        """The FileStatus of a file or folder, None when there is none."""
        try:
            found: dict[str, Any] = self._json(path, "GETFILESTATUS")["FileStatus"]
        except NotKnown:
            return None
        return found

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        return self.status(path) is not None

    def listed(self, path: str) -> list[dict[str, Any]]:
        """The FileStatus of all in a folder, or of the one file, whose pathSuffix is empty; NotKnown for neither."""
        found: list[dict[str, Any]] = self._json(path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        return found

    def locations(self, path: str) -> list[dict[str, Any]]:
        """The BlockLocation of each block of a file."""
        found: list[dict[str, Any]] = self._json(path, "GETFILEBLOCKLOCATIONS")["BlockLocations"]["BlockLocation"]
        return found

    def racks(self) -> dict[str, str]:
        """Every live DataNode, by host name, with its rack; nothing where the NameNode's figures are closed."""
        page = f"{self._namenode_http}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
        try:
            nodes = json.loads(json.loads(get(page, "the live DataNodes"))["beans"][0]["LiveNodes"])
            return {name.rpartition(":")[0]: str(node["location"]) for name, node in nodes.items()}
        except (HadoopError, ValueError, LookupError, TypeError, AttributeError):
            return {}

    def read(self, path: str) -> bytes:
        """The content of a whole file, which may not be larger than MOST_BYTES."""
        status = self.status(path)
        if status is None:
            raise NotKnown(f"{path} is not in HDFS")
        if status["length"] > MOST_BYTES:
            raise HadoopError(
                f"{path} has {status['length'] / 1e6:,.0f} MB, too many for the dashboard: `nodewise job explain` and "
                "`nodewise job report` show it"
            )
        return self._ask(path, "OPEN")

    def _json(self, path: str, operation: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._ask(path, operation))
        except ValueError as error:
            raise HadoopError(f"{self._namenode_http} answers, but is no NameNode: check hdfs-site.xml") from error
        return found

    def _ask(self, path: str, operation: str) -> bytes:
        url = f"{self._namenode_http}/webhdfs/v1{quote(path)}"
        said = {"op": operation, "user.name": self._user}
        try:
            with self._session.get(url, params=said, timeout=TIMEOUTS, stream=True) as answer:
                content = _content(answer, path)
        except RequestException as error:
            raise HadoopError(
                f"HDFS does not answer at {self._namenode_http} ({type(error).__name__}): "
                "`nodewise cluster status` tells whether it is up"
            ) from error
        if answer.status_code == 404:
            raise NotKnown(f"{path} is not in HDFS: check the path, `hdfs:///` begins at the root")
        if answer.status_code >= 400:
            raise HadoopError(f"HDFS refused {path} to {self._user}: {_reason(content, answer.status_code)}")
        return content


def _content(answer: Response, path: str) -> bytes:
    """The body of an answer; HadoopError for one that would fill the service's memory."""
    content = bytearray()
    for chunk in answer.iter_content(CHUNK_BYTES):
        content += chunk
        if len(content) > MOST_BYTES:
            raise HadoopError(f"what HDFS tells of {path} is more than {MOST_BYTES / 1e6:,.0f} MB: name what is in it")
    return bytes(content)


def _reason(content: bytes, status: int) -> str:
    """The first line of what the NameNode says, which is JSON if it is the NameNode's."""
    try:
        return str(json.loads(content)["RemoteException"]["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        return f"status {status}"
