"""Jobs on the nodes with a label of YARN's or with another type of resource, and jobs without, which leave them.

A label holds for the masters of jobs, too. Each kind of job is given what was ordered for it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bench.distributed_shell import SHORT_LIFE
from bench.stage import CAPABILITY, Stage, on_cluster, restart
from hadoop.local import ports
from hadoop.local.lifecycle import Cluster
from hadoop.local.site import NODE_MEMORY_MB, NODE_VCORES
from hadoop.rest.pages import NotKnown, Pages
from hadoop.rest.resourcemanager import ResourceManager
from tests.cluster.site import add_properties, nodewise, succeed, until
from tests.cluster.small_network import small_network
from tests.cluster.standing import Standing
from tests.recipes.checkout import Checkout
from tests.recipes.pages import block
from tests.recipes.shell import changed

LABEL = "quick"
WIDGET = "example.org/widget"
RESOURCES = (
    f"<configuration><property><name>yarn.resource-types</name><value>{WIDGET}</value></property></configuration>"
)
PICTURES = 8
ENABLED = {"yarn.node-labels.enabled": "true"}
QUEUES = {
    f"yarn.scheduler.capacity.root.accessible-node-labels.{LABEL}.capacity": "100",
    f"yarn.scheduler.capacity.root.default.accessible-node-labels.{LABEL}.capacity": "100",
}
ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"


@pytest.fixture(scope="module")
def special(standing: Standing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes have a label, and serve only those who ask for it; they have two widgets each."""
    standing.end_site()
    cluster = standing.cluster()
    standing.note_changed("resourcemanager")
    types = cluster.conf_dir / "resource-types.xml"
    try:
        types.write_text(RESOURCES)
        _bring_in(cluster, tmp_path_factory.mktemp("labels"))
        yield cluster
    finally:
        types.unlink(missing_ok=True)


def _bring_in(cluster: Cluster, labels: Path) -> None:
    """Start the ResourceManager with labels and widgets, and give them to two nodes."""
    store = {"yarn.node-labels.fs-store.root-dir": labels.as_uri()}
    add_properties(cluster.conf_dir / "yarn-site.xml", ENABLED | store)
    add_properties(cluster.conf_dir / "capacity-scheduler.xml", QUEUES)
    restart(cluster, "resourcemanager")
    administer(cluster, "-addToClusterNodeLabels", LABEL)
    administer(cluster, "-replaceLabelsOnNode", " ".join(f"{node}={LABEL}" for node in cluster.nodes[2:]))
    for node in cluster.nodes[2:]:
        has = f"memory-mb={NODE_MEMORY_MB}Mi,vcores={NODE_VCORES},{WIDGET}=2"
        administer(cluster, "-updateNodeResource", f"{node}:{ports.NODEMANAGER}", has)


@pytest.fixture(scope="module")
def stage(special: Cluster) -> Iterator[Stage]:
    """The same with a service and images."""
    with on_cluster(special, PICTURES) as stage:
        stage.judge([1.0] * 4)
        yield stage


def administer(cluster: Cluster, *words: str) -> None:
    java = cluster.java_home / "bin" / "java"
    line = [str(java), *SHORT_LIFE, "-cp", f"{cluster.conf_dir}:{cluster.jars}/*", ADMIN, *words]
    environment = {"HADOOP_USER_NAME": cluster.user}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=400)
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
    assert "3 copies need 3 nodes, and only 2 accept work" in too_many.stderr


def test_copies_get_the_resource_and_the_priority_that_were_asked_for(special: Cluster) -> None:
    wanted = ["--node-label", LABEL, "--copies", "2", "--resource", f"{WIDGET}=2", "--priority", "7"]
    run = nodewise(special.home, "job", "run", *wanted, "--memory", "256", "--json", "--", "sleep", "600")
    job_id = json.loads(succeed(run))["job_id"]

    try:
        found = until(lambda: containers_with_widgets(special, job_id, 2))
    finally:
        nodewise(special.home, "job", "kill", job_id)

    assert {one["nodeId"].partition(":")[0] for one in found} == set(special.nodes[2:])
    assert [(widgets_in(one["allocatedResources"]), int(one["priority"])) for one in found] == [(2, 7)] * 2


