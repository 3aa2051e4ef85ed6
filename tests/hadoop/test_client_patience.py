"""How long Hadoop's own client waits for a server that hangs, as its classes understand the configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def test_a_datanode_that_hangs_costs_seconds(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path), str(JARS)]

    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)

    assert json.loads(done.stdout) == [10_000, 10_000, True], done.stderr
