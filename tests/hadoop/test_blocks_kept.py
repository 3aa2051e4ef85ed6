"""Records of blocks: who holds a file, and snapshots kept on disk."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadoop.client import disk_cache
from hadoop.client.arrow_table import SCHEMA, blocks_of, from_files, to_files
from hadoop.client.blocks import BlockState, StoredBlock, StoredFile
from hadoop.client.listing import Stamp, Summary
from hadoop.client.snapshots import Folder, Snapshot
from hadoop.errors import HadoopError

NAMES = st.sampled_from(["n1", "n2", "n3"])
NODES = st.lists(NAMES, max_size=3, unique=True).map(tuple)
SIZES = st.integers(0, 2**62)
BLOCKS = st.builds(
    StoredBlock, SIZES, SIZES, NODES, st.lists(st.just("DISK")).map(tuple), NODES, st.sampled_from(BlockState)
)
FILES = st.builds(
    StoredFile,
    st.text(min_size=1),
    SIZES,
    st.lists(BLOCKS, max_size=4).map(tuple),
    st.integers(1, 512),
    st.booleans(),
    st.sampled_from(["", "RS-6-3-1024k"]),
)


def block(length: int, *hosts: str, state: BlockState = BlockState.LIVE) -> StoredBlock:
    return StoredBlock(0, length, hosts, state=state)


@pytest.mark.parametrize(
    ("blocks", "hosts"),
    [
        ((), ()),
        ((block(5, "n2", "n1"),), ("n2", "n1")),
        ((block(5, "n1", "n2"), block(6, "n2", "n3"), block(0, "n4")), ("n2", "n3", "n1", "n4")),
        ((block(9, "n1", "n2", state=BlockState.ERASURE_CODED), block(1, "n3")), ("n3",)),
        ((block(9, state=BlockState.MISSING), block(1, "n3")), ("n3",)),
    ],
)
def test_the_node_with_the_most_whole_bytes_comes_first(
    blocks: tuple[StoredBlock, ...], hosts: tuple[str, ...]
) -> None:
    assert StoredFile("/a", 9, blocks).hosts() == hosts


@pytest.mark.parametrize(
    ("state", "missing"),
    [
        (BlockState.LIVE, False),
        (BlockState.OPEN, False),
        (BlockState.ERASURE_CODED, False),
        (BlockState.MISSING, True),
        (BlockState.CORRUPT, True),
    ],
)
def test_a_file_is_missing_when_one_block_cannot_be_read(state: BlockState, missing: bool) -> None:
    assert StoredFile("/a", 2, (block(1, "n1"), block(1, state=state))).is_missing == missing


@given(st.lists(FILES, unique_by=lambda file: file.path, max_size=6))
def test_a_table_gives_back_the_files_it_was_made_from(files: list[StoredFile]) -> None:
    table = pa.Table.from_batches([from_files(files)], SCHEMA)

    assert list(to_files(table)) == files
    assert blocks_of(table).num_rows == sum(len(file.blocks) for file in files)


def snapshot() -> Snapshot:
    files = [StoredFile("/a/1", 5, (block(5, "n1", "n2"),)), StoredFile("/a/2", 0, ())]
    table = pa.Table.from_batches([from_files(files)], SCHEMA)
    folders = {
        "/a": Folder(Stamp(7, 1000), "d1", 2, 5, 10, 2, ("/a/below",), True),
        "/a/below": Folder(Stamp(8, 1001), "d2", 0, 0, 0, 0, (), False),
    }
    return Snapshot("/a", 12.5, Summary(2, 2, 5, 10), {"n1": "/r1", "n2": "/r2"}, folders, table)


def test_a_kept_snapshot_comes_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    kept, file = snapshot(), tmp_path / "home" / "blocks" / "one.arrow"

    disk_cache.save(kept, file)

    found = disk_cache.load(file)
    assert found is not None
    assert replace(found, table=None) == replace(kept, table=None)
    assert list(found.files()) == list(kept.files())
    assert found.digest == kept.digest
    assert [path.name for path in file.parent.iterdir()] == ["one.arrow"]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_what_is_not_there_or_damaged_is_no_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "one.arrow"
    assert disk_cache.load(file) is None

    disk_cache.save(snapshot(), file)
    whole = file.read_bytes()
    for damaged in (b"", b"text", whole[: len(whole) // 2], whole[:-1], whole.replace(b'"form": 2', b'"form": 1')):
        assert damaged != whole
        file.write_bytes(damaged)
        assert disk_cache.load(file) is None


def test_a_table_of_other_columns_or_fewer_rows_is_no_snapshot(tmp_path: Path) -> None:
    kept, file = snapshot(), tmp_path / "one.arrow"

    for table in (kept.table.slice(1), kept.table.drop_columns(["hosts"])):
        disk_cache.save(replace(kept, table=table), file)
        assert disk_cache.load(file) is None


def kept_for(directory: Path, name: str, seconds: float, size: int = 1) -> None:
    file = directory / name
    file.write_bytes(b"x" * size)
    os.utime(file, (time.time() - seconds,) * 2)


def names(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


def test_of_many_snapshots_those_used_last_are_kept(tmp_path: Path) -> None:
    for number in range(4):
        kept_for(tmp_path, f"{number}.arrow", 100 - number, size=10)

    disk_cache.tidy(tmp_path, most_files=3, most_bytes=1000)
    assert names(tmp_path) == {"1.arrow", "2.arrow", "3.arrow"}
    disk_cache.tidy(tmp_path, most_files=3, most_bytes=25)
    assert names(tmp_path) == {"2.arrow", "3.arrow"}
    disk_cache.tidy(tmp_path, most_files=3, most_bytes=5)
    assert names(tmp_path) == {"3.arrow"}


def test_a_draft_is_deleted_when_its_writer_is_long_gone(tmp_path: Path) -> None:
    kept_for(tmp_path, "a.123", disk_cache.DRAFT_SECONDS + 60)
    kept_for(tmp_path, "a.124", 0)

    disk_cache.tidy(tmp_path)

    assert names(tmp_path) == {"a.124"}


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "blocks").write_text("in the way")

    with pytest.raises(HadoopError, match=r"blocks.*--home"):
        disk_cache.save(snapshot(), tmp_path / "blocks" / "one.arrow")


def test_the_digest_tells_content_and_not_the_order_of_folders_or_empty_ones() -> None:
    one = snapshot()
    turned = replace(one, folders=dict(reversed(list(one.folders.items()))))
    without = replace(one, folders={"/a": one.folders["/a"]})
    other = replace(one, folders={"/a": one.folders["/a"]._replace(digest="d3")})

    full = replace(one, folders={name: folder._replace(files=1) for name, folder in one.folders.items()})
    full_turned = replace(full, folders=dict(reversed(list(full.folders.items()))))

    assert one.digest == turned.digest == without.digest != other.digest
    assert full.digest == full_turned.digest != one.digest
