"""Jobs that run on the nodes with a label of YARN's, their masters too, and jobs without a label, which leave them."""

from __future__ import annotations

import json
import subprocess

import pytest

from bench.stage import restart
from hadoop.local.lifecycle import Cluster
from tests.cluster.site import add_properties, nodewise, succeed
from tests.cluster.standing import Standing

LABEL = "quick"
ENABLED = {"yarn.node-labels.enabled": "true"}
QUEUES = {
    f"yarn.scheduler.capacity.root.accessible-node-labels.{LABEL}.capacity": "100",
    f"yarn.scheduler.capacity.root.default.accessible-node-labels.{LABEL}.capacity": "100",
}
ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"


@pytest.fixture(scope="module")
def special(standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Two nodes have a label, and serve only those who ask for it."""
    standing.end_site()
    cluster = standing.cluster()
    standing.note_changed("resourcemanager")
    store = {"yarn.node-labels.fs-store.root-dir": tmp_path_factory.mktemp("labels").as_uri()}
    add_properties(cluster.conf_dir / "yarn-site.xml", ENABLED | store)
    add_properties(cluster.conf_dir / "capacity-scheduler.xml", QUEUES)
    restart(cluster, "resourcemanager")
    administer(cluster, "-addToClusterNodeLabels", LABEL)
    administer(cluster, "-replaceLabelsOnNode", " ".join(f"{node}={LABEL}" for node in cluster.nodes[2:]))
    return cluster


def administer(cluster: Cluster, *words: str) -> None:
    java = cluster.java_home / "bin" / "java"
    line = [str(java), "-cp", f"{cluster.conf_dir}:{cluster.jars}/*", ADMIN, *words]
    environment = {"HADOOP_USER_NAME": cluster.user}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr


def nodes_of_job(cluster: Cluster, *words: str) -> dict[str, set[str]]:
    """By role, the nodes on which a job's containers printed something."""
    run = ["job", "run", *words, "--memory", "256", "--wait", "--json", "--", "echo", "here"]
    job_id = json.loads(succeed(nodewise(cluster.home, *run)))["job_id"]
    found: dict[str, set[str]] = {}
    for line in succeed(nodewise(cluster.home, "job", "logs", job_id, "--json")).splitlines():
        one = json.loads(line)
        found.setdefault(one["role"], set()).add(one["node_name"])
    return found


def test_all_containers_of_a_job_run_on_nodes_with_its_label(special: Cluster) -> None:
    found = nodes_of_job(special, "--node-label", LABEL, "--copies", "2")

    assert found["copy"] == set(special.nodes[2:])
    assert all(nodes <= set(special.nodes[2:]) for nodes in found.values())


def test_a_job_without_a_label_leaves_those_nodes_alone(special: Cluster) -> None:
    assert nodes_of_job(special, "--copies", "2")["copy"] == set(special.nodes[:2])


def test_a_label_that_is_not_there_and_too_few_nodes_are_refused(special: Cluster) -> None:
    unknown = nodewise(special.home, "job", "run", "--node-label", "slow", "--", "true")
    too_many = nodewise(special.home, "job", "run", "--node-label", LABEL, "--copies", "3", "--", "true")

    assert f"this cluster has no label slow: it has {LABEL}" in unknown.stderr
    assert "3 copies need as many nodes, and 2 take work" in too_many.stderr
