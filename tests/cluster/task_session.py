"""A session that submits tasks straight to YARN, without the service."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hdfs import HdfsError, InsecureClient

from hadoop.local.lifecycle import Cluster

ROOT = Path(__file__).resolve().parents[2]


class Tasks:
    """A session that submits tasks."""

    def __init__(self, cluster: Cluster, process: subprocess.Popen[str]) -> None:
        self.cluster = cluster
        self.hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
        self._process = process

    def ask(self, what: str, *words: Any) -> Any:
        """AssertionError with the sentence when it is refused."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps([what, *words]) + "\n")
        self._process.stdin.flush()
        said, result = json.loads(self._process.stdout.readline())
        assert said == "ok", result
        return result

    def submit(
        self, *argv: str, archive: Path | None = None, prefers: Collection[str] = (), **spec: Any
    ) -> tuple[str, str]:
        """The task's id and the application's."""
        task_id = f"task_{secrets.token_hex(8)}"
        given = {"argv": argv, "memory_mb": 64, **spec}
        return task_id, self.ask("submit", given, task_id, archive and str(archive), list(prefers))

    def run(self, *argv: str, **spec: Any) -> dict[str, Any]:
        """What has become of a task."""
        found: dict[str, Any] = self.ask("wait", self.submit(*argv, **spec)[1])
        return found

    def run_preferring(self, node: str) -> dict[str, Any]:
        """What has become of a task that prefers a node, and has run there if YARN could give it that.

        YARN takes another after one look at each: on a busy machine the node may miss its turn, and then has two more.
        """
        for _ in range(3):
            ended = self.run("true", prefers=[node])
            if node_of(ended) == node:
                break
        return ended

    def log(self, task_id: str, stream: str) -> bytes:
        """What HDFS has of a stream, such as stdout.1; nothing when it is not there."""
        try:
            with self.hdfs.read(f"/user/{self.cluster.user}/.nodewise/tasks/{task_id}/{stream}") as reader:
                content: bytes = reader.read()
                return content
        except HdfsError:
            return b""


def node_of(ended: Mapping[str, Any]) -> str:
    """Where a task has run."""
    name: str = ended["record"]["nodes"][0]["node_name"]
    return name


@contextmanager
def session_of(cluster: Cluster) -> Iterator[Tasks]:
    """The session, which ends with the block."""
    words = [sys.executable, "-m", "tests.cluster.task_submitter", str(cluster.conf_dir), str(cluster.jars)]
    with subprocess.Popen(
        [*words, cluster.user], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Tasks(cluster, process)
        finally:
            process.kill()
