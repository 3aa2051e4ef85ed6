"""Snapshots of a real HDFS: whatever changes is seen, and what did not change is not asked again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hadoop.local.lifecycle import Cluster
from tests.cluster.hadoop_scripts import Scripts, scripts_of

# Each step does one thing to /snap and takes a snapshot from the one before.
SCRIPT = """
import sys, time
from dataclasses import replace
from pathlib import Path
import jpype
from hadoop.client.snapshots import take
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.listing import Listing

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
fs = FileSystem()
listing = Listing(fs)
found = {}
last = None

def content(snapshot):
    return sorted(
        [f.path, f.size_bytes, f.is_open, [[b.offset, b.length, sorted(b.hosts)] for b in f.blocks]]
        for f in snapshot.files()
    )

def settled(path="/snap"):
    # Replicas are reported a moment after a file is closed.
    deadline = time.monotonic() + 200
    snapshot = take(listing, path)
    while not all(folder.settled for folder in snapshot.folders.values()):
        assert time.monotonic() < deadline, snapshot.folders
        snapshot = take(listing, path)
    return snapshot

def step(name, action=lambda: None, **how):
    global last
    before = last
    action()
    now = take(listing, "/snap", before, **how)
    anew = settled()
    last = anew
    again = take(listing, "/snap", anew)
    found[name] = {
        "listed": now.listed_again,
        "folders": len(now.folders),
        "files": now.file_count,
        "as_anew": [row[:3] for row in content(now)] == [row[:3] for row in content(anew)],
        "changed": before is not None and anew.digest != before.digest,
        "again": again.listed_again,
        "again_same": (again.digest, content(again)) == (anew.digest, content(anew)),
    }

def write(name, size=1, replication=2):
    stream = fs.java.create(fs.path(f"/snap/{name}"), True, 4096, jpype.JShort(replication), 1048576)
    stream.write(jpype.JArray(jpype.JByte)(b"x" * size))
    return stream

def append(name):
    stream = fs.java.append(fs.path(f"/snap/{name}"))
    stream.write(jpype.JArray(jpype.JByte)(b"y"))
    stream.close()

for name in ("a/1", "a/2", "b/1", "b/deep/1", "c/1", "_hidden/1"):
    write(name).close()
step("first")
first = last.digest
step("nothing")
step("file added", lambda: write("a/3").close())
step("file deleted", lambda: fs.delete("/snap/a/3"))
found["back"] = last.digest == first
step("folder added", lambda: write("b/new/er/1").close())
step("folder renamed", lambda: fs.rename("/snap/b/new", "/snap/c/new"))
step("folder deleted", lambda: fs.delete("/snap/c/new"))
step("hidden file", lambda: write("a/.hidden").close())
step("replication", lambda: fs.java.setReplication(fs.path("/snap/b/deep/1"), jpype.JShort(3)))
step("append", lambda: append("c/1"))
step("append beside a new file", lambda: (append("c/1"), write("a/4").close()))
step(
    "replication beside a new file",
    lambda: (fs.java.setReplication(fs.path("/snap/b/deep/1"), jpype.JShort(2)), write("a/5").close()),
)
step("too old", max_age=0.0)
last = replace(last, racks={**last.racks, "gone": "/default-rack"})
step("another set of nodes")

stream = write("c/open", 5)
during = [take(listing, "/snap", last)]
during.append(take(listing, "/snap", during[-1]))
stream.close()
after = take(listing, "/snap", during[-1])
seen = [[row[:3] for row in content(one) if row[0] == "/snap/c/open"] for one in (*during, after)]
found["open"] = [[one.listed_again, rows] for one, rows in zip((*during, after), seen)]

write("one").close()
settled()  # for those who look at it next
file = settled("/snap/one")
found["a file"] = [file.file_count, list(file.folders), take(listing, "/snap/one", file).listed_again]
"""

BEGIN = """
import sys, time
from pathlib import Path
from hadoop.client.snapshots import take
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.listing import Listing

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
fs = FileSystem()
"""
# As somebody else than who started the NameNode.
ORDINARY = """
listing = Listing(fs)
racks = listing.racks()
first = take(listing, "/snap")
again = take(Listing(fs), "/snap", first)
found = [racks, first.racks, first.listed_again, again.listed_again]
"""
# A listing that has lost the last unit of each block, as a real one has until HDFS made it again.
CODED = """
import jpype

class Lossy(Listing):
    def pages(self, folder):
        for page in super().pages(folder):
            for block in (block for entry in page.partialListing for block in entry.locations.blocks):
                del block.locs[-1]
                block.blockIndices = block.blockIndices[:-1]
            yield page