def test_workers_that_classify_get_the_resource(stage: Stage) -> None:
    asked = ("--input", "/bench/pictures", "--output", "/bench/out/widgets", "--capability", CAPABILITY, "--batch", "8")
    how = (*small_network(stage.cluster.home), "--node-label", LABEL, "--resource", f"{WIDGET}=1", "--wait", "--json")

    report = json.loads(stage.nodewise("job", "submit", *asked, *how))

    assert report["images"] == PICTURES
    assert {node["node_name"] for node in report["nodes"] if node["images"]} <= set(stage.cluster.nodes[2:])
    until(lambda: widget_seconds(stage.cluster, report["job_id"]))  # YARN counts what still runs every 3 s


@pytest.mark.usefixtures("only_when_long")
def test_a_pool_has_workers_on_the_nodes_with_its_label_alone(stage: Stage) -> None:
    labelled = set(stage.cluster.nodes[2:])
    words = (*small_network(stage.cluster.home), "--node-label", LABEL, "--resource", f"{WIDGET}=1", "--idle", "0")
    up = json.loads(stage.nodewise("pool", "up", "quick", *words, "--wait", "--json"))
    try:
        until(lambda: containers_with_widgets(stage.cluster, up["job_id"], 2))
        asked = ("--input", "/bench/pictures", "--output", "/bench/out/labelled", "--capability", CAPABILITY)
        report = json.loads(stage.nodewise("job", "submit", "--pool", "quick", *asked, "--wait", "--json"))
        shown = until(lambda: json.loads(stage.nodewise("pool", "show", "quick", "--json"))["nodes"])
    finally:
        stage.nodewise("pool", "down", "quick", "--now")

    assert set(up["ready"]) <= labelled
    assert {one["node_name"] for one in shown} == labelled
    assert report["images"] == PICTURES
    assert {node["node_name"] for node in report["nodes"] if node["images"]} <= labelled
    manager = ResourceManager(stage.cluster.rm_http)
    until(lambda: not manager.is_running(up["job_id"]))


def test_a_runner_s_own_container_has_resource_label_host_and_files(special: Cluster, tmp_path: Path) -> None:
    checkout, host = Checkout(tmp_path / "checkout"), special.nodes[3]
    kind = changed(block("kind"), ('attempt.spec.settings["of"]', 'int(open("of.txt").read())'))
    checkout.write("jobs/kinds/count/__init__.py", "")
    checkout.write("jobs/kinds/count/runner.py", kind)
    checkout.add_line("jobs/kinds/__init__.py", block("kind-line"), below="KINDS: Mapping[str, str] = {")
    (tmp_path / "of.txt").write_text("4")
    given = f'options=JobOptions(node_label="{LABEL}"), uploads={{"of.txt": Path("{tmp_path}/of.txt")}}'
    script = changed(
        block("kind-submit"),
        ("hosts=[host]", f'hosts=[host], resources={{"{WIDGET}": 2}}, has_uploads=True'),
        ('{"of": 5}, needs_service=False', f"{{}}, {given}, needs_service=False"),
    )
    (tmp_path / "submit.py").write_text(f"from jobs.application.job_spec import JobOptions\n{script}")

    shell = checkout.shell(tmp_path / "home")
    words = f"python {tmp_path}/submit.py {special.conf_dir} {special.jars} {special.user} {host}"
    said = shell.run(words, timeout=600)

    found = json.loads(said.splitlines()[-1])
    assert found["said"] == f"counted to 4 on {host}"
    until(lambda: widget_seconds(special, found["job_id"]))


def containers_with_widgets(cluster: Cluster, job_id: str, count: int) -> list[dict[str, Any]]:
    """The containers of a running job that YARN has given any; none before there are as many as that."""
    pages = Pages("ResourceManager", cluster.rm_http)
    attempt = job_id.replace("application", "appattempt") + "_000001"
    where = f"/ws/v1/cluster/apps/{job_id}/appattempts/{attempt}/containers"
    with suppress(NotKnown):
        answer = pages.read_json(where, "the containers")
        found = [one for one in answer.get("container") or () if widgets_in(one["allocatedResources"])]
        return found if len(found) == count else []
    return []


def widgets_in(counted: dict[str, Any]) -> int:
    """Of what YARN counts by type of resource."""
    return next((int(one["value"]) for one in counted["entry"] if one["key"] == WIDGET), 0)


def widget_seconds(cluster: Cluster, job_id: str) -> int:
    """How many a job has had, times the seconds for which it has had them."""
    return widgets_in(ResourceManager(cluster.rm_http).application(job_id)["resourceSecondsMap"])
