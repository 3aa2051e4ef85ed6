"""The record of a cluster on this machine, and the lock for changing it."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import pwd
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hadoop.client.jars import JARS
from hadoop.errors import HadoopError
from hadoop.local import ports

if TYPE_CHECKING:
    from hadoop.local.kerberos.realm import Realm

MAX_NODES = 64
MARKER = "NODEWISE_CLUSTER"
NAMESERVICE = "nodewise"
"""What HDFS is called where it has two NameNodes."""
PROTECTIONS = ("authentication", "integrity", "privacy")

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+@=-]+")


@dataclass(frozen=True)
class Cluster:
    """A real Hadoop cluster on this machine: NameNode, ResourceManager, and nodes on loopback addresses.

    `home` is nodewise's home, `subnet` the first three numbers of its addresses, `cpus` the CPU each node is
    pinned to (empty: no pinning), `user` the account every daemon and client acts as, `java` the JVM's program,
    `plugin` whether the ResourceManager orders nodes by measured values, `mapreduce` whether NodeManagers
    hand over what mappers wrote, `gpus` how many GPUs YARN counts on each node (empty: it counts none). `kerberos`
    tells whether everybody shows a ticket, `protection` what is protected of all that is sent then, `principals` who
    has a keytab besides `user`, `token_seconds` how long a token is good unless it is renewed (0: a day); `ha` whether
    there are two NameNodes and two ResourceManagers.
    """

    home: Path
    subnet: str
    size: int
    user: str
    jars: Path
    java: Path
    cpus: tuple[int, ...] = ()
    plugin: bool = False
    mapreduce: bool = False
    gpus: tuple[int, ...] = ()
    kerberos: bool = False
    protection: str = PROTECTIONS[0]
    principals: tuple[str, ...] = ()
    token_seconds: int = 0
    ha: bool = False

    @property
    def state(self) -> Path:
        """The directory that holds everything of this cluster."""
        return state_dir(self.home)

    @property
    def id(self) -> str:
        """The value that every process of this cluster carries in its environment as NODEWISE_CLUSTER."""
        return cluster_id(self.home)

    @property
    def master(self) -> str:
        """The address of the first NameNode and ResourceManager, and of what there is only one of."""
        return f"{self.subnet}.1"

    @property
    def masters(self) -> tuple[str, ...]:
        """The addresses that have a NameNode and a ResourceManager."""
        return (self.master, f"{self.subnet}.2") if self.ha else (self.master,)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes' names, which are their addresses, as HDFS and YARN spell them."""
        return tuple(f"{self.subnet}.{10 + number}" for number in range(1, self.size + 1))

    @property
    def namenode_url(self) -> str:
        """Where HDFS clients connect."""
        return f"hdfs://{NAMESERVICE}" if self.ha else f"hdfs://{self.master}:{ports.NAMENODE}"

    @property
    def namenode_http(self) -> str:
        """Where WebHDFS and the first NameNode's pages are."""
        return self.namenodes_http[0]

    @property
    def rm_http(self) -> str:
        """Where the first ResourceManager's REST interface and pages are."""
        return self.managers_http[0]

    @property
    def namenodes_http(self) -> tuple[str, ...]:
        """Where the pages of each master's NameNode are."""
        start, port = ("https", ports.NAMENODE_HTTPS) if self.kerberos else ("http", ports.NAMENODE_HTTP)
        return tuple(f"{start}://{master}:{port}" for master in self.masters)

    @property
    def managers_http(self) -> tuple[str, ...]:
        """Where the pages of each master's ResourceManager are."""
        return tuple(f"http://{master}:{ports.RESOURCEMANAGER_HTTP}" for master in self.masters)

    @property
    def pages(self) -> list[str]:
        """Where the pages of all NameNodes and ResourceManagers are."""
        return [*self.namenodes_http, *self.managers_http]

    @property
    def realm(self) -> Realm:
        """Its Kerberos, where it has one."""
        from hadoop.local.kerberos.realm import Realm  # other clusters need nothing of it

        # Its certificate stays when nodes are added, while daemons that have it go on.
        most = replace(self, size=MAX_NODES, ha=True)
        return Realm(
            self.state,
            self.logs,
            f"{self.master}:{ports.KDC}",
            self.masters,
            self.nodes,
            (*most.masters, *most.nodes),
            self.user,
            self.principals,
        )

    @property
    def conf_dir(self) -> Path:
        """HADOOP_CONF_DIR of clients and containers."""
        return self.state / "conf"

    @property
    def java_home(self) -> Path:
        """JAVA_HOME of the JVM in use."""
        return self.java.parent.parent

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`: host, port, user, key and known_hosts of every node."""
        return self.state / "ssh" / "config"

    @property
    def logs(self) -> Path:
        """Where the daemons write their logs."""
        return self.state / "logs"

    def node_dir(self, node: str) -> Path:
        """The folder of one node; it has a number, so that the data survive a change of subnet."""
        return self.state / "nodes" / str(self.nodes.index(node) + 1)


def state_dir(home: Path) -> Path:
    """Where the cluster of this home lives."""
    return home / "cluster"


def cluster_id(home: Path) -> str:
    """Name the cluster of this home; made from its path, so that `down` works even when its files are gone."""
    return hashlib.sha256(str(state_dir(home).resolve()).encode()).hexdigest()[:16]


def current_user() -> str:
    """The name of the account that runs this; HadoopError when it has none, because sshd would refuse it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise HadoopError(
            f"user id {os.getuid()} has no entry in /etc/passwd, and sshd lets no such user in",
            remedy="add one, or run this as another user",
        ) from None


def read(home: Path) -> Cluster | None:
    """Read what was recorded for this home, or None if no cluster was ever started; HadoopError when it is damaged."""
    path = state_dir(home) / "cluster.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return Cluster(
            home=home,
            subnet=str(record["subnet"]),
            size=int(record["size"]),
            user=str(record["user"]),
            jars=Path(record["jars"]),
            java=Path(record["java"]),
            cpus=tuple(int(cpu) for cpu in record["cpus"]),
            plugin=bool(record.get("plugin", False)),
            mapreduce=bool(record.get("mapreduce", False)),
            gpus=tuple(int(count) for count in record.get("gpus", ())),
            kerberos=bool(record.get("kerberos", False)),
            protection=str(record.get("protection", PROTECTIONS[0])),
            principals=tuple(map(str, record.get("principals", ()))),
            token_seconds=int(record.get("token_seconds", 0)),
            ha=bool(record.get("ha", False)),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise HadoopError(
            f"{path} is damaged ({error})",
            remedy=f"run `nodewise cluster down`, then delete {path.parent} to begin anew",
        ) from None


def load(home: Path) -> Cluster:
    """Read the cluster recorded under this home, running or not; HadoopError when there is none."""
    with explain_os_errors(home):
        cluster = read(home)
    if cluster is None:
        raise HadoopError(f"there is no cluster under {home}", remedy="start one with `nodewise cluster up`")
    return cluster


def kept_jars(recorded: Cluster | None) -> Path:
    """Those that the cluster has had; this installation's where they have gone with another one."""
    return recorded.jars if recorded and recorded.jars.is_dir() else JARS


def jars_of_clients(home: Path, conf_dir: Path) -> Path:
    """The jars of the cluster whose site files these are; this installation's where it is not the one of this home."""
    with suppress(HadoopError):  # of a damaged record, which others report
        if conf_dir.absolute() == state_dir(home).absolute() / "conf":
            return kept_jars(read(home))
    return JARS


def save(cluster: Cluster) -> None:
    """Record the cluster; readers see the old file or the new one, never half of it."""
    fields = asdict(cluster)
    del fields["home"]
    path = cluster.state / "cluster.json"
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(fields, default=str, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def check_path(path: Path, what: str) -> None:
    """Refuse a path that Hadoop's comma lists, class paths and URIs would take apart."""
    if not _PLAIN_PATH.fullmatch(str(path)):
        raise HadoopError(
            f"{what} {str(path)!r} cannot be used",
            remedy="Hadoop needs a path of letters, digits and _ . / + @ = - only",
        )


@contextmanager
def lock(home: Path) -> Iterator[None]:
    """Hold this home's cluster for one command at a time; HadoopError when another command is at work on it."""
    state = state_dir(home)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (state / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HadoopError(
                f"another nodewise command is starting or stopping the cluster in {state}", remedy="wait for it"
            ) from None
        yield


@contextmanager
def explain_os_errors(home: Path) -> Iterator[None]:
    """Turn the operating system's errors about our files into a HadoopError with a remedy."""
    try:
        yield
    except OSError as error:
        where = error.filename or state_dir(home)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HadoopError(
                f"the disk under {where} is full", remedy="free some space or use another --home"
            ) from error
        raise HadoopError(f"{where}: {error.strerror or error}", remedy="mend that or use another --home") from error
