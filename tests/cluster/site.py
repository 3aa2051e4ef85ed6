"""Everything that a job needs, on the cluster of the tests: the service, agents on all nodes, images in HDFS."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from hdfs import InsecureClient

from bench.stage import PATIENT
from hadoop.local import site
from hadoop.local.lifecycle import Cluster
from hadoop.rest.pages import NoAnswer
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import TIMEOUT_VARIABLE
from infosvc.wire.tasks import Task
from tests.cluster import commands
from tests.cluster.small_network import small_network

KIND = "NODEWISE"
"""The type that YARN knows of all of them."""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PICTURES = 40
KEPT = ("decisions", "images", "records", "tasks")
"""What stays in an owner's folder of HDFS."""
ANSWER_SECONDS = 120.0
"""How long the service may take for an answer on a machine that pauses."""
BROKEN = {"zz_cut.jpg": "", "zz_text.jpg": "not an image"}


@dataclass(frozen=True)
class Site:
    """A cluster with its service, its agents and images in /data/images."""

    cluster: Cluster
    url: str
    token_file: Path

    def nodewise(self, *words: str) -> subprocess.CompletedProcess[str]:
        return nodewise(self.cluster.home, *words, url=self.url)

    def submit(self, output: str, *words: str, capability: str = "perf_even") -> subprocess.CompletedProcess[str]:
        """A job with a small network, unless an engine is named."""
        given = ("--input", "hdfs:///data/images", "--capability", capability, "--output", output, "--batch", "8")
        wait = ("--capability-wait", "120")
        network = () if "--engine" in words else small_network(self.cluster.home)
        return self.nodewise("job", "submit", *given, *wait, *network, *words, "--wait", "--json")

    def client(self) -> InfoClient:
        return InfoClient.from_token_file(self.url, self.token_file, ANSWER_SECONDS)

    def hdfs(self) -> InsecureClient:
        return InsecureClient(self.cluster.namenode_http, user=self.cluster.user)

    def fresh_on(self, data_name: str) -> set[str]:
        """The nodes that have a fresh value."""
        return {datum.node_name for datum in self.client().data(data_name) if datum.state == "fresh"}


def job_files(cluster: Cluster) -> set[str]:
    """What the user's folder of jobs holds beside what stays there: folders of jobs that run, or were left."""
    hdfs, folder = InsecureClient(cluster.namenode_http, user=cluster.user), f"/user/{cluster.user}/.nodewise"
    return set(hdfs.list(folder)) - set(KEPT) if hdfs.status(folder, strict=False) else set()


def applications(cluster: Cluster) -> list[dict[str, Any]]:
    """The jobs that YARN remembers as it tells them, the newest last; the command would start a JVM for that."""
    found = ResourceManager(cluster.rm_http, cluster.user, PATIENT).applications(KIND)
    return sorted(found, key=lambda one: float(one["startedTime"]))


def nodewise(home: Path, *words: str, url: str = "http://127.0.0.1:1") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, TIMEOUT_VARIABLE: str(ANSWER_SECONDS), "NODEWISE_URL": url}
    environment.pop("HADOOP_CONF_DIR", None)
    return commands.run(home, words, environment)


def find_processes(job_id: str, word: str) -> list[int]:
    """Those of a job on this machine that have a word on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words, where = (folder / "cmdline").read_bytes().split(b"\0"), str((folder / "cwd").readlink())
        except OSError:
            continue
        if word.encode() in words and job_id in where:
            found.append(int(folder.name))
    return found


def until(condition: Callable[[], Any], seconds: float = 240) -> Any:
    """What a condition gives once it holds; a daemon that is silent for now is asked again."""
    begun = time.monotonic()
    while True:
        with suppress(NoAnswer, URLError, ConnectionError, TimeoutError):
            if found := condition():
                return found
        waited = time.monotonic() - begun
        assert waited < seconds, "the condition did not come true in time"
        time.sleep(pause_after(waited))


def pause_after(waited: float) -> float:
    """Seconds until one looks again: what takes long is looked at more seldom, as each look takes time from it."""
    return min(max(0.1, waited / 20), 0.4)


def wait_for_end(client: InfoClient, task_id: str, seconds: float = 240) -> Task:
    """A task once it has ended."""

    def look() -> Task | None:
        task = client.task(task_id)
        return task if task.state.is_final else None

    found: Task = until(look, seconds)
    return found


def succeed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def told_by_master(status: subprocess.CompletedProcess[str]) -> dict[str, Any] | None:
    """What `job status` tells; None where the application master has not answered it in time."""
    told: dict[str, Any] = json.loads(succeed(status))
    return told if told["status"] else None


def give_containers(patch: pytest.MonkeyPatch, variable: str) -> None:
    """Have containers of clusters that are made from now on see one more variable (NAME=VALUE)."""
    usual = site.node_values

    def with_variable(cluster: Cluster, node: str) -> dict[str, object]:
        found = usual(cluster, node)
        return found | {"hadoop_container_env": f"{found['hadoop_container_env']},{variable}"}

    patch.setattr(site, "node_values", with_variable)


def add_properties(file: Path, entries: Mapping[str, str]) -> None:
    """To a site file of Hadoop; who is to go by them is started anew."""
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in entries.items()]
    file.write_text(file.read_text().replace("</configuration>", "\n".join([*lines, "</configuration>"])))
