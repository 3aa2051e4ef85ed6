"""MapReduce beside us, on a cluster of this machine: rows are made, sorted and checked as docs/operate.md says.

The commands `hadoop` and `yarn` of a distribution are Java with the cluster's jars here.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hadoop.local import daemons
from hadoop.local.daemons import Daemon
from infosvc.wire.records import Kind, Producer
from tests.cluster.placing import Placing, placing_on
from tests.cluster.site import add_properties, nodewise, succeed, until
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed

EXAMPLES = "org.apache.hadoop:hadoop-mapreduce-examples:3.4.2"
"""Not every registry has those of each release; these run on later ones."""
HEAP = "-Xmx200m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    "yarn.app.mapreduce.am.resource.mb": "640",
    "yarn.app.mapreduce.am.command-opts": HEAP.replace("200", "300"),
    "mapreduce.map.memory.mb": "512",
    "mapreduce.map.java.opts": HEAP,
    "mapreduce.reduce.memory.mb": "512",
    "mapreduce.reduce.java.opts": HEAP,
    "mapreduce.task.io.sort.mb": "16",
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
}
CONTAINERS = 1 + 2 + 1
"""Of the job that sorts: its master, a mapper for each of two files, a reducer; one that fails is started again."""
JAVA = f"exec java {HEAP} -cp '{{conf}}:{{jars}}/*'"
CLIENTS = {
    "hadoop": 'shift\n{java} org.apache.hadoop.util.RunJar "$@"',
    "yarn": 'case $1 in\nlogs) shift; {java} org.apache.hadoop.yarn.client.cli.LogsCLI "$@" ;;\n'
    '*) {java} org.apache.hadoop.yarn.client.cli.ApplicationCLI "$@" ;;\nesac',
}


@pytest.fixture(scope="module")
def placing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placing]:
    with placing_on(tmp_path_factory.mktemp("mapreduce"), nodes=2, mapreduce=True) as made:
        yield made


@pytest.fixture(scope="module")
def shell(placing: Placing, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A reader's, whose Hadoop is a distribution with its examples; MapReduce is told to take little memory."""
    home, cluster = tmp_path_factory.mktemp("reader"), placing.cluster
    add_properties(cluster.conf_dir / "mapred-site.xml", SETTINGS)
    folder = home / "share" / "hadoop" / "mapreduce"
    copy = ("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={EXAMPLES}", f"-DoutputDirectory={folder}")
    subprocess.run(copy, cwd=home, check=True, timeout=280)
    made = Shell(home, home / "work", {"HADOOP_CONF_DIR": str(cluster.conf_dir), "HADOOP_HOME": str(home)})
    for name, text in CLIENTS.items():
        made.program(name, text.format(java=JAVA.format(conf=cluster.conf_dir, jars=cluster.jars)))
    return made


def collected(shell: Shell, command: str) -> str:
    """What is said of collected logs, nothing before there are some, which is so for some seconds after the end."""
    with suppress(AssertionError):
        return shell.run(command)
    return ""


def find_containers(shell: Shell) -> dict[str, str] | None:
    """The nodes of the containers that have sorted, by their numbers, once all logs are in HDFS."""
    found = dict(re.findall(r"Container: \S+_(\d+) on (.+)_", collected(shell, block("mapreduce-where"))))
    return found if len(found) >= CONTAINERS else None


@pytest.mark.timeout(900)
def test_rows_are_sorted_beginning_on_the_best_node_and_the_page_s_commands_say_where(
    placing: Placing, shell: Shell
) -> None:
    first, second = placing.cluster.nodes
    placing.client.put_producer(Producer("speed:sort", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for node, value in ((first, 0.1), (second, 0.9)):
        placing.client.put_value("speed:sort", node, value)

    shell.run(changed(block("mapreduce"), ("1000000", "20000")), timeout=800)
    found = until(lambda: find_containers(shell))

    jobs = {one["name"]: one for one in placing.applications()}
    assert {one["finalStatus"] for one in jobs.values()} == {"SUCCEEDED"} and {"TeraGen", "TeraSort"} <= jobs.keys()
    assert {one["amHostHttpAddress"].split(":")[0] for one in jobs.values()} == {second}
    assert found["000001"] == second and set(found.values()) <= {first, second}


def test_logs_are_there_when_their_node_is_gone(placing: Placing, shell: Shell) -> None:
    _, second = placing.cluster.nodes
    words = ("job", "run", "--copies", "2", "--memory", "64", "--wait", "--json", "--", "echo", "a word")
    of_ours = json.loads(succeed(nodewise(placing.cluster.home, *words)))["job_id"]
    until(lambda: collected(shell, f"yarn logs -applicationId {of_ours} -log_files stdout").count("a word") == 2)
    node = Daemon(placing.cluster, "nodemanager", second)
    daemons.find_running(placing.cluster)[node].kill()
    until(lambda: node not in daemons.find_running(placing.cluster))
    (job,) = (one["id"] for one in placing.applications() if one["name"] == "TeraSort")

    said = shell.run(f"yarn logs -applicationId {job} -log_files syslog")

    masters = re.findall(rf"Container: \S+_000001 on {second}", said)
    assert len(masters) == 1 and "History" in said
    assert f"{second} copy | a word" in succeed(nodewise(placing.cluster.home, "job", "logs", of_ours))
