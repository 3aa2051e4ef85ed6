"""Tasks on a real cluster whose service is killed or stands still, with a second service that takes over."""

from __future__ import annotations

import os
import shutil
import signal
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
PROGRAM = f"""import os, sys, time
for number in range({LINES}):
    print(number, flush=True)
    time.sleep(0.2)
    while number == {LINES // 2} and not os.path.exists(sys.argv[1]):
        time.sleep(0.1)
"""
"""It goes on from its middle when a file is there."""


SLOW_SUBMITTER = """import os, signal, sys, time
from pathlib import Path
from hadoop.client import yarn
from jobs.commands.submitter import main

describe, service, goes_on = yarn.launch_context, int(sys.argv.pop(1)), Path(sys.argv.pop(1))

def describe_slowly(*given):
    described = describe(*given)
    os.kill(service, signal.SIGSTOP)
    while not goes_on.exists():
        time.sleep(0.05)
    return described

yarn.launch_context = describe_slowly
main()
"""
"""A submitter whose service stands still while a task is on its way to YARN, and which goes on when a file is there."""


class Where(NamedTuple):
    """One of the two: its home, its port, and the address of the other one."""

    home: Path
    port: int
    other: str


@contextmanager
def _serving(cluster: Cluster, database: str, where: Where, submits: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A service of the pair, which listens, with its submitter if it `submits`."""
    words = [
        sys.executable,
        "-m",
        "nodewise",
        "--home",
        str(where.home),
        "serve",
        "--port",
        str(where.port),
    ]
    words += ["--database", database, "--shared-with", where.other, *(["--submit"] if submits else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=_environment(cluster)) as process:
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


def _environment(cluster: Cluster) -> dict[str, str]:
    return os.environ | {
        "HADOOP_CONF_DIR": str(cluster.home / "cluster" / "conf"),
        "HADOOP_USER_NAME": cluster.user,
        "PYTHONPATH": str(ROOT),
    }


def _hand_key_over(first: Where, second: Where) -> None:
    """What the page has the second one get from the first."""
    (second.home / "service").mkdir(parents=True, mode=0o700, exist_ok=True)
    for name in ("token", "audit.key"):
        shutil.copy2(first.home / "service" / name, second.home / "service" / name)


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
        _hand_key_over(first, second)
        held.enter_context(_serving(cluster, database, second))
        both = ",".join(urls)
        admin = InfoClient.from_token_file(both, first.home / "service" / "token", ANSWER_SECONDS)
        _, token = admin.create_token("maria", Role.USER)
        user = InfoClient(both, token, ANSWER_SECONDS)
        platform = Platform(cluster, first.home, both, active, admin, user, first.home / "maria.token")
        goes_on = tmp_path / "goes-on"
        task = user.submit_task(TaskSpec([sys.executable, "-c", PROGRAM, str(goes_on)]))
        until(lambda: user.task(task.task_id).state is TaskState.RUNNING)
        piece: TaskLogPiece = until(lambda: _printed(user, task.task_id))

        active.kill()
        goes_on.touch()

        done: Task = platform.ended(task.task_id)
        assert (done.state, done.exit_code) == (TaskState.SUCCEEDED, 0)
        rest, offset = "", piece.next
        while (more := user.task_log(task.task_id, "stdout", offset=offset)).text:
            rest, offset = rest + more.text, more.next
        assert (piece.text + rest).split() == [str(number) for number in range(LINES)]
        assert len(platform.applications(task.task_id)) == 1
        again = user.submit_task(TaskSpec([sys.executable, "-c", "print('by the second')"]))
        assert platform.ended(again.task_id).state is TaskState.SUCCEEDED


@contextmanager
def _submitting_slowly(
    cluster: Cluster, where: Where, service: int, goes_on: Path, token: str
) -> Iterator[subprocess.Popen[str]]:
    """The submitter of a service that has none, whose pid is `service`; what it says comes from its stderr."""
    token_file = where.home / "service" / "submitter.token"
    token_file.write_text(token)
    url = f"http://127.0.0.1:{where.port}"
    words = [sys.executable, "-c", SLOW_SUBMITTER, str(service), str(goes_on), "--home", str(where.home), "--url", url]
    words += ["--token-file", str(token_file)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, env=_environment(cluster), **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def test_a_submitter_whose_service_stands_still_gives_yarn_no_second_application_of_a_task(
    cluster: Cluster, mariadb: MariaDB, tmp_path: Path
) -> None:
    database, ports = mariadb.new_database(), (free_port(), free_port())
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    first, second = Where(tmp_path / "first", ports[0], urls[1]), Where(tmp_path / "second", ports[1], urls[0])
    goes_on = tmp_path / "goes-on"
    with ExitStack() as held:
        active = held.enter_context(_serving(cluster, database, first, submits=False))
        _hand_key_over(first, second)
        held.enter_context(_serving(cluster, database, second))
        both = ",".join(urls)
        admin = InfoClient.from_token_file(both, first.home / "service" / "token", ANSWER_SECONDS)
        _, token = admin.create_token("maria", Role.USER)
        user = InfoClient(both, token, ANSWER_SECONDS)
        platform = Platform(cluster, first.home, both, active, admin, user, first.home / "maria.token")
        _, token = admin.create_token("slow", Role.SUBMITTER)
        task = user.submit_task(TaskSpec([sys.executable, "-c", "print('once')"]))
        slow = held.enter_context(_submitting_slowly(cluster, first, active.pid, goes_on, token))
        held.callback(active.send_signal, signal.SIGCONT)

        until(lambda: user.task(task.task_id).application_id)  # of the second one, which has taken over
        goes_on.touch()
        assert slow.stderr is not None
        assert "the information service does not answer" in slow.stderr.readline()
        active.send_signal(signal.SIGCONT)
        assert active.wait(ANSWER_SECONDS) == 1

        assert platform.ended(task.task_id).state is TaskState.SUCCEEDED
        assert len(platform.applications(task.task_id)) == 1
