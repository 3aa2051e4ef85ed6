"""Files of a real HDFS through Hadoop's own client: what is listed, and how it is written."""

from __future__ import annotations

import pytest
from hdfs import InsecureClient

from hadoop.local.lifecycle import Cluster
from tests.cluster.hadoop_scripts import Scripts

BEGIN = """
import sys
from pathlib import Path
from hadoop.client.blocks import list_files
from hadoop.errors import HadoopError
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
fs = FileSystem()

def refusal(doing):
    try:
        doing()
    except HadoopError as error:
        return str(error)
"""
LISTED = (
    BEGIN
    + """
import time
deadline = time.monotonic() + 200
while True:
    found = {path: [f._asdict() | {'hosts': f.hosts()} for f in list_files(fs, path)] for path in PATHS}
    blocks = [block for files in found.values() for file in files for block in file['blocks']]
    # Replicas are reported a moment after they are written.
    if all(len(block.hosts) == 2 for block in blocks) or time.monotonic() > deadline:
        break
    time.sleep(0.05)
"""
)
MISSING = BEGIN + "found = refusal(lambda: list(list_files(fs, '/nowhere')))"
RENAMED = BEGIN + "found = [refusal(lambda: fs.rename('/move/a', target)) for target in TARGETS]"
WRITTEN = BEGIN + "found = [fs.write('/write/file', b'new', 0o600), fs.read('/write/file').decode()]"
COPIED = (
    BEGIN
    + """
content = bytes(range(256)) * 14_000
fs.write('/copy/large', content)
fs.copy('/copy/large', '/copy/same')
with fs.open_writer('/copy/pieces', block_bytes=1 << 20) as write:
    write(content)
    write(b'end')
refused = refusal(lambda: fs.copy('/copy/pieces', '/copy/same'))
(file,) = list_files(fs, '/copy/pieces')
sizes = [block.length for block in file.blocks]
found = [fs.read('/copy/same') == content, fs.read('/copy/pieces') == content + b'end', refused, sizes]
"""
)
CUT_OFF = (
    BEGIN
    + """
stream = fs.java.create(fs.path('/read/open'), True)
for part in ('arr', 'ived'):  # the NameNode hears of the first part alone
    stream.writeBytes(part)
    stream.hflush()
found = [int(fs.java.getFileStatus(fs.path('/read/open')).getLen()), fs.read('/read/open').decode()]
stream.close()
"""
)
MADE = (
    BEGIN + "found = [fs.make_folder('/make/open', 0o777), fs.make_folder('/make/open'), fs.make_folder('/make/b/c')]"
)
DRAFTS = (
    BEGIN
    + """
from hadoop.client.drafts import clear_old
from hadoop.client.filesystem import draft_of
old, put_away = draft_of('/draft/a'), draft_of('/draft/b')
for name in (old, put_away):
    fs.write(name, b'half')
    fs.java.setTimes(fs.path(name), 1, -1)
fs.touch(put_away)
clear_old(fs, '/draft')
clear_old(fs, '/nowhere')
found = [fs.exists(name) for name in (old, put_away)]
"""
)


@pytest.fixture(scope="module")
def hdfs(cluster: Cluster) -> InsecureClient:
    return InsecureClient(cluster.namenode_http, user=cluster.user)


def test_files_are_listed_with_their_blocks_nodes_and_hidden_ones_passed_over(
    cluster: Cluster, scripts: Scripts, hdfs: InsecureClient
) -> None:
    block = 1_048_576
    for name in ("list/.hidden/a", "list/_logs/b", "list/in/_c", "list/.d"):
        hdfs.write(f"/{name}", data=b"x")
    hdfs.write("/list/empty file", data=b"")
    hdfs.write("/list/in/two", data=b"x" * (block + 9), blocksize=block)
    hdfs.makedirs("/list/nothing")
    paths = ["/list", f"{cluster.namenode_url}/list/in/two", "/list/nothing", "/list/.hidden"]
    folder, one, nothing, hidden = scripts.find(LISTED, PATHS=paths).values()
    assert [(file["path"], file["size_bytes"]) for file in folder] == [
        ("/list/empty file", 0),
        ("/list/in/two", block + 9),
    ]
    assert (folder[0]["blocks"], folder[0]["hosts"]) == ([], [])
    assert [(offset, length) for offset, length, *_ in folder[1]["blocks"]] == [(0, block), (block, 9)]
    assert all(len(set(hosts) & set(cluster.nodes)) == 2 for _, _, hosts, *_ in folder[1]["blocks"])
    held = {
        host: sum(length for _, length, hosts, *_ in folder[1]["blocks"] if host in hosts)
        for host in folder[1]["hosts"]
    }
    assert set(held) == {host for _, _, hosts, *_ in folder[1]["blocks"] for host in hosts}
    assert list(held.values()) == sorted(held.values(), reverse=True)
    # The NameNode may name the same replicas in another order each time.
    assert [(file["path"], file["size_bytes"], set(file["hosts"])) for file in one] == [
        ("/list/in/two", block + 9, set(held))
    ]
    assert nothing == []
    assert [file["path"] for file in hidden] == ["/list/.hidden/a"]


def test_listing_a_path_that_is_not_there_is_one_sentence(scripts: Scripts) -> None:
    assert scripts.find(MISSING) == "/nowhere is not in HDFS: check the path, `hdfs:///` begins at the root"


def test_a_file_is_replaced_whole_and_gets_its_mode(scripts: Scripts, hdfs: InsecureClient) -> None:
    hdfs.write("/write/file", data=b"older and longer", permission="644")
    assert scripts.find(WRITTEN) == [None, "new"]
    assert hdfs.status("/write/file")["permission"] == "600"


def test_large_files_pass_through_in_pieces_and_nothing_is_copied_over(scripts: Scripts) -> None:
    same, pieces, refused, sizes = scripts.find(COPIED)

    assert (same, pieces) == (True, True)
    assert sizes == [1 << 20] * 3 + [256 * 14_000 + 3 - (3 << 20)]
    assert refused.startswith("copying /copy/pieces to /copy/same failed: ")


def test_a_target_that_exists_is_never_renamed_over_or_into(scripts: Scripts, hdfs: InsecureClient) -> None:
    for name in ("a", "b", "folder/c"):
        hdfs.write(f"/move/{name}", data=name)
    file, folder, orphan, new = scripts.find(RENAMED, TARGETS=["/move/b", "/move/folder", "/move/none/a", "/move/new"])
    assert file.startswith("renaming /move/a to /move/b failed: ")
    assert folder.startswith("renaming /move/a to /move/folder failed: ")
    assert orphan.startswith("renaming /move/a to /move/none/a failed: ")
    assert new is None
    assert hdfs.list("/move/folder") == ["c"]
    assert sorted(hdfs.list("/move")) == ["b", "folder", "new"]


def test_a_folder_keeps_its_mode_when_made_again_without_one(scripts: Scripts, hdfs: InsecureClient) -> None:
    assert scripts.find(MADE) == [None, None, None]
    assert hdfs.status("/make/open")["permission"] == "777"
    assert hdfs.status("/make/b/c")["permission"] == "755"


def test_of_a_file_whose_writer_has_not_closed_it_what_has_arrived_is_read(scripts: Scripts) -> None:
    assert scripts.find(CUT_OFF) == [3, "arrived"]


def test_only_drafts_that_nobody_has_touched_for_a_day_are_cleared(scripts: Scripts) -> None:
    assert scripts.find(DRAFTS) == [False, True]
