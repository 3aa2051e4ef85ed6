"""How long Hadoop's own client waits for a server that hangs, as its classes understand the configuration."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hadoop.client.jars import JARS
from tests.ports import free_port

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, configuration, java, start
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
conf = configuration()
client = java("org.apache.hadoop.hdfs.client.impl.DfsClientConf")(conf)
replace = java("org.apache.hadoop.hdfs.protocol.datatransfer.ReplaceDatanodeOnFailure").get(conf)
reading, writing = int(client.getSocketTimeout()), int(client.getDatanodeSocketWriteTimeout())
print(json.dumps([reading, writing, bool(replace.isBestEffort())]), flush=True)
"""


# How long a client waits for an answer of a master.
ANSWERS = """
import json, sys
from pathlib import Path
from hadoop.client.jvm import HadoopHome, configuration, java, start
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
print(json.dumps(int(java("org.apache.hadoop.ipc.Client").getRpcTimeout(configuration()))), flush=True)
"""
TWO_NAMENODES = {"fs.defaultFS": "hdfs://ns1", "dfs.nameservices": "ns1"}
TWO_MANAGERS = {"yarn.resourcemanager.ha.enabled": "true"}
ANSWER = "ipc.client.rpc-timeout.ms"


def run_program(folder: Path, program: str, **told: str) -> Any:
    """What a program prints, in a process of its own."""
    for name, begin in {"core": ("fs", "ipc"), "hdfs": ("dfs",), "yarn": ("yarn",)}.items():
        _write_site(folder / f"{name}-site.xml", {key: value for key, value in told.items() if key.startswith(begin)})
    argv = [sys.executable, "-c", program, str(folder), str(JARS)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_datanode_that_hangs_costs_seconds(tmp_path: Path) -> None:
    assert run_program(tmp_path, PROGRAM) == [10_000, 10_000, True]


@pytest.mark.parametrize(
    ("told", "milliseconds"),
    [
        ({}, 120_000),
        (TWO_NAMENODES, 20_000),
        (TWO_MANAGERS, 20_000),
        (TWO_MANAGERS | {ANSWER: "0"}, 20_000),
        (TWO_NAMENODES | {ANSWER: "7000"}, 7_000),
    ],
    ids=["single", "namenodes", "resourcemanagers", "without_end", "sooner"],
)
def test_of_two_masters_the_other_is_asked_after_seconds(
    tmp_path: Path, told: dict[str, str], milliseconds: int
) -> None:
    assert run_program(tmp_path, ANSWERS, **told) == milliseconds


WAITING = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
files = FileSystem(120)
print("asks", flush=True)
files.exists("/")
"""


def _write_site(file: Path, entries: dict[str, str]) -> None:
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in entries.items()]
    file.write_text(f"<configuration>{''.join(lines)}</configuration>")


def test_who_waits_for_a_namenode_asks_the_other_one_at_once_where_there_are_two(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(60)
        _write_site(tmp_path / "core-site.xml", {"fs.defaultFS": "hdfs://both"})
        entries = {
            "dfs.nameservices": "both",
            "dfs.ha.namenodes.both": "gone,other",
            "dfs.namenode.rpc-address.both.gone": f"127.0.0.1:{free_port()}",
            "dfs.namenode.rpc-address.both.other": f"127.0.0.1:{other.getsockname()[1]}",
            "dfs.client.failover.proxy.provider.both": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
            "dfs.client.failover.random.order": "false",
        }
        _write_site(tmp_path / "hdfs-site.xml", entries)
        argv = [sys.executable, "-c", WAITING, str(tmp_path), str(JARS)]
        with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
            try:
                assert client.stdout
                assert client.stdout.readline() == "asks\n"
                begun = time.monotonic()
                other.accept()[0].close()
                assert time.monotonic() - begun < 20
            finally:
                client.kill()
