"""HDFS over WebHDFS, with methods named as in hadoop.client.filesystem, without a JVM."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from hadoop.errors import HadoopError
from hadoop.rest import delegation
from hadoop.rest.masters import Addresses
from hadoop.rest.namenode import NameNode
from hadoop.rest.pages import IN_ADDRESSES, Answer, Limits, NotKnown, Pages, said

LIMITS = Limits(connect=2.0, silence=10.0)
"""`size_bytes` is that of a file that is read whole into the service, or of a folder of 150,000 files."""
_BEYOND = "after EOF"
"""Of what a DataNode says to whoever asks beyond the end of a file."""
_NO_PROXY = "AuthorizationException"
"""Of Hadoop, where somebody asks for others who may not."""
CONNECTIONS = 8
"""So many are kept open between two calls."""


class Refused(HadoopError):
    """HDFS does not do what it was asked; `reason` is its own word for why."""

    def __init__(self, path: str, user: str, reason: str) -> None:
        super().__init__(f"HDFS refused {path} to {user}: {reason}")
        self.reason = reason


class NotProxy(Refused):
    """HDFS does not let whoever asks it ask for somebody else."""


class WebHdfs:
    """The HDFS whose NameNode is at an address, of several the active one, as `user` sees it.

    With Kerberos it is seen as by the owner of the ticket, or of the token of a container. Any number of threads may
    ask. Every method raises HadoopError. `called` is what refusals call the user.
    """

    def __init__(self, address: Addresses, user: str, limits: Limits | None = None, called: str = "") -> None:
        self._called = called or user
        token = delegation.find_token()
        self._shown = {"delegation": token} if token else {"user.name": user}
        self._limits = limits or LIMITS
        self._pages = Pages("NameNode", address, self._limits, kept=CONNECTIONS)

    def seen_by(self, user: str) -> WebHdfs:
        """The same HDFS, over the same connections, as a user sees it for whom the owner of the ticket asks (doAs).

        Its methods raise NotProxy where Hadoop does not know that owner as a proxy user.
        """
        made = copy.copy(self)
        made._called = user
        made._shown = {"doas": user}  # and no token, with which HDFS passes over this name
        return made

    def home(self) -> str:
        """The user's own folder."""
        return str(self._ask_json("/", "GETHOMEDIRECTORY")["Path"])

    def status(self, path: str) -> dict[str, Any] | None:
        """The FileStatus of a file or folder; None when there is no such path."""
        try:
            status: dict[str, Any] = self._ask_json(path, "GETFILESTATUS")["FileStatus"]
        except NotKnown:
            return None
        return status

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        return self.status(path) is not None

    def list_folder(self, path: str) -> list[dict[str, Any]]:
        """The FileStatus of all in a folder, or of the one file, whose pathSuffix is empty; NotKnown for neither."""
        statuses: list[dict[str, Any]] = self._ask_json(path, "LISTSTATUS")["FileStatuses"]["FileStatus"]
        return statuses

    def block_locations(self, path: str) -> list[dict[str, Any]]:
        """The BlockLocation of each block of a file."""
        locations: list[dict[str, Any]] = self._ask_json(path, "GETFILEBLOCKLOCATIONS")["BlockLocations"][
            "BlockLocation"
        ]
        return locations

    def racks(self) -> dict[str, str]:
        """Every live DataNode, by host name, with its rack; nothing where the NameNode's figures are closed."""
        try:
            return NameNode(self._pages.addresses, self._limits).racks()
        except HadoopError:
            return {}

    def read(self, path: str) -> bytes:
        """The content of a whole file; HadoopError when it is larger than an answer may be."""
        status = self.status(path)
        if status is None:
            raise NotKnown(f"{path} is not in HDFS")
        if status["length"] > self._limits.size_bytes:
            raise HadoopError(
                f"{path} has {status['length'] / 1e6:,.0f} MB, too many for the dashboard",
                remedy="`nodewise job explain` and `nodewise job report` show it",
            )
        return self._ask(path, "OPEN").content

    def read_from(self, path: str, offset: int, most: int) -> bytes:
        """At most `most` bytes of a file from byte `offset` on, also of one that is being written; NotKnown.

        The NameNode knows the length of whole blocks only, and refuses what lies beyond. So it is asked for a DataNode
        alone, which knows what was written and flushed.
        """
        where = urlsplit(str(self._ask_json(path, "OPEN", noredirect="true")["Location"]))
        query = {**dict(parse_qsl(where.query)), "offset": str(offset), "length": str(most)}
        node = Pages("DataNode", f"{where.scheme}://{where.netloc}", replace(self._limits, size_bytes=most))
        answer = node.ask(f"{quote(where.path, safe=IN_ADDRESSES)}?{urlencode(query)}")
        if answer.status == 200:
            return answer.content
        reason = _reason(answer)
        if _BEYOND in reason:
            return b""
        raise HadoopError(f"HDFS does not show {path} from byte {offset} on: {reason}")

    def _ask_json(self, path: str, operation: str, method: str = "GET", **more: str) -> dict[str, Any]:
        answer = self._pages.parse(self._ask(path, operation, method, **more))
        if not isinstance(answer, dict):
            raise self._pages.foreign_error()
        return answer

    def _ask(self, path: str, operation: str, method: str = "GET", **more: str) -> Answer:
        query = urlencode({"op": operation, **self._shown, **more})
        answer = self._pages.send(method, f"/webhdfs/v1{quote(path)}?{query}")
        return self._checked(answer, path)

    def _checked(self, answer: Answer, path: str) -> Answer:
        """The answer to something that was done; NotKnown, Refused."""
        if answer.status == 404:
            raise NotKnown(f"{path} is not in HDFS", remedy="check the path, `hdfs:///` begins at the root")
        if answer.status >= 300:
            kind = NotProxy if _remote(answer).get("exception") == _NO_PROXY else Refused
            raise kind(path, self._called, _reason(answer))
        return answer


def _reason(answer: Answer) -> str:
    """The first line of what the NameNode says, which is JSON if it is the NameNode's."""
    message = _remote(answer).get("message")
    return str(message).partition("\n")[0] if message else said(answer)


def _remote(answer: Answer) -> dict[str, Any]:
    """What Hadoop says of its exception; nothing where somebody else answers."""
    try:
        found = json.loads(answer.content)["RemoteException"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
