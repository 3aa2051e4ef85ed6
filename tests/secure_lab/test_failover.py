"""A master that is lost: the other takes over HDFS and YARN, and what runs goes on."""

from __future__ import annotations

import json
import re

import pytest

import lab
from lab.places import SECURE
from tests.lab.playbooks import until
from tests.recipes.pages import block

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(3600)]

OF_MASTERS = ("hadoop-zookeeper", "hadoop-journalnode", "hadoop-namenode", "hadoop-zkfc", "hadoop-resourcemanager")
UNITS = {
    "master": OF_MASTERS,
    "second": OF_MASTERS,
    "worker1": ("hadoop-zookeeper", "hadoop-journalnode", "hadoop-datanode", "hadoop-nodemanager"),
    "worker2": ("hadoop-datanode", "hadoop-nodemanager"),
}
STATE = re.compile(r"^(\S+):\d+\s+(active|standby)", re.MULTILINE)
READ = 'java -cp "/opt/nodewise/hadoop/*" org.apache.zookeeper.ZooKeeperMain -server second:2181'


def on_master(text: str) -> str:
    """What commands print to the operator who logs in there."""
    return lab.run("master", ["bash", "-eo", "pipefail", "-c", text], 300)


def states() -> list[dict[str, str]]:
    """What each NameNode, and what each ResourceManager is, by the commands that the page shows."""
    return [dict(STATE.findall(on_master(f"{line} || true"))) for line in block("failover-state").splitlines()]


def holder(number: int) -> str | None:
    """Where the NameNode (0) or the ResourceManager (1) is active."""
    return next((host for host, state in states()[number].items() if state == "active"), None)


def both_stand() -> bool:
    return all(sorted(found.values()) == ["active", "standby"] for found in states())


def stored(words: str) -> None:
    """Put words into a file of HDFS."""
    on_master(f"echo {words} | sudo -u hdfs hdfs dfs -put -f - /tmp/words")


def read() -> str:
    return on_master("sudo -u hdfs hdfs dfs -cat /tmp/words").strip()


@pytest.mark.parametrize("name", UNITS)
def test_every_machine_runs_its_part(name: str) -> None:
    told = lab.run(name, ["sh", "-c", 'systemctl is-active "$@" || true', "-", *UNITS[name]]).split()

    assert told == ["active"] * len(UNITS[name])


def test_of_each_master_one_is_active_and_one_stands_by() -> None:
    until(both_stand, 120)
    assert [set(found) for found in states()] == [{"master", "second"}] * 2


def test_the_other_namenode_takes_over_when_a_machine_loses_its_power() -> None:
    if holder(0) == "master":
        on_master("sudo -u hdfs hdfs haadmin -failover nn1 nn2")
    until(lambda: holder(0) == "second", 60)
    stored("before")

    lab.kill("second")
    until(lambda: holder(0) == "master", 90)
    assert read() == "before"
    stored("after")
    lab.start("second")

    until(both_stand, 180)
    assert read() == "after"


def test_a_task_goes_on_when_its_resourcemanager_is_killed() -> None:
    task = json.loads(lab.nodewise("task", "submit", "--memory", "128", "--json", "--", "sleep", "60"))["task_id"]
    until(lambda: json.loads(lab.nodewise("task", "show", task, "--json"))["state"] == "running", 120)
    before = holder(1)
    assert before is not None

    lab.run(before, ["sudo", "systemctl", "kill", "--signal=KILL", "hadoop-resourcemanager"])
    until(lambda: holder(1) not in (None, before), 90)

    assert json.loads(lab.nodewise("task", "wait", task, "--json"))["state"] == "succeeded"
    until(both_stand, 120)


def test_what_yarn_keeps_in_zookeeper_nobody_else_reads() -> None:
    said = on_master(f"sudo -u nodewise {READ} get /rmstore/ZKRMStateRoot/AMRMTokenSecretManagerRoot 2>&1 || true")

    assert "Insufficient permission" in said or "NoAuth" in said


def test_what_the_page_says_of_the_inventory_is_what_the_lab_has() -> None:
    shown = [line.strip().split(":")[0] for line in block("failover-inventory").splitlines()]
    told = SECURE.read_text()

    assert shown[-1] == "hadoop_ha"
    assert "hadoop_ha: true" in told
    assert re.search(r"^master:\n  hosts:\n(    \w+:\n(      .*\n)+){2}", told, re.MULTILINE)
