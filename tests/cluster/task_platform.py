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
from infosvc.wire.service_options import TIMEOUT_VARIABLE
from infosvc.wire.tasks import Task
from tests.cluster.site import ANSWER_SECONDS, wait_for_end
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

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which commands find the service as the user, with patience."""
        of_service = {"NODEWISE_URL": self.url, "NODEWISE_TOKEN_FILE": str(self.user_file)}
        return {**of_service, TIMEOUT_VARIABLE: str(ANSWER_SECONDS)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`nodewise task` as the user calls it."""
        command = [sys.executable, "-m", "nodewise", "--home", str(self.home), "task", *words]
        variables = os.environ | self.variables
        return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)

    def ended(self, task_id: str, seconds: float = 240) -> Task:
        """A task once it has ended."""
        return wait_for_end(self.user, task_id, seconds)

    def log(self, task_id: str, stream: str = "stdout") -> str:
        """All that a task has printed."""
        text, offset = "", 0
        while (piece := self.user.task_log(task_id, stream, offset=offset)).text:
            text, offset = text + piece.text, piece.next
        return text

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
            admin = InfoClient.from_token_file(found[1], home / "service" / "token", ANSWER_SECONDS)
            _, text = admin.create_token("maria", Role.USER)
            user_file = home / "maria.token"
            user_file.write_text(text)
            user = InfoClient(found[1], text, ANSWER_SECONDS)
            yield Platform(cluster, home, found[1], process, admin, user, user_file)
        finally:
            started = []
            with suppress(psutil.NoSuchProcess):
                started = psutil.Process(process.pid).children()
            process.terminate()
            _, alive = psutil.wait_procs(started, ANSWER_SECONDS)  # else one might hand a task over to the next module
            for one in alive:
                one.kill()
