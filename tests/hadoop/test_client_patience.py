"""How long Hadoop's own client waits for a server that hangs, as its classes understand the configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hadoop.client.jars import JARS

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


def said(folder: Path, program: str, **told: str) -> Any:
    """What a program prints, in a process of its own."""
    keys = "".join(f"<property><name>{name}</name><value>{text}</value></property>" for name, text in told.items())
    for name in ("core-site.xml", "yarn-site.xml"):  # whose defaults come after the first one
        (folder / name).write_text(f"<configuration>{keys}</configuration>")
    argv = [sys.executable, "-c", program, str(folder), str(JARS)]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_datanode_that_hangs_costs_seconds(tmp_path: Path) -> None:
    assert said(tmp_path, PROGRAM) == [10_000, 10_000, True]


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
    assert said(tmp_path, ANSWERS, **told) == milliseconds
