"""A task on a real cluster whose service is killed in its middle, with a second service that takes over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from hadoop.local.lifecycle import Cluster
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskLogPiece, TaskState
from tests.cluster.site import ANSWER_SECONDS, until
from tests.cluster.task_platform import ROOT, Platform
from tests.infosvc.conftest import MariaDB
from tests.ports import free_port

LINES = 150
PROGRAM = f"""import time
for number in range({LINES}):
    print(number, flush=True)
    time.sleep(0.2)
"""


class Where(NamedTuple):
    """One of the two: its home, its port, and the address of the other one."""

    home: Path
    port: int
    other: str


@contextmanager
def _serving(cluster: Cluster, database: str, where: Where) -> Iterator[subprocess.Popen[str]]:
    """A service of the pair with its submitter, which listens."""
    environment = os.environ | {
        "HADOOP_CONF_DIR": str(cluster.home / "cluster" / "conf"),
        "HADOOP_USER_NAME": cluster.user,
        "PYTHONPATH": str(ROOT),
    }
    words = [
        sys.executable,
        "-m",
        "nodewise",
        "--home",
        str(where.home),
        "serve",
        "--submit",
        "--port",
        str(where.port),
    ]
    words += ["--database", database, "--shared-with", where.other]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert f"http://127.0.0.1:{where.port}" in process.stdout.readline()
            yield process
        finally:
            started = psutil.Process(process.pid).children() if process.poll() is None else []
            process.terminate()
            _, alive = psutil.wait_procs(started, ANSWER_SECONDS)  # else one might hand a task over to the next module
            for one in alive:
                one.kill()


def _printed(user: InfoClient, task_id: str) -> TaskLogPiece | None:
    """What a task has printed, None while that is nothing."""
    with suppress(NotFound):
        piece = user.task_log(task_id)
        return piece if piece.text else None
    return None


def test_a_task_and_its_log_go_on_when_the_service_is_killed(
    cluster: Cluster, mariadb: MariaDB, tmp_path: Path
) -> None:
    database, ports = mariadb.new_database(), (free_port(), free_port())
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    first, second = Where(tmp_path / "first", ports[0], urls[1]), Where(tmp_path / "second", ports[1], urls[0])
    with ExitStack() as held:
        active = held.enter_context(_serving(cluster, database, first))
        for name in ("token", "audit.key"):
            (second.home / "service").mkdir(parents=True, mode=0o700, exist_ok=True)
            shutil.copy2(first.home / "service" / name, second.home / "service" / name)
        held.enter_context(_serving(cluster, database, second))
        both = ",".join(urls)
        admin = InfoClient.from_token_file(both, first.home / "service" / "token", ANSWER_SECONDS)
        _, token = admin.create_token("maria", Role.USER)
        user = InfoClient(both, token, ANSWER_SECONDS)
        platform = Platform(cluster, first.home, both, active, admin, user, first.home / "maria.token")
        task = user.submit_task(TaskSpec([sys.executable, "-c", PROGRAM]))
        until(lambda: user.task(task.task_id).state is TaskState.RUNNING)
        piece: TaskLogPiece = until(lambda: _printed(user, task.task_id))

        active.kill()

        done: Task = platform.ended(task.task_id)
        assert (done.state, done.exit_code) == (TaskState.SUCCEEDED, 0)
        rest, offset = "", piece.next
        while (more := user.task_log(task.task_id, "stdout", offset=offset)).text:
            rest, offset = rest + more.text, more.next
        assert (piece.text + rest).split() == [str(number) for number in range(LINES)]
        assert len(platform.applications(task.task_id)) == 1
        again = user.submit_task(TaskSpec([sys.executable, "-c", "print('by the second')"]))
        assert platform.ended(again.task_id).state is TaskState.SUCCEEDED
