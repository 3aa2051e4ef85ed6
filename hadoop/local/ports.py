"""The addresses a cluster listens on, and whether they are free."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psutil

from hadoop.errors import HadoopError
from hadoop.rest.default_ports import DEFAULT_PORTS
from infosvc.wire.client import DEFAULT_PORT

NAMENODE = DEFAULT_PORTS["dfs.namenode.rpc-address"]
NAMENODE_HTTP = DEFAULT_PORTS["dfs.namenode.http-address"]
NAMENODE_HTTPS = DEFAULT_PORTS["dfs.namenode.https-address"]
INFOSVC = DEFAULT_PORT
RESOURCEMANAGER_HTTP = DEFAULT_PORTS["yarn.resourcemanager.webapp.address"]
RESOURCEMANAGER = (
    DEFAULT_PORTS["yarn.resourcemanager.scheduler.address"],
    DEFAULT_PORTS["yarn.resourcemanager.resource-tracker.address"],
    DEFAULT_PORTS["yarn.resourcemanager.address"],
    DEFAULT_PORTS["yarn.resourcemanager.admin.address"],
    RESOURCEMANAGER_HTTP,
)
NODEMANAGER = 8041
NODEMANAGER_HTTP = DEFAULT_PORTS["yarn.nodemanager.webapp.address"]
NODEMANAGER_OTHERS = (DEFAULT_PORTS["yarn.nodemanager.localizer.address"], NODEMANAGER_HTTP)
SSHD = 2222

# Every DataNode registers as 127.0.0.1, and the NameNode tells them apart by port only: each needs its own.
DATANODE, DATANODE_HTTP, DATANODE_IPC, DATANODE_HTTPS = 19000, 19100, 19200, 19300
# Of the journal that two NameNodes share, of ZooKeeper, and of what makes one of them active.
JOURNALNODE, JOURNALNODE_HTTP, JOURNALNODE_HTTPS = 8485, 8480, 8481
ZOOKEEPER = 2181
FAILOVER = 8018
KDC = 18088

# Held while a cluster starts, so that two starts never choose the same subnet.
_CLAIM = 8019
# Debian gives 127.0.1.1 the machine's own name, which would then show up in place of the address: the last choice.
SUBNETS = tuple(f"127.0.{number}" for number in (*range(2, 255), 1))

ENDING_SECONDS = 10.0
"""How long a process that has been killed may still hold its ports; by then it cannot be seen any more."""
_TIMEOUT_SECONDS = 3.0
_POLL_SECONDS = 0.3

Address = tuple[str, int]


def check_subnet(subnet: str) -> str:
    """Return the subnet when it is one of 127.0.1 to 127.0.254, else raise HadoopError."""
    if subnet not in SUBNETS:
        raise HadoopError(f"subnet {subnet!r} is not allowed", remedy="give one of 127.0.1 to 127.0.254")
    return subnet


def of(kind: str, address: str, number: int, kerberos: bool = False) -> list[Address]:
    """List what a daemon of this kind listens on; `number` is its node's, counted from 1.

    With `kerberos`, those of HDFS show their pages over HTTPS alone.
    """
    pages = DATANODE_HTTPS if kerberos else DATANODE_HTTP
    ports = {
        "kdc": (KDC,),
        "zookeeper": (ZOOKEEPER,),
        "journalnode": (JOURNALNODE, JOURNALNODE_HTTPS if kerberos else JOURNALNODE_HTTP),
        "namenode": (NAMENODE, NAMENODE_HTTPS if kerberos else NAMENODE_HTTP),
        "zkfc": (FAILOVER,),
        "resourcemanager": RESOURCEMANAGER,
        "datanode": tuple(port + number for port in (DATANODE, pages, DATANODE_IPC)),
        "nodemanager": (NODEMANAGER, *NODEMANAGER_OTHERS),
        "sshd": (SSHD,),
    }[kind]
    return [(address, port) for port in ports]


def find_taken(addresses: Iterable[Address]) -> Address | None:
    """Return the first address that a server could not bind now, or None when all are free."""
    for address in addresses:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
                probe.listen(1)
            except OSError:
                return address
    return None


def find_held(addresses: Iterable[Address], patience: float = ENDING_SECONDS) -> Address | None:
    """Return the first address that is taken, and stays so for that many seconds if no process can be seen there."""
    wanted = list(addresses)
    deadline = time.monotonic() + patience
    while (busy := find_taken(wanted)) and time.monotonic() < deadline and not _seen_holder(busy):
        time.sleep(_POLL_SECONDS)
    return busy


def is_listening(address: Address) -> bool:
    """Tell whether a server accepts connections there."""
    try:
        with socket.create_connection(address, timeout=_TIMEOUT_SECONDS):
            return True
    except OSError:
        return False


def in_use_error(address: Address) -> HadoopError:
    """The error of an address that another program holds, with that program's name."""
    host, port = address
    return HadoopError(
        f"port {port} of {host} is in use by {_seen_holder(address) or 'a process of another user'}",
        remedy="end that program, or choose another --subnet",
    )


def _seen_holder(address: Address) -> str | None:
    """The program that listens there, in words; None when it is another user's, or just ends."""
    try:
        connections = psutil.net_connections("tcp4") + psutil.net_connections("tcp6")
    except psutil.AccessDenied:
        connections = []
    for connection in connections:
        local = connection.laddr
        if not local or local.port != address[1] or local.ip not in (address[0], "0.0.0.0", "::"):  # noqa: S104
            continue
        if connection.status == psutil.CONN_LISTEN and connection.pid:
            try:
                return f"pid {connection.pid} ({psutil.Process(connection.pid).name()})"
            except psutil.NoSuchProcess:
                break
    return None


@contextmanager
def claim(subnet: str, addresses: Iterable[Address], patience: float = ENDING_SECONDS) -> Iterator[None]:
    """Keep other starts off this subnet inside the block; HadoopError when one is under way or an address is taken.

    An address whose holder cannot be seen has so many seconds to become free.
    """
    lock = (f"{subnet}.1", _CLAIM)
    with socket.socket() as held:
        try:
            held.bind(lock)
            held.listen(1)
        except OSError:
            raise in_use_error(lock) from None
        busy = find_held(addresses, patience)
        if busy:
            raise in_use_error(busy)
        yield
