"""The distribution of blocks, asked of a real NameNode by the processor as a slot would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hdfs import InsecureClient

from hadoop.local import Cluster
from hadoop.webhdfs import WebHdfs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "/tests/block distribution"
BLOCK_BYTES = 1024 * 1024


@pytest.fixture
def stored(cluster: Cluster) -> Iterator[InsecureClient]:
    """Two files of 2.5 and 0.5 blocks, and an empty one, in a folder with a blank in its name."""
    client = InsecureClient(cluster.namenode_http, user=cluster.user)
    for name, size in (("a", 2 * BLOCK_BYTES + BLOCK_BYTES // 2), ("below/b", BLOCK_BYTES // 2), ("empty", 0)):
        client.write(f"{FOLDER}/{name}", b"x" * size, blocksize=BLOCK_BYTES, replication=2, overwrite=True)
    yield client
    client.delete(FOLDER, recursive=True)


def ask(cluster: Cluster, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "collectors/processors/block_distribution.py"), cluster.namenode_http, path]
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_every_replica_is_counted_on_its_node(cluster: Cluster, stored: InsecureClient) -> None:
    ran = ask(cluster, FOLDER)
    assert ran.returncode == 0, ran.stderr
    held = json.loads(ran.stdout)

    assert set(held) <= set(cluster.nodes)
    assert sum(node["blocks"] for node in held.values()) == 2 * 4
    assert sum(node["bytes"] for node in held.values()) == 2 * 3 * BLOCK_BYTES


def test_blocks_know_their_place_in_the_file(cluster: Cluster, stored: InsecureClient) -> None:
    with WebHdfs(cluster.namenode_http) as namenode:
        blocks = list(namenode.blocks(f"{FOLDER}/a"))

    assert [(block.offset, block.length) for block in blocks] == [
        (0, BLOCK_BYTES),
        (BLOCK_BYTES, BLOCK_BYTES),
        (2 * BLOCK_BYTES, BLOCK_BYTES // 2),
    ]
    assert all(len(block.hosts) == 2 for block in blocks)


def test_a_path_without_blocks_is_no_data_and_a_missing_one_is_named(cluster: Cluster, stored: InsecureClient) -> None:
    assert (ask(cluster, f"{FOLDER}/empty").stdout, ask(cluster, f"{FOLDER}/empty").returncode) == ("", 3)
    missing = ask(cluster, "/no/such/path")
    assert missing.returncode == 1
    assert "/no/such/path" in missing.stderr
