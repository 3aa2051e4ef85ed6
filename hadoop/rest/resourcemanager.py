"""What a ResourceManager tells over REST of its applications and its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from hadoop.errors import HadoopError
from hadoop.rest.amounts import MEMORY, VCORES, Amounts, parse_amounts
from hadoop.rest.masters import Addresses
from hadoop.rest.pages import STANDARD, Answer, Limits, Pages
from hadoop.rest.scheduler import Scheduler, parse_scheduler

_CLUSTER = "/ws/v1/cluster"
NODES = f"{_CLUSTER}/nodes"
INFO = f"{_CLUSTER}/info"
_ORDERS = "/jmx?qry=Hadoop:service=ResourceManager,name=NodewiseOrder-*"
_ENDED = ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True)
class ResourceManagerInfo:
    """The version of a ResourceManager, and how many of its nodes are in which state."""

    address: str
    version: str
    states: dict[str, int]


@dataclass(frozen=True)
class NodeRoom:
    """What a node that takes work has left, and in all; its label is empty for none.

    `free` and `total` are of other types of resource than memory and cores: of all that the cluster counts.
    """

    node_name: str
    free_mb: int
    free_vcores: int
    total_mb: int = 0
    total_vcores: int = 0
    label: str = ""
    free: Mapping[str, int] = field(default_factory=dict)
    total: Mapping[str, int] = field(default_factory=dict)

    @property
    def all_free(self) -> Amounts:
        """What is left of all types."""
        return {MEMORY: self.free_mb, VCORES: self.free_vcores, **self.free}

    @property
    def all_total(self) -> Amounts:
        """What it has of all types."""
        return {MEMORY: self.total_mb, VCORES: self.total_vcores, **self.total}


@dataclass(frozen=True)
class NodeOrder:
    """An order of nodes, as nodewise's plug-in has it: the first nodes with their scores.

    `age_seconds` is that of the values, None where there are none and stock YARN decides.
    """

    name: str
    age_seconds: float | None
    first: tuple[tuple[str, float], ...]


class ResourceManager:
    """The ResourceManager at an address (scheme://host:port), of several the active one.

    Every method raises HadoopError. `user` is who asks: the ResourceManager shows less of an application to nobody.
    """

    def __init__(self, address: Addresses, user: str = "", limits: Limits = STANDARD) -> None:
        self._user = user
        self._pages = Pages("ResourceManager", address, limits)

    def read_info(self) -> tuple[ResourceManagerInfo, Answer]:
        """The version and the nodes' states, and the answer in which the version stood."""
        pages = self._active()
        about = pages.read(INFO, "its version")
        nodes = pages.read_json(NODES, "the list of nodes")
        return parse_info(pages.address, pages.parse(about), nodes), about

    def running_nodes(self) -> set[str]:
        """The host names of the NodeManagers that take work."""
        return parse_running_nodes(self._ask("/nodes", "the list of nodes"))

    def rooms(self) -> list[NodeRoom]:
        """What each node that takes work has left, by name."""
        rows = _rows(self._ask("/nodes", "the list of nodes"), "nodes", "node")
        found = [parse_room(one) for one in rows if one["state"] == "RUNNING"]
        return sorted(found, key=lambda one: one.node_name)

    def scheduler(self) -> Scheduler:
        """The scheduler with its queues."""
        answer = self._ask("/scheduler", "its scheduler")
        try:
            return parse_scheduler(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._pages.foreign_error() from None

    def orders(self) -> dict[str, NodeOrder]:
        """The orders of nodewise's plug-in by name; none where it is not in this ResourceManager."""
        answer = self._active().read_json(_ORDERS, "the orders of nodes")
        beans = answer.get("beans") if isinstance(answer, dict) else None
        found = (parse_order(one) for one in beans or ())
        return {one.name: one for one in found}

    def node_addresses(self) -> set[str]:
        """Where the NodeManagers' pages are (host:port), also of those that take no work."""
        answer = self._ask("/nodes", "the list of nodes")
        return {str(node.get("nodeHTTPAddress")) for node in _rows(answer, "nodes", "node")}

    def applications(self, kind: str = "", states: Sequence[str] = (), most: int = 0) -> list[dict[str, Any]]:
        """The `app` of every application that YARN remembers: of a type, in one of these states, or of all.

        YARN chooses which ones it tells when there are more than `most`; 0 asks for all.
        """
        query = {"applicationTypes": kind, "states": ",".join(states), "limit": str(most or "")}
        given = {name: text for name, text in query.items() if text}
        return _rows(self._ask("/apps", "the list of applications", **given), "apps", "app")

    def application(self, application_id: str) -> dict[str, Any]:
        """The `app` of one application; NotKnown when there is none."""
        answer = self._ask(f"/apps/{quote(application_id)}", f"application {application_id}")
        application = answer.get("app")
        if not isinstance(application, dict):
            raise self._pages.foreign_error()
        return application

    def is_running(self, application_id: str) -> bool:
        """Whether an application has not ended; NotKnown when there is none."""
        return not has_ended(self.application(application_id))

    def started_masters(self, application_id: str) -> list[tuple[str, str]]:
        """The container of every attempt's application master, in order: its id, and its NodeManager (host:port).

        None before YARN has given it a node; NotKnown when there is no such application.
        """
        return parse_attempts(self._ask(f"/apps/{quote(application_id)}/appattempts", f"application {application_id}"))

    def master_containers(self, application_id: str) -> list[tuple[str, str]]:
        """The same, but HadoopError when it has not started yet."""
        containers = self.started_masters(application_id)
        if not containers:
            raise HadoopError(f"{application_id} has no log yet: no node has started its application master")
        return containers

    def read_proxied(self, application_id: str, path: str, limits: Limits) -> bytes:
        """A page of an application's master, read through the ResourceManager's proxy.

        REST does not tell everybody where the master itself listens.
        """
        page = f"/proxy/{quote(application_id)}{path}"
        return self._pages.read(page, f"application {application_id}", limits).content

    def nodemanager(self, node_address: str) -> str:
        """The address of a NodeManager (scheme://host:port), which has the scheme of its ResourceManager."""
        return f"{urlsplit(self._pages.address).scheme}://{node_address}"

    def _active(self) -> Pages:
        """Those of the active one: these are the pages that one that stands by shows as well, of itself."""
        return self._pages.of_active(INFO)

    def _ask(self, path: str, what: str, **query: str) -> dict[str, Any]:
        query |= {"user.name": self._user} if self._user else {}
        answer = self._pages.read_json(f"{_CLUSTER}{path}{'?' if query else ''}{urlencode(query)}", what)
        if not isinstance(answer, dict):
            raise self._pages.foreign_error()
        return answer


def parse_info(address: str, about: Any, nodes: Any) -> ResourceManagerInfo:
    """Read /cluster/info and /cluster/nodes, whose `nodes` is null for none; HadoopError when it is something else."""
    try:
        version = str(about["clusterInfo"]["hadoopVersion"])
        states = Counter(str(node["state"]) for node in _rows(nodes, "nodes", "node"))
        return ResourceManagerInfo(address, version, dict(states))
    except (KeyError, TypeError, AttributeError):
        raise HadoopError(
            f"{address} answers, but not as a ResourceManager",
            remedy="correct yarn.resourcemanager.hostname in yarn-site.xml",
        ) from None


def parse_order(bean: Mapping[str, Any]) -> NodeOrder:
    """Read an order out of its bean: `{"name": "...NodewiseOrder-first", "First": ["n1:8041 0.500", ...], ...}`."""
    words = [str(one).split() for one in bean.get("First") or ()]
    first = tuple((one[0].rpartition(":")[0], float(one[1])) for one in words)
    has_values = not bean.get("StockOrder") and bean.get("SnapshotAgeMillis", -1) >= 0
    age = bean["SnapshotAgeMillis"] / 1000 if has_values else None
    return NodeOrder(str(bean["name"]).rpartition("NodewiseOrder-")[2], age, first)


def parse_room(node: Mapping[str, Any]) -> NodeRoom:
    """Read one `node`, which tells what it has in use and what is left."""
    free_mb, free_vcores = int(node["availMemoryMB"]), int(node["availableVirtualCores"])
    total_mb, total_vcores = free_mb + int(node["usedMemoryMB"]), free_vcores + int(node["usedVirtualCores"])
    labels = node.get("nodeLabels") or [""]
    free, used = _others(node.get("availableResource")), _others(node.get("usedResource"))
    total = {name: count + used.get(name, 0) for name, count in free.items()}
    return NodeRoom(
        str(node["nodeHostName"]), free_mb, free_vcores, total_mb, total_vcores, str(labels[0]), free, total
    )


def parse_running_nodes(answer: Mapping[str, Any]) -> set[str]:
    """Read host names out of `{"nodes": {"node": [{"nodeHostName": "127.0.2.11", "state": "RUNNING"}]}}`."""
    return {node["nodeHostName"] for node in _rows(answer, "nodes", "node") if node["state"] == "RUNNING"}


def has_ended(application: Mapping[str, Any]) -> bool:
    """Whether the `app` of an application is of one that has ended."""
    return application["state"] in _ENDED


def parse_attempts(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Read the containers out of `{"appAttempts": {"appAttempt": [{"id": 1, "containerId": ...}]}}`.

    An attempt that has no container yet is left out.
    """
    attempts = _rows(answer, "appAttempts", "appAttempt")
    started = [one for one in attempts if one.get("containerId") and one.get("nodeHttpAddress")]
    return [(one["containerId"], one["nodeHttpAddress"]) for one in sorted(started, key=lambda one: one["id"])]


def _others(told: Mapping[str, Any] | None) -> dict[str, int]:
    """Of a resource of a node, what is neither memory nor cores."""
    return {name: count for name, count in parse_amounts(told).items() if name not in (MEMORY, VCORES)}


def _rows(answer: Mapping[str, Any], plural: str, singular: str) -> list[dict[str, Any]]:
    """The list in an answer, where YARN says null for none."""
    rows: list[dict[str, Any]] = (answer.get(plural) or {}).get(singular) or []
    return rows
