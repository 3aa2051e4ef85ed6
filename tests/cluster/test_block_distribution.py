"""`nodewise locality blocks` on a real cluster, and what it publishes on a real service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hdfs import InsecureClient

from hadoop.local.lifecycle import Cluster
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import TIMEOUT_VARIABLE
from tests.cluster.site import ANSWER_SECONDS, until

MEGABYTE = 1 << 20
FOLDER = "/tests/block distribution"
FILES = {"a": 2 * MEGABYTE + MEGABYTE // 2, "below/b": MEGABYTE // 2, "empty": 0}
BLOCKS = 4


@pytest.fixture
def hdfs(cluster: Cluster) -> Iterator[InsecureClient]:
    """Three files with two replicas of each block, in a folder with a blank in its name."""
    client = InsecureClient(cluster.namenode_http, user=cluster.user)
    for name, size in FILES.items():
        write(cluster, client, name, size)
    yield client
    client.delete(FOLDER, recursive=True)


def write(cluster: Cluster, client: InsecureClient, name: str, size: int) -> None:
    """With its replicas, which the NameNode hears of a moment after they are written."""
    file, known = f"{FOLDER}/{name}", WebHdfs(cluster.namenode_http, cluster.user)
    client.write(file, b"x" * size, blocksize=MEGABYTE, replication=2, overwrite=True)
    until(lambda: not size or all(len(block["hosts"]) == 2 for block in known.block_locations(file)))


@pytest.fixture
def service(
    cluster: Cluster, tmp_path: Path, eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[InfoClient]:
    """A service that knows all nodes but the last, and may answer slowly."""
    monkeypatch.setenv(TIMEOUT_VARIABLE, str(ANSWER_SECONDS))
    url = f"http://{cluster.master}:8477"
    serve = [sys.executable, "-m", "nodewise", "--home", str(tmp_path), "serve"]
    with subprocess.Popen([*serve, "--host", cluster.master, "--port", "8477"], stdout=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: answers(url))
            client = InfoClient.from_token_file(url, tmp_path / "service" / "token", ANSWER_SECONDS)
            for number, node in enumerate(cluster.nodes[:-1]):
                client.put_node(node, f"{node}:{8410 + number}")
            yield client
        finally:
            process.terminate()


def answers(url: str) -> bool:
    try:
        InfoClient(url).producers()
    except InfoError:
        return False
    return True


def command(cluster: Cluster, home: Path, *words: str, url: str = "http://127.0.0.1:1") -> list[str]:
    conf = ["--hadoop-conf", str(cluster.conf_dir), "--jars", str(cluster.jars), "--user", cluster.user]
    argv = [sys.executable, "-m", "nodewise", "--home", str(home), "locality", "blocks", *words]
    return [*argv, *conf, "--url", url]


def run(cluster: Cluster, home: Path, *words: str, url: str = "http://127.0.0.1:1") -> subprocess.CompletedProcess[str]:
    argv = command(cluster, home, *words, url=url)
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False, env=environment)


def shown(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_replica_is_counted_on_its_node(cluster: Cluster, hdfs: InsecureClient, tmp_path: Path) -> None:
    found = shown(run(cluster, tmp_path, f"hdfs://{FOLDER}", "--json"))

    assert [node["node_name"] for node in found["nodes"]] == sorted(cluster.nodes)
    assert all(node["rack"] == "/default-rack" for node in found["nodes"])
    assert sum(node["blocks"] for node in found["nodes"]) == 2 * BLOCKS
    assert sum(node["bytes"] for node in found["nodes"]) == 2 * 3 * MEGABYTE
    assert sum(node["held_ratio"] for node in found["nodes"]) == pytest.approx(2)
    assert (found["files"], found["blocks"], found["size_bytes"]) == (3, BLOCKS, 3 * MEGABYTE)
    assert (found["missing"], found["open_files"], found["erasure_coded_files"]) == ([], 0, 0)


def test_a_second_call_asks_only_for_what_changed(cluster: Cluster, hdfs: InsecureClient, tmp_path: Path) -> None:
    first = shown(run(cluster, tmp_path, FOLDER, "--json"))
    second = shown(run(cluster, tmp_path, FOLDER, "--json"))
    write(cluster, hdfs, "below/c", 1)
    third = shown(run(cluster, tmp_path, FOLDER, "--json"))
    fresh = shown(run(cluster, tmp_path, FOLDER, "--json", "--fresh"))

    assert [one["folders_listed_again"] for one in (first, second, third, fresh)] == [2, 0, 1, 2]
    assert first["digest"] == second["digest"] != third["digest"] == fresh["digest"]
    assert (third["files"], third["nodes"]) == (4, fresh["nodes"])
    (kept,) = (tmp_path / "blocks").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_the_arrow_file_has_a_row_for_each_block(cluster: Cluster, hdfs: InsecureClient, tmp_path: Path) -> None:
    file = tmp_path / "blocks.arrow"

    text = run(cluster, tmp_path, FOLDER, "--arrow", str(file))

    assert text.returncode == 0, text.stderr
    assert "3 files, 4 blocks, 3.1 MB" in text.stdout
    with pa.memory_map(str(file)) as source:
        rows = pa.ipc.open_file(source).read_all().to_pylist()
    assert [(row["path"], row["offset"], row["length"], row["state"]) for row in rows] == [
        (f"{FOLDER}/a", 0, MEGABYTE, "live"),
        (f"{FOLDER}/a", MEGABYTE, MEGABYTE, "live"),
        (f"{FOLDER}/a", 2 * MEGABYTE, MEGABYTE // 2, "live"),
        (f"{FOLDER}/below/b", 0, MEGABYTE // 2, "live"),
    ]
    assert all(len(set(row["hosts"]) & set(cluster.nodes)) == 2 for row in rows)


def test_a_path_without_blocks_is_shown_and_a_missing_one_named(
    cluster: Cluster, hdfs: InsecureClient, tmp_path: Path
) -> None:
    empty = shown(run(cluster, tmp_path, f"{FOLDER}/empty", "--json"))
    missing = run(cluster, tmp_path, "/no/such/path")

    assert (empty["files"], empty["blocks"], {node["held_ratio"] for node in empty["nodes"]}) == (1, 0, {0.0})
    assert missing.returncode == 1
    assert missing.stderr == "Error: /no/such/path is not in HDFS: check the path, `hdfs:///` begins at the root\n"


def test_what_each_node_holds_is_published_and_kept_true(
    cluster: Cluster, hdfs: InsecureClient, service: InfoClient, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    other = run(cluster, tmp_path, f"{FOLDER}/empty", "--publish", url=service.url)
    assert other.returncode == 0, other.stderr
    known = set(cluster.nodes[:-1])
    argv = command(cluster, tmp_path, FOLDER, "--publish", "--every", "1", url=service.url)
    log = tmp_path / "said"
    with log.open("w") as stderr, subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=stderr) as publisher:
        try:
            eventually(lambda: set(published(service)) == known)
            before = published(service)
            # One replica on every node, so that each node's value has to change.
            hdfs.write(f"{FOLDER}/all", b"x", replication=len(cluster.nodes))
            eventually(lambda: all(now["blocks"] == before[n]["blocks"] + 1 for n, now in published(service).items()))
            eventually(lambda: "not enrolled" in log.read_text())  # when the replica there is known, too
        finally:
            publisher.send_signal(signal.SIGINT)
        publisher.wait(240)

    said = log.read_text()
    assert publisher.returncode == 0
    assert said.splitlines()[-1].startswith("stopped publishing")
    assert "Traceback" not in said
    assert {datum.node_name for datum in service.data("block_distribution")} == known
    values = [json.loads(str(datum.data_value)) for datum in service.data("block_distribution")]
    empty = [value[f"{FOLDER}/empty"] for value in values]
    assert all((facts["blocks"], facts["bytes"]) == (0, 0) and facts["published_at"] <= time.time() for facts in empty)
    strangers = [line for line in said.splitlines() if "not enrolled" in line]
    assert all(cluster.nodes[-1] in line for line in strangers)


def published(service: InfoClient) -> dict[str, dict[str, int]]:
    """What the service says of the folder: node -> blocks and bytes."""
    values = {datum.node_name: json.loads(str(datum.data_value)) for datum in service.data("block_distribution")}
    return {node: value[FOLDER] for node, value in values.items() if FOLDER in value}
