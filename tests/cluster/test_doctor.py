"""What `nodewise doctor` says of a real cluster, while it runs and when it was stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hadoop.local import state
from hadoop.local.lifecycle import Cluster
from tests.cluster.site import until

KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("NODEWISE_", "HADOOP_"))}
KEPT["NODEWISE_URL"] = "http://127.0.0.1:1"  # at the usual address a service of other tests may answer


def doctor(home: Path, **environment: str) -> dict[str, Any]:
    """The findings by name."""
    done = subprocess.run(
        [sys.executable, "-m", "nodewise", "--home", str(home), "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        env=KEPT | environment,
        check=False,
    )
    assert done.stderr == ""
    return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


def well(home: Path, *names: str, **environment: str) -> dict[str, Any]:
    """The findings by name, once these are well: whoever has no time to answer is not, for that moment."""

    def look() -> dict[str, Any] | None:
        found = doctor(home, **environment)
        others = [found[name] for name in names if found[name]["state"] != "ok"]
        print(*others)  # for whoever reads why a test has failed
        return None if others else found

    found: dict[str, Any] = until(look)
    return found


def test_a_cluster_that_works_is_well(cluster: Cluster) -> None:
    found = well(cluster.home, "hdfs", "yarn", "hadoop version", "cluster ports", "clock", "java", "jars")
    assert found["hdfs"]["what"] == f"live DataNodes: {cluster.size} ({cluster.namenode_http})"
    assert found["yarn"]["what"] == f"RUNNING nodes: {cluster.size}; stock order ({cluster.rm_http})"
    assert found["clock"]["what"] == "within 5 s of NameNode, ResourceManager"


def test_its_site_files_are_enough_for_another_home(cluster: Cluster, tmp_path: Path) -> None:
    found = well(tmp_path / "home", "hdfs", "yarn", HADOOP_CONF_DIR=str(cluster.conf_dir))
    assert found["cluster ports"]["state"] == "skipped"


def test_a_cluster_that_was_stopped_is_told_from_one_that_failed(cluster: Cluster, tmp_path: Path) -> None:
    stopped = Cluster(tmp_path, "127.0.253", 1, cluster.user, cluster.jars, cluster.java)
    stopped.state.mkdir()
    state.save(stopped)
    found = doctor(tmp_path)
    assert (found["hdfs"]["state"], found["hdfs"]["what"]) == ("warn", "the cluster is stopped")
    assert found["cluster ports"]["what"] == "free for the 5 daemons of the cluster on 127.0.253.*"
