"""A service with its submitter on a real cluster, as users of tasks have it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.stage import PATIENT
from hadoop.local.lifecycle import Cluster
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from infosvc.wire.tasks import Task
from tests.cluster.site import until
from tests.recipes.pages import block

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Platform:
    """A service with its submitter; `home` holds its tokens and database."""

    cluster: Cluster
    home: Path
    url: str
    process: subprocess.Popen[str]
    admin: InfoClient
    user: InfoClient
    user_file: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`nodewise task` as the user calls it."""
        given = ["--url", self.url, "--token-file", str(self.user_file)]
        command = [sys.executable, "-m", "nodewise", "--home", str(self.home), "task", words[0], *given, *words[1:]]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    def ended(self, task_id: str, seconds: float = 240) -> Task:
        """A task once it has ended."""

        def look() -> Task | None:
            task = self.user.task(task_id)
            return task if task.state.is_final else None

        found: Task = until(look, seconds)
        return found

    def submitter(self) -> psutil.Process | None:
        """The process that hands tasks over, None while there is none."""
        for one in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):  # it ends just now
                if "jobs.commands.submitter" in one.cmdline():
                    return one
        return None

    def applications(self, task_id: str) -> list[dict[str, Any]]:
        """Those of YARN that carry the task's id."""
        manager = ResourceManager(self.cluster.rm_http, self.cluster.user, PATIENT)
        found = manager.applications("NODEWISE")
        return [one for one in found if f"task:{task_id}" in one.get("applicationTags", "").split(",")]


@contextmanager
def platform_of(cluster: Cluster, home: Path) -> Iterator[Platform]:
    """Until the block ends; `home` is a new folder."""
    environment = {
        **os.environ,
        "HADOOP_CONF_DIR": str(cluster.home / "cluster" / "conf"),
        "HADOOP_USER_NAME": cluster.user,
        "PYTHONPATH": str(ROOT),
    }
    _, serve = block("task-serve").splitlines()
    assert serve.startswith("nodewise serve ")
    words = [sys.executable, "-m", "nodewise", "--home", str(home), *serve.split()[1:], "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"listening on (\S+),", process.stdout.readline())
            assert found
            admin = InfoClient.from_token_file(found[1], home / "service" / "token")
            _, text = admin.create_token("maria", Role.USER)
            user_file = home / "maria.token"
            user_file.write_text(text)
            yield Platform(cluster, home, found[1], process, admin, InfoClient(found[1], text), user_file)
        finally:
            process.terminate()
