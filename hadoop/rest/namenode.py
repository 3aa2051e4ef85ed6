"""What a NameNode tells of itself and of its DataNodes on the page of its figures (JMX)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hadoop.errors import HadoopError
from hadoop.rest.masters import Addresses
from hadoop.rest.pages import STANDARD, Answer, Limits, Pages

INFO = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
STATUS = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"


@dataclass(frozen=True)
class NameNodeInfo:
    """The state of a NameNode; `safemode` is its own sentence, empty when it is not in safe mode."""

    address: str
    version: str
    safemode: str
    live: int
    dead: int
    missing_blocks: int


class NameNode:
    """The NameNode at an address (scheme://host:port), of several the active one. Every method raises HadoopError."""

    def __init__(self, address: Addresses, limits: Limits = STANDARD) -> None:
        self._pages = Pages("NameNode", address, limits)

    def read_info(self) -> tuple[NameNodeInfo, Answer]:
        """The state of the NameNode, and the answer that it was read from."""
        pages = self._active()
        answer = pages.read(INFO, "its state")
        return parse_info(pages.address, pages.parse(answer)), answer

    def live_hosts(self) -> set[str] | None:
        """The host names of the live DataNodes; None while the NameNode starts or is in safe mode."""
        return parse_live_hosts(self._ask())

    def racks(self) -> dict[str, str]:
        """Every live DataNode, by host name, with its rack."""
        return parse_racks(self._ask())

    def _ask(self) -> Any:
        return self._active().read_json(INFO, "the live DataNodes")

    def _active(self) -> Pages:
        """Those of the active one: another one shows the same page, and is late."""
        return self._pages.of_active(STATUS)


def parse_info(address: str, page: Any) -> NameNodeInfo:
    """Read NameNodeInfo, whose LiveNodes and DeadNodes are JSON in a string; HadoopError when it is something else."""
    try:
        bean = page["beans"][0]
        live, dead = (len(json.loads(bean[key])) for key in ("LiveNodes", "DeadNodes"))
        missing = int(bean["NumberOfMissingBlocks"])
        return NameNodeInfo(address, str(bean["SoftwareVersion"]), str(bean["Safemode"]), live, dead, missing)
    except (KeyError, IndexError, TypeError, ValueError):
        raise HadoopError(
            f"{address} answers, but not as a NameNode that has started",
            remedy="wait, or read its log and correct dfs.namenode.http-address in hdfs-site.xml",
        ) from None


def parse_live_hosts(page: Any) -> set[str] | None:
    """Read host names out of NameNodeInfo, whose LiveNodes is JSON in a string: `{"127.0.1.11:19001": {...}}`."""
    try:
        if not page["beans"] or page["beans"][0].get("Safemode"):
            return None
        return {name.rpartition(":")[0] for name in json.loads(page["beans"][0]["LiveNodes"])}
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def parse_racks(page: Any) -> dict[str, str]:
    """Read the rack of each live DataNode out of NameNodeInfo; HadoopError when it is something else.

    >>> parse_racks({"beans": [{"LiveNodes": '{"127.0.1.11:19001": {"location": "/default-rack"}}'}]})
    {'127.0.1.11': '/default-rack'}
    """
    try:
        nodes = json.loads(page["beans"][0]["LiveNodes"])
        return {name.rpartition(":")[0]: str(node["location"]) for name, node in nodes.items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise HadoopError("the NameNode does not list its DataNodes", remedy="wait until it has started") from None
