"""Asks the NameNode about a path in bulk: its files page by page, its totals, what changed, and the live nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jpype

from hadoop.client.filesystem import REMEDY, FileSystem
from hadoop.client.jvm import ACCESS_DENIED, configuration, java, java_errors
from hadoop.client.protocol_messages import message_class
from hadoop.errors import HadoopError
from hadoop.rest.namenode import NameNode

_HDFS = "org.apache.hadoop.hdfs"
_PROTO = f"{_HDFS}.protocol.proto"
_NOT_ACTIVE = ("org.apache.hadoop.ipc.StandbyException", "org.apache.hadoop.ipc.RetriableException")
_FAILOVERS = 3
"""So many times one page may be asked for anew: a NameNode that has just taken over may fail, too."""


class Stamp(NamedTuple):
    """Identifies a state of a folder: its id, and when a name in it last appeared or vanished (Unix milliseconds)."""

    file_id: int
    modified_ms: int


class Summary(NamedTuple):
    """Totals of all that lies below a path, hidden names included; `space_bytes` counts every replica."""

    files: int
    folders: int
    size_bytes: int
    space_bytes: int


class ErasurePolicy(NamedTuple):
    """Spreads a block group over `data_units` nodes, `cell_bytes` at a time, and adds `parity_units`."""

    name: str
    data_units: int
    parity_units: int
    cell_bytes: int

    def filled_units(self, length: int) -> int:
        """How many data units hold some of a group of this length."""
        return min(self.data_units, max(1, -(-length // self.cell_bytes)))

    def space_bytes(self, length: int) -> int:
        """How many bytes a group of this length needs with parity; a parity unit is as long as the first data unit."""
        stripes, rest = divmod(length, self.data_units * self.cell_bytes)
        return length + self.parity_units * (stripes * self.cell_bytes + min(rest, self.cell_bytes))


class Listing:
    """A session with the NameNode of a file system, of several the active one. Every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._policies: dict[int, ErasurePolicy] = {}
        self._holders: dict[str, str] | None = None
        with java_errors("connecting to HDFS", REMEDY):
            try:
                self._client = filesystem.java.getClient()
            except AttributeError:
                raise HadoopError(
                    f"{filesystem.java.getUri()} is not HDFS",
                    remedy="set fs.defaultFS in core-site.xml to hdfs://HOST:PORT",
                ) from None
            self._namenode = _messages_of(self._client.getNamenode())
            logical = java(f"{_HDFS}.HAUtilClient").isLogicalUri(configuration(), filesystem.java.getUri())
            self._failovers = _FAILOVERS if logical else 0
            self._request = java(f"{_PROTO}.ClientNamenodeProtocolProtos$GetListingRequestProto")
        self._page = message_class(f"{_PROTO}.HdfsProtos", "hadoop.hdfs.DirectoryListingProto")

    def pages(self, folder: str) -> Iterator[Any]:
        """Yield the DirectoryListingProto of each page of a folder (dfs.ls.limit), with locations; for a file, itself.

        Yields nothing when there is no such path. A page leaves the JVM as the bytes of its message, because reading
        its fields through JPype would take dozens of calls for each file.
        """
        request = self._request.newBuilder().setSrc(folder).setNeedLocation(True)
        after = b""
        while True:
            with java_errors(f"listing {folder}", REMEDY):
                start = java("org.apache.hadoop.thirdparty.protobuf.ByteString").copyFrom(_bytes(after))
                listing = self._get_listing(request.setStartAfter(start).build())
                if not listing.hasDirList():
                    return
                content = bytes(listing.getDirList().toByteArray())
            page = self._page.FromString(content)
            if self._holders is not None:
                self._holders |= _racks_on(page)
            yield page
            if not page.remainingEntries:
                return
            after = page.partialListing[-1].path

    def _get_listing(self, request: Any) -> Any:
        """The answer of the active NameNode, also of one that takes over meanwhile. Java's errors are raised."""
        for _ in range(self._failovers):
            try:
                return self._namenode.getListing(None, request)
            except java("org.apache.hadoop.thirdparty.protobuf.ServiceException") as error:
                if not _may_have_moved(error.getCause()):
                    raise
            # Unlike our proxy, which is bound to one NameNode, the client looks for the active one, and waits for it.
            self._client.getFileInfo("/")
            self._namenode = _messages_of(self._client.getNamenode())
        return self._namenode.getListing(None, request)

    def erasure_policy(self, message: Any) -> ErasurePolicy:
        """The policy that an ErasureCodingPolicyProto names; for Hadoop's own policies it holds only the number."""
        if message.id not in self._policies:
            own = java(f"{_HDFS}.protocol.SystemErasureCodingPolicies").getByID(message.id)
            self._policies[message.id] = (
                ErasurePolicy(message.name, message.schema.dataUnits, message.schema.parityUnits, message.cellSize)
                if own is None
                else ErasurePolicy(
                    str(own.getName()),
                    int(own.getNumDataUnits()),
                    int(own.getNumParityUnits()),
                    int(own.getCellSize()),
                )
            )
        return self._policies[message.id]

    def stamp(self, path: str) -> Stamp | None:
        """The current state of a folder or file; None when it is gone."""
        with java_errors(f"looking for {path}", REMEDY):
            status = self._client.getFileInfo(path)
            return status and Stamp(int(status.getFileId()), int(status.getModificationTime()))

    def summary(self, path: str) -> Summary:
        """Totals below a path, in one call."""
        with java_errors(f"adding up {path}", REMEDY):
            summary = self._filesystem.java.getContentSummary(self._filesystem.path(path))
            return Summary(
                int(summary.getFileCount()),
                int(summary.getDirectoryCount()),
                int(summary.getLength()),
                int(summary.getSpaceConsumed()),
            )

    def racks(self) -> dict[str, str]:
        """Every live DataNode, by host name, with its rack; empty when this user may not see them.

        Only superusers may make the call for it. Others read the page of the NameNode's figures, which is open unless
        the cluster closed it; when it is closed, `holders` collects the racks from what is listed from now on.
        """
        live = java(f"{_HDFS}.protocol.HdfsConstants$DatanodeReportType").LIVE
        with java_errors("asking for the live DataNodes", REMEDY):
            try:
                nodes = self._client.datanodeReport(live)
                return {str(node.getHostName()): str(node.getNetworkLocation()) for node in nodes}
            except java("org.apache.hadoop.ipc.RemoteException") as error:
                if str(error.getClassName()) != ACCESS_DENIED:
                    raise
        racks = self._racks_on_its_page()
        if not racks:
            self._holders = {}
        return racks

    def holders(self) -> dict[str, str]:
        """The nodes that hold any listed block, with their racks, for users to whom `racks` shows nothing."""
        return dict(self._holders or {})

    def _racks_on_its_page(self) -> dict[str, str]:
        try:
            return NameNode(self._page_address()).racks()
        except HadoopError:
            return {}

    def _page_address(self) -> str:
        """The page of the NameNode that this session speaks to; of several addresses, the one of the same machine."""
        with java_errors("reading the NameNode's addresses", REMEDY):
            here = java("org.apache.hadoop.ipc.RPC").getServerAddress(self._client.getNamenode()).getAddress()
            conf = configuration()
            https = str(conf.get("dfs.http.policy", "")).upper() == "HTTPS_ONLY"
            scheme, service = ("https", "swebhdfs") if https else ("http", "webhdfs")
            named = java(f"{_HDFS}.DFSUtilClient").getHaNnWebHdfsAddresses(conf, service)
            for address in [address for one in named.values() for address in one.values()]:
                at = address.getAddress()
                if at is not None and (at.isAnyLocalAddress() or at.equals(here)):
                    host = str(here.getHostAddress() if at.isAnyLocalAddress() else address.getHostString())
                    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.getPort()}"
        raise HadoopError("the NameNode's page has no address", remedy="set dfs.namenode.http-address in hdfs-site.xml")


