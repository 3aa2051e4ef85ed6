"""Where a real NameNode says that blocks are, in every state a block can be in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from hadoop.local import daemons, health, site
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.standing import Standing

MEGABYTE = 1 << 20
BEGIN = f"""
import sys, time
from pathlib import Path
import jpype
from hadoop.client.blocks import list_files
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, java, start

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
fs = FileSystem()

def writing(path, size, replication=2):
    stream = fs.java.create(fs.path(path), True, 4096, jpype.JShort(replication), {MEGABYTE})
    stream.write(jpype.JArray(jpype.JByte)(b"x" * size))
    return stream

def listed(path, is_settled=lambda files: True):
    # Replicas are reported a moment after they are written.
    deadline = time.monotonic() + 200
    while True:
        files = {{file.path: file._asdict() | {{"best": file.hosts()}} for file in list_files(fs, path)}}
        if is_settled(files) or time.monotonic() > deadline:
            return files
        time.sleep(0.05)

def blocks(files, name):
    return [block._asdict() for block in files[name]["blocks"]]
"""
BLOCKS = f"""
writing("/states/several", 2 * {MEGABYTE} + 500).close()
writing("/states/empty", 0).close()
found = listed("/states", lambda files: all(len(b["hosts"]) == 2 for b in blocks(files, "/states/several")))
"""
OPEN = f"""
synced = java("java.util.EnumSet").of(
    java("org.apache.hadoop.hdfs.client.HdfsDataOutputStream$SyncFlag").UPDATE_LENGTH
)
stream = writing("/open/file", {MEGABYTE} + 500)
stream.hsync(synced)
def states(*wanted):
    return lambda files: tuple(b["state"] for b in blocks(files, "/open/file")) == wanted
before = listed("/open", states("live", "open"))["/open/file"]
stream.close()
found = [before, listed("/open", states("live", "live"))["/open/file"]]
"""
CODED = f"""
fs.java.enableErasureCodingPolicy("XOR-2-1-1024k")
fs.make_folder("/coded")
fs.java.setErasureCodingPolicy(fs.path("/coded"), "XOR-2-1-1024k")
for name, size in (("large", 3 * {MEGABYTE}), ("small", 1000), ("empty", 0)):
    fs.write(f"/coded/{{name}}", b"x" * size)
writing_on = fs.java.create(fs.path("/coded/open"))
writing_on.write(jpype.JArray(jpype.JByte)(b"x" * 3 * {MEGABYTE}))
writing_on.hflush()
hosts = {{"/coded/large": 2, "/coded/small": 1}}
found = listed("/coded", lambda files: all(
    len(set(b["hosts"])) == count for name, count in hosts.items() for b in blocks(files, name)
))
writing_on.close()
"""
AS_HADOOP = """
from hadoop.client.listing import Listing

def both():
    pages = fs.java.listFiles(fs.path("/pages"), True)
    theirs = {}
    while pages.hasNext():
        status = pages.next()
        theirs[str(status.getPath().toUri().getPath())] = [
            [int(at.getOffset()), int(at.getLength()), sorted(map(str, at.getHosts()))]
            for at in status.getBlockLocations()
        ]
    ours = {
        file.path: [[block.offset, block.length, sorted(block.hosts)] for block in file.blocks]
        for file in list_files(fs, "/pages")
    }
    return [ours, theirs]

for number in range(7):
    fs.write(f"/pages/{number}", b"x" * number)
    fs.write(f"/pages/in {number % 3}/ü {number}", b"x" * number)
# Replicas are reported a moment after they are written, which may be between the two.
deadline = time.monotonic() + 200
while (found := both())[0] != found[1] and time.monotonic() < deadline:
    time.sleep(0.05)
