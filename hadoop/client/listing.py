"""What the NameNode says of a path in bulk: its files page by page, what changed, and which nodes are alive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any, NamedTuple

import jpype

from hadoop.client.filesystem import REMEDY, FileSystem
from hadoop.client.jvm import configuration, java, java_errors
from hadoop.client.protocol_messages import message_class
from hadoop.errors import HadoopError
from hadoop.rest.direct import open_direct

_HDFS = "org.apache.hadoop.hdfs"
_PROTO = f"{_HDFS}.protocol.proto"
_DENIED = "org.apache.hadoop.security.AccessControlException"
_PAGE_TIMEOUT_SECONDS = 5.0


class Stamp(NamedTuple):
    """Tells one state of a folder from another: its identity, and when a name in it last came or went (ms)."""

    file_id: int
    modified_ms: int


class Summary(NamedTuple):
    """Totals of all that lies below a path, hidden names included; `space_bytes` counts every replica."""

    files: int
    folders: int
    size_bytes: int
    space_bytes: int


class ErasurePolicy(NamedTuple):
    """Bytes of a block group go to `data_units` nodes in turn, `cell_bytes` at a time, with `parity_units` beside."""

    name: str
    data_units: int
    parity_units: int
    cell_bytes: int

    def filled_units(self, length: int) -> int:
        """How many data units hold some of a group of this length."""
        return min(self.data_units, max(1, -(-length // self.cell_bytes)))

    def space_bytes(self, length: int) -> int:
        """What a group of this length takes up with its parity: each parity unit is as long as the first data unit."""
        stripes, rest = divmod(length, self.data_units * self.cell_bytes)
        return length + self.parity_units * (stripes * self.cell_bytes + min(rest, self.cell_bytes))


class Listing:
    """A session with the NameNode of a file system. Every method raises HadoopError."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem
        self._policies: dict[int, ErasurePolicy] = {}
        self._holders: dict[str, str] | None = None
        with java_errors("connecting to HDFS", REMEDY):
            try:
                self._client = filesystem.java.getClient()
            except AttributeError:
                raise HadoopError(
                    f"{filesystem.java.getUri()} is no HDFS: set fs.defaultFS in core-site.xml to hdfs://HOST:PORT"
                ) from None
            self._namenode = _messages_of(self._client.getNamenode())
            self._request = java(f"{_PROTO}.ClientNamenodeProtocolProtos$GetListingRequestProto")
        self._page = message_class(f"{_PROTO}.HdfsProtos", "hadoop.hdfs.DirectoryListingProto")

    def pages(self, folder: str) -> Iterator[Any]:
        """The DirectoryListingProto of each page of a folder (dfs.ls.limit), with locations; of a file, itself.

        Nothing when there is no such path. A page crosses from the JVM in one piece, as the bytes of its message:
        field by field, a file would cost dozens of crossings.
        """
        request = self._request.newBuilder().setSrc(folder).setNeedLocation(True)
        after = b""
        while True:
            with java_errors(f"listing {folder}", REMEDY):
                start = java("org.apache.hadoop.thirdparty.protobuf.ByteString").copyFrom(_bytes(after))
                found = self._namenode.getListing(None, request.setStartAfter(start).build())
                if not found.hasDirList():
                    return
                content = bytes(found.getDirList().toByteArray())
            page = self._page.FromString(content)
            if self._holders is not None:
                self._holders |= _racks_on(page)
            yield page
            if not page.remainingEntries:
                return
            after = page.partialListing[-1].path

    def erasure_policy(self, message: Any) -> ErasurePolicy:
        """What an ErasureCodingPolicyProto means; of Hadoop's own policies it holds the number only."""
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
        """The present state of a folder or file, None when it is gone."""
        with java_errors(f"looking for {path}", REMEDY):
            status = self._client.getFileInfo(path)
            return status and Stamp(int(status.getFileId()), int(status.getModificationTime()))

    def summary(self, path: str) -> Summary:
        """Totals below a path, in one call."""
        with java_errors(f"adding up {path}", REMEDY):
            said = self._filesystem.java.getContentSummary(self._filesystem.path(path))
            return Summary(
                int(said.getFileCount()),
                int(said.getDirectoryCount()),
                int(said.getLength()),
                int(said.getSpaceConsumed()),
            )

    def racks(self) -> dict[str, str]:
        """Every live DataNode, by host name, with its rack; nothing when the NameNode tells this user nowhere.

        Its own call is for superusers, so the page of its figures is asked next, which is open to all unless the
        cluster closed it. When it is closed, `holders` learns from what is listed from now on.
        """
        live = java(f"{_HDFS}.protocol.HdfsConstants$DatanodeReportType").LIVE
        with java_errors("asking for the live DataNodes", REMEDY):
            try:
                nodes = self._client.datanodeReport(live)
                return {str(node.getHostName()): str(node.getNetworkLocation()) for node in nodes}
            except java("org.apache.hadoop.ipc.RemoteException") as error:
                if str(error.getClassName()) != _DENIED:
                    raise
        found = self._racks_on_its_page()
        if not found:
            self._holders = {}
        return found

    def holders(self) -> dict[str, str]:
        """The nodes with any listed block, with their racks: all that is known of nodes where `racks` says nothing."""
        return dict(self._holders or {})

    def _racks_on_its_page(self) -> dict[str, str]:
        try:
            with open_direct(
                f"{self._page_address()}?qry=Hadoop:service=NameNode,name=NameNodeInfo", _PAGE_TIMEOUT_SECONDS
            ) as answer:
                nodes = json.loads(json.load(answer)["beans"][0]["LiveNodes"])
            return {name.rpartition(":")[0]: str(node["location"]) for name, node in nodes.items()}
        except (HadoopError, OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError):
            return {}

    def _page_address(self) -> str:
        """The page of the very NameNode that answers: of several, its port is the one named for the same machine."""
        with java_errors("reading the NameNode's addresses", REMEDY):
            here = java("org.apache.hadoop.ipc.RPC").getServerAddress(self._client.getNamenode()).getAddress()
            named = java(f"{_HDFS}.DFSUtilClient").getHaNnWebHdfsAddresses(configuration(), "webhdfs")
            for address in [address for service in named.values() for address in service.values()]:
                at = address.getAddress()
                if at is not None and (at.isAnyLocalAddress() or at.equals(here)):
                    host = str(here.getHostAddress())
                    return f"http://{f'[{host}]' if ':' in host else host}:{address.getPort()}/jmx"
        raise LookupError("no address of its page is known")


def _messages_of(namenode: Any) -> Any:
    """The NameNode that a client is connected to (the active one of several), spoken to in messages.

    The client itself makes Java objects of each message, which takes longer than all the rest of a listing.
    """
    rpc, protocol = java("org.apache.hadoop.ipc.RPC"), java(f"{_HDFS}.protocolPB.ClientNamenodeProtocolPB")
    conf = configuration()
    rpc.setProtocolEngine(conf, protocol.class_, java("org.apache.hadoop.ipc.ProtobufRpcEngine2").class_)
    address = rpc.getServerAddress(namenode)
    return rpc.getProxy(protocol.class_, rpc.getProtocolVersion(protocol.class_), address, conf)


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