fs.java.enableErasureCodingPolicy("XOR-2-1-1024k")
fs.make_folder("/coded rest")
fs.java.setErasureCodingPolicy(fs.path("/coded rest"), "XOR-2-1-1024k")
sizes = (0, 1000, 1 << 20, (1 << 20) + 1, 2 << 20, 5 * (1 << 20) - 7)
for size in sizes:
    fs.write(f"/coded rest/{size}", b"x" * size)
writing = fs.java.create(fs.path("/coded rest/open"))
writing.write(jpype.JArray(jpype.JByte)(b"x" * 10))
writing.hflush()
hidden = [take(Listing(fs), "/coded rest").hidden]
writing.close()
hidden.append(take(Listing(fs), "/coded rest").hidden)
deadline = time.monotonic() + 200
while not (whole := take(Listing(fs), "/coded rest").folders["/coded rest"].settled):
    assert time.monotonic() < deadline
lossy = take(Lossy(fs), "/coded rest")
found = [hidden, whole, lossy.folders["/coded rest"].settled, [file.is_missing for file in lossy.files()]]
"""


@pytest.fixture(scope="module")
def steps(scripts: Scripts) -> Any:
    return scripts.find(SCRIPT)


LISTED = {
    "first": 5,
    "nothing": 0,
    "file added": 1,
    "file deleted": 1,
    "folder added": 3,
    "folder renamed": 4,
    "folder deleted": 1,
    "replication": 5,
    "append": 5,
    "append beside a new file": 5,
    "replication beside a new file": 5,
    "too old": 5,
    "another set of nodes": 5,
}
SAME = {"nothing", "hidden file", "too old", "another set of nodes"}


@pytest.mark.parametrize(("name", "listed"), LISTED.items(), ids=LISTED)
def test_no_more_is_listed_than_what_changed(steps: Any, name: str, listed: int) -> None:
    assert steps[name]["listed"] == listed


@pytest.mark.parametrize("name", [*LISTED, "hidden file"])
def test_a_snapshot_from_an_earlier_one_is_as_one_made_anew(steps: Any, name: str) -> None:
    assert steps[name]["as_anew"]
    assert steps[name]["changed"] == (name not in SAME | {"first"})
    assert (steps[name]["again"], steps[name]["again_same"]) == (0, True)


def test_a_deleted_file_leaves_the_digest_as_it_was_before_it_came(steps: Any) -> None:
    assert steps["back"]
    assert (steps["first"]["files"], steps["first"]["folders"]) == (5, 5)


def test_a_file_that_is_written_is_asked_again_until_it_is_closed(steps: Any) -> None:
    (one, begun), (two, still), (three, closed) = steps["open"]

    assert one == two == three == 1
    assert begun == still == [["/snap/c/open", begun[0][1], True]]
    assert closed == [["/snap/c/open", 5, False]]


def test_a_path_may_be_one_file(steps: Any) -> None:
    assert steps["a file"] == [1, ["/snap/one"], 0]


def _found_by_somebody(cluster: Cluster, conf_dir: Path) -> Any:
    """What `ORDINARY` finds by these site files as another user, in a process of its own."""
    with scripts_of(replace(cluster, user="somebody"), conf_dir) as others:
        return others.find(BEGIN + ORDINARY)


def test_who_is_no_superuser_learns_racks_and_changes_too(cluster: Cluster, steps: Any) -> None:
    racks, seen, _, again = _found_by_somebody(cluster, cluster.conf_dir)

    assert racks == seen == dict.fromkeys(cluster.nodes, "/default-rack")
    assert again == 0


def test_where_the_nodes_are_told_nowhere_the_holders_are_known_and_all_is_listed_again(
    cluster: Cluster, steps: Any, tmp_path: Path
) -> None:
    conf_dir = shutil.copytree(cluster.conf_dir, tmp_path / "conf")
    site = conf_dir / "hdfs-site.xml"
    site.write_text(site.read_text().replace(cluster.namenode_http.removeprefix("http://"), f"{cluster.master}:1"))

    racks, seen, first, again = _found_by_somebody(cluster, conf_dir)

    assert racks == {}
    assert seen
    assert seen.items() <= dict.fromkeys(cluster.nodes, "/default-rack").items()
    assert first == again > 0


def test_an_erasure_coded_file_rests_when_it_has_all_its_units(scripts: Scripts) -> None:
    hidden, whole, lossy, missing = scripts.find(BEGIN + CODED)

    assert hidden == [[0, 0, 0]] * 2
    assert (whole, lossy) == (True, False)
    assert not any(missing)
