"""Playbooks run on the lab's machines as an operator runs them, and what the cluster says of itself afterwards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lab
from lab.places import ANSIBLE, INVENTORY, PLAYBOOKS, SPARE

RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
NAMENODE, RESOURCEMANAGER = "http://master:9870", "http://master:8088"
# Run on the machine itself, so that nothing need be reachable from here.
GET = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


def lift_limits() -> None:
    """Let machines use every processor, as playbooks run on them again and again."""
    for machine in lab.machines():
        lab.limit(machine.name, os.cpu_count() or 1)


def play(
    playbook: str, *words: str, spare: bool = False, inventory: Path = INVENTORY
) -> subprocess.CompletedProcess[str]:
    """The playbook's run, whatever became of it. From then on machines may use every processor."""
    lift_limits()  # one that was switched on again, or is new, is held to its own
    inventories = ["-i", str(inventory), *(("-i", str(SPARE)) if spare else ())]
    argv = [str(ANSIBLE / "ansible-playbook"), *inventories, str(PLAYBOOKS / playbook), *words]
    settings = {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
    return subprocess.run(argv, capture_output=True, text=True, env=os.environ | settings, timeout=1800)


def changes(run: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How much the run changed on each machine; it must have gone well on all of them."""
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    found = RECAP.findall(run.stdout)
    assert found, run.stdout[-2000:]
    assert all(unreachable == failed == "0" for _, _, unreachable, failed in found)
    return {name: int(changed) for name, changed, _, _ in found if name != "localhost"}


def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait for a condition; a machine that does not answer yet does not hold it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except lab.LabError:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, f"{holds} does not hold after {seconds} s"
        time.sleep(1)


def ask(url: str) -> Any:
    """What a page of a daemon says, as JSON."""
    return json.loads(lab.run("master", ["python3", "-c", GET, url]))


def datanodes() -> set[str]:
    """Workers whose DataNodes hold and take blocks."""
    about = ask(f"{NAMENODE}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")["beans"]
    live = json.loads(about[0]["LiveNodes"]) if about else {}  # a NameNode that is starting says nothing of itself yet
    return {name.split(":")[0] for name, said in live.items() if said["adminState"] == "In Service"}


def nodemanagers() -> set[str]:
    """Workers whose NodeManagers take containers."""
    nodes = ask(f"{RESOURCEMANAGER}/ws/v1/cluster/nodes?states=RUNNING")["nodes"] or {}
    return {node["nodeHostName"] for node in nodes.get("node", [])}


def agents() -> dict[str, str]:
    """Every node that the information service knows, and its state."""
    return {node["node_name"]: node["state"] for node in json.loads(lab.nodewise("node", "list", "--json"))}


def everywhere(name: str) -> bool:
    """Whether HDFS, YARN and the information service all have the worker."""
    return name in datanodes() and name in nodemanagers() and agents().get(name) == "ready"


def nowhere(name: str) -> bool:
    """Whether none of them has it."""
    return name not in datanodes() and name not in nodemanagers() and name not in agents()


def fsck() -> str:
    """What HDFS finds of all its files, with their blocks and who holds them."""
    return lab.run(
        "master", ["sudo", "-u", "hdfs", "hdfs", "fsck", "/", "-files", "-blocks", "-locations"], timeout=120
    )


def pictures(count: int, hdfs: str) -> None:
    """Put pictures into a new folder of HDFS."""
    folder = lab.run("master", ["sudo", "-u", "nodewise", "mktemp", "-d"]).strip()
    lab.nodewise("images", "make", f"{folder}/pictures", "-n", str(count))
    lab.nodewise("images", "load", f"{folder}/pictures", f"hdfs://{hdfs}")
    lab.run("master", ["sudo", "rm", "-r", folder])


def results(output: str) -> list[dict[str, Any]]:
    """The rows of a job that has ended."""
    rows: list[dict[str, Any]] = json.loads(lab.nodewise("job", "result", f"hdfs://{output}", "--json"))
    return rows


def sweep(*folders: str) -> None:
    """Remove folders from HDFS, those too that are not there."""
    lab.run("master", ["sudo", "-u", "hdfs", "hdfs", "dfs", "-rm", "-r", "-f", "-skipTrash", *folders], timeout=120)


def ran(*words: str) -> tuple[str, str]:
    """What a task printed, and where it ran; it must have succeeded."""
    task = json.loads(lab.nodewise("task", "submit", "--memory", "128", "--json", *words))["task_id"]
    ended = json.loads(lab.nodewise("task", "wait", task, "--json"))
    assert ended["state"] == "succeeded", ended
    return lab.nodewise("task", "logs", task), ended["node_name"]
