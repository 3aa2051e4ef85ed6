"""The cluster, its clients and the plug-in on other versions of Hadoop, whose jars `nodewise setup hadoop` fetches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.stage import CAPABILITY, PATIENT, judge
from hadoop.client import class_archives
from hadoop.client.jars import JARS
from hadoop.local import daemons
from hadoop.rest.pages import Pages
from infosvc.wire.records import Kind, Producer
from tests.cluster.placing import Placing, placing_on
from tests.cluster.site import Site, nodewise, succeed
from tests.cluster.small_network import small_network
from tests.cluster.task_session import node_of, session_of
from tests.recipes.pages import block

PICTURES = 8


@pytest.fixture(scope="module", params=["3.3.6", "3.4.2"])
def version(request: pytest.FixtureRequest) -> str:
    if not request.config.getoption("--long"):
        pytest.skip("it fetches 100 MB and starts a cluster: --long")
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def placing(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placing]:
    """By the lines of the page, with two nodes and the plug-in."""
    home, folder = tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("hadoop")
    lines = block("other-hadoop").replace("3.4.2", version).replace("~", str(folder)).splitlines()
    fetch, start = (line.partition("#")[0].split()[1:] for line in lines)
    jars = Path(start[-1])
    assert succeed(nodewise(home, *fetch)).endswith("done\n")
    assert succeed(nodewise(home, *fetch)) == f"{jars} is there already\n"
    assert start[:-1] == ["cluster", "up", "--jars"]
    with placing_on(home, 2, jars) as made:
        yield made


def test_all_daemons_and_clients_are_of_that_version(placing: Placing, version: str) -> None:
    cluster = placing.cluster
    for daemon, process in daemons.find_running(cluster).items():
        words = " ".join(process.cmdline())
        assert daemon.kind == "sshd" or (f"{cluster.jars}/*" in words and str(JARS) not in words)
    yarn = Pages("ResourceManager", cluster.rm_http, PATIENT)
    assert yarn.read_json("/ws/v1/cluster/info", "its version")["clusterInfo"]["hadoopVersion"] == version
    nodes = yarn.read_json("/ws/v1/cluster/nodes", "the nodes")["nodes"]["node"]
    assert [node["version"] for node in nodes] == [version, version]

    url = f"http://{cluster.master}:8400"
    findings = json.loads(nodewise(cluster.home, "doctor", "--json", url=url).stdout)["findings"]
    said = {one["name"]: (one["state"], one["what"]) for one in findings}
    assert said["jars"] == ("ok", f"Hadoop {version} ({cluster.jars})")
    assert said["hadoop version"][0] == "ok"
    assert list((cluster.jars.parent / class_archives.FOLDER).glob("namenode-*.jsa")), "of these jars alone"


def test_a_job_over_images_a_program_and_a_task_run_there(placing: Placing) -> None:
    cluster = placing.cluster
    site = Site(cluster, f"http://{cluster.master}:8400", cluster.home / "service" / "token")
    judge(placing.client, cluster.nodes, (1.0, 2.0))
    pictures = cluster.home / "pictures"
    succeed(site.nodewise("images", "make", str(pictures), "-n", str(PICTURES)))
    succeed(site.nodewise("images", "load", str(pictures), "hdfs:///pictures", "--json"))
    where = ("--input", "hdfs:///pictures", "--output", "hdfs:///out", "--capability", CAPABILITY)
    job = site.nodewise("job", "submit", *where, *small_network(cluster.home), "--wait", "--json")
    report = json.loads(succeed(job))
    assert (report["images"], report["errors"]) == (PICTURES, 0)

    succeed(site.nodewise("job", "run", "--memory", "64", "--wait", "true"))
    with session_of(cluster) as tasks:
        assert node_of(tasks.run("true")) in cluster.nodes


def test_the_plug_in_orders_nodes_by_measured_values(placing: Placing) -> None:
    first, second = placing.cluster.nodes
    with session_of(placing.cluster) as tasks:
        for best in 2 * (first, second):
            placing.settle(*(0.9 if node == best else 0.1 for node in (first, second)))
            assert node_of(tasks.run("true")) == best


def test_a_program_has_an_order_of_its_own_from_3_4_on(placing: Placing, version: str) -> None:
    first, second = placing.cluster.nodes
    placing.client.put_producer(Producer("speed:up", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for node, value in zip((first, second), (0.1, 0.9), strict=True):
        placing.client.put_value("speed:up", node, value)
    placing.settle(0.9, 0.1)

    words = ("job", "run", "--program", "up", "--memory", "64", "--wait", "--json", "true")
    said = json.loads(succeed(nodewise(placing.cluster.home, *words)))
    (job,) = [one for one in placing.applications() if one["id"] == said["job_id"]]
    assert "program:up" in job["applicationTags"]
    assert job["amHostHttpAddress"].split(":")[0] == (first if version.startswith("3.3.") else second)