def _messages_of(namenode: Any) -> Any:
    """A proxy that sends protocol messages to the NameNode that a client is connected to (of several, the active one).

    The client itself makes Java objects of each message, which takes longer than all the rest of a listing.
    """
    rpc, protocol = java("org.apache.hadoop.ipc.RPC"), java(f"{_HDFS}.protocolPB.ClientNamenodeProtocolPB")
    conf = configuration()
    rpc.setProtocolEngine(conf, protocol.class_, java("org.apache.hadoop.ipc.ProtobufRpcEngine2").class_)
    address = rpc.getServerAddress(namenode)
    return rpc.getProxy(protocol.class_, rpc.getProtocolVersion(protocol.class_), address, conf)


def _may_have_moved(cause: Any) -> bool:
    """Whether another NameNode may answer what one did not: it says that it is not active, or says nothing at all."""
    if isinstance(cause, java("org.apache.hadoop.ipc.RemoteException")):
        return str(cause.getClassName()) in _NOT_ACTIVE
    return isinstance(cause, java("java.io.IOException"))


def _racks_on(page: Any) -> dict[str, str]:
    """The holders of the blocks on a page, with their racks."""
    return {
        node.id.hostName: node.location
        for entry in page.partialListing
        for block in entry.locations.blocks
        for node in block.locs
    }


def _bytes(content: bytes) -> Any:
    return jpype.JArray(jpype.JByte)(content)