found.append(len(list(Listing(fs).pages("/pages"))))
"""
ONE_REPLICA = """
writing("/lost/file", 1000, 1).close()
writing("/lost/kept", 1000, 4).close()
found = listed("/lost", lambda files: [
    len(b["hosts"]) for name in ("/lost/file", "/lost/kept") for b in blocks(files, name)
] == [1, 4])
"""
CACHED = """
client = fs.java
client.addCachePool(java("org.apache.hadoop.hdfs.protocol.CachePoolInfo")("pool"))
directive = java("org.apache.hadoop.hdfs.protocol.CacheDirectiveInfo$Builder")()
client.addCacheDirective(directive.setPath(fs.path("/lost/file")).setPool("pool").build())
found = None
"""
LISTED = "found = listed('/lost')"


def test_every_block_has_its_place_its_holders_and_their_storage(cluster: Cluster, scripts: Scripts) -> None:
    found = scripts.find(BEGIN + BLOCKS)

    assert (found["/states/empty"]["size_bytes"], found["/states/empty"]["blocks"]) == (0, [])
    several = found["/states/several"]
    assert [(offset, length) for offset, length, *_ in several["blocks"]] == [
        (0, MEGABYTE),
        (MEGABYTE, MEGABYTE),
        (2 * MEGABYTE, 500),
    ]
    for _, _, hosts, storage_types, cached, state in several["blocks"]:
        assert len(set(hosts) & set(cluster.nodes)) == 2
        assert (storage_types, cached, state) == (["DISK", "DISK"], [], "live")
    assert (several["replication"], several["is_open"], several["erasure_policy"]) == (2, False, "")


def test_a_file_that_is_still_written_shows_what_is_there_so_far(scripts: Scripts) -> None:
    before, after = scripts.find(BEGIN + OPEN)

    assert before["is_open"]
    assert [(block[0], block[1], block[5]) for block in before["blocks"]] == [
        (0, MEGABYTE, "live"),
        (MEGABYTE, 500, "open"),
    ]
    assert not after["is_open"]
    assert [block[5] for block in after["blocks"]] == ["live", "live"]


def test_an_erasure_coded_file_is_local_only_where_one_node_holds_all_of_it(scripts: Scripts) -> None:
    found = scripts.find(BEGIN + CODED)

    assert {file["erasure_policy"] for file in found.values()} == {"XOR-2-1-1024k"}
    (large,) = found["/coded/large"]["blocks"]
    assert (large[1], len(set(large[2])), large[5]) == (3 * MEGABYTE, 2, "erasure_coded")
    assert found["/coded/large"]["best"] == []
    (small,) = found["/coded/small"]["blocks"]
    assert (len(small[2]), small[5]) == (1, "live")
    assert found["/coded/small"]["best"] == small[2]
    assert found["/coded/empty"]["blocks"] == []
    assert [(block[2], block[5]) for block in found["/coded/open"]["blocks"]] == [([], "open")]


@pytest.fixture(scope="module")
def other_hdfs(standing: Standing) -> Cluster:
    """The shared cluster by other settings: two locations a page, and a cache that needs no libhadoop."""
    cluster = standing.cluster()
    standing.note_changed("namenode", "datanode")
    _restart(cluster, Daemon(cluster, "namenode"), {"dfs.ls.limit": "2"})
    for node in cluster.nodes:
        cache = cluster.node_dir(node) / "cache"
        cache.mkdir()
        keys = {"dfs.datanode.pmem.cache.dirs": str(cache), "dfs.cachereport.intervalMsec": "1000"}
        _restart(cluster, Daemon(cluster, "datanode", node), keys)
    deadline = time.monotonic() + 300
    while waiting := health.find_missing(cluster):
        assert time.monotonic() < deadline, waiting
        time.sleep(0.2)
    return cluster


@pytest.fixture(scope="module")
def other_scripts(other_hdfs: Cluster) -> Iterator[Scripts]:
    with scripts_of(other_hdfs) as made:
        yield made


def _restart(cluster: Cluster, daemon: Daemon, keys: dict[str, str]) -> None:
    """Start a daemon again with further keys in its hdfs-site.xml."""
    process = daemons.find_running(cluster)[daemon]
    process.kill()
    process.wait(120)
    file = site.conf_dir(cluster, daemon.node) / "hdfs-site.xml"
    more = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in keys.items())
    file.write_text(file.read_text().replace("</configuration>", f"{more}</configuration>"))
    daemons.start(daemon)


def test_many_pages_and_folders_say_what_hadoop_s_own_listing_says(other_scripts: Scripts) -> None:
    ours, theirs, pages = other_scripts.find(BEGIN + AS_HADOOP)

    assert len(ours) == 14
    assert ours == theirs
    assert pages > 3


def test_a_replica_in_a_cache_is_known_and_one_that_died_with_its_node_is_missing(
    other_hdfs: Cluster, other_scripts: Scripts, eventually: Callable[..., None]
) -> None:
    found = other_scripts.find(BEGIN + ONE_REPLICA)
    ((holder,),) = (block[2] for block in found["/lost/file"]["blocks"])
    assert found["/lost/file"]["blocks"][0][4] == []
    other_scripts.find(BEGIN + CACHED)
    eventually(lambda: other_scripts.find(BEGIN + LISTED)["/lost/file"]["blocks"][0][4] == [holder])

    daemons.find_running(other_hdfs)[Daemon(other_hdfs, "datanode", holder)].kill()
    eventually(lambda: other_scripts.find(BEGIN + LISTED)["/lost/file"]["blocks"][0][2] == [])

    lost = other_scripts.find(BEGIN + LISTED)
    assert [(block[2], block[4], block[5]) for block in lost["/lost/file"]["blocks"]] == [([], [], "missing")]
    assert lost["/lost/file"]["best"] == []
    assert set(lost["/lost/kept"]["best"]) == set(other_hdfs.nodes) - {holder}
