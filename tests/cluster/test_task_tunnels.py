"""Shells and notebooks in tasks of a real cluster, as their users call them."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from infosvc.wire.errors import Conflict
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from infosvc.wire.tunnel.tunnel_end import TunnelCalls
from tests.cluster.site import until
from tests.cluster.task_platform import ROOT, Platform
from tests.recipes.pages import block

JUPYTER = ROOT / ".venv-jupyter" / "bin"
CELL = "import os; print(os.environ['TASK_ID'], open('told.txt').read())"
RUN_A_CELL = """
import json, sys, urllib.request, uuid
from urllib.parse import urlsplit
from websocket import create_connection

address, code = sys.argv[1:]
parts = urlsplit(address)
query = parts.query
kernels = f"{parts.scheme}://{parts.netloc}/api/kernels"
with urllib.request.urlopen(urllib.request.Request(f"{kernels}?{query}", b"{}"), timeout=200) as answer:
    kernel = json.load(answer)["id"]
socket = create_connection(f"ws://{parts.netloc}/api/kernels/{kernel}/channels?{query}", timeout=200)
head = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "s", "version": "5.3"}
content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
socket.send(json.dumps({"header": head, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
is_idle = False  # what is printed comes before this, but may come after the reply
while not is_idle:
    said = json.loads(socket.recv())
    if said["parent_header"].get("msg_id") != head["msg_id"]:
        continue
    if said["msg_type"] == "stream":
        print(said["content"]["text"], end="")
    elif said["msg_type"] == "error":
        sys.exit(str(said["content"]))
    is_idle = said["msg_type"] == "status" and said["content"]["execution_state"] == "idle"
"""


def command(platform: Platform, line: str, *more: str) -> list[str]:
    """A line of the page, as this user calls it."""
    words = shlex.split(line, comments=True)
    given = ["--url", platform.url, "--token-file", str(platform.user_file), *more]
    place = 3 if words[1] == "task" else 2
    return [
        *(sys.executable, "-m", "nodewise", "--home", str(platform.home)),
        *words[1:place],
        *given,
        *words[place:],
    ]


def test_a_shell_runs_in_the_box_of_its_task_and_ends_with_it(platform: Platform) -> None:
    spec = TaskSpec(["sh", "-c", "echo 'so far' > train.log; echo written; exec sleep 600"], memory_mb=64)
    lines = block("task-shell").splitlines()
    task = platform.user.submit_task(spec)
    later = platform.user.submit_task(replace(spec, after=(task.task_id,)))
    with pytest.raises(Conflict, match="wait until its program runs"):
        TunnelCalls(platform.user).open(later.task_id)
    shell, follow = (command(platform, line.replace("task_999855bdfa6921b4", task.task_id)) for line in lines)
    until(lambda: platform.user.task(task.task_id).state is TaskState.RUNNING)
    until(lambda: platform.log(task.task_id) == "written\n")

    typed = "echo $TASK_ID on $NODE_NAME; cat train.log; exit 5\n"
    done = subprocess.run(shell, input=typed, capture_output=True, text=True, timeout=400, check=False, cwd=ROOT)
    assert done.returncode == 5, done.stderr
    assert f"{task.task_id} on {platform.user.task(task.task_id).node_name}" in done.stdout
    assert "so far" in done.stdout.splitlines()

    with subprocess.Popen(follow, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=ROOT) as following:
        assert following.stdout and following.stdout.readline().strip() == "so far"
        platform.user.stop_task(task.task_id)
        assert following.wait(400) != 0
    assert platform.ended(task.task_id).state is TaskState.STOPPED
    platform.ended(later.task_id)


@contextmanager
def notebook(platform: Platform, line: str, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`nodewise notebook` with the address that it prints."""
    words = command(platform, line, "--port", "0", *more)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def run_a_cell(address: str) -> str:
    done = subprocess.run(
        [JUPYTER / "python", "-c", RUN_A_CELL, address, CELL], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def task_named(platform: Platform, name: str) -> Task:
    (found,) = platform.user.tasks(text=name)
    return found


def test_a_notebook_runs_cells_in_a_task_and_is_left_and_reached_again(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "told.txt").write_text("beside it")
    begin, again, _stop = block("notebook").splitlines()
    begin = begin.replace("--env jupyter", f"--app server --variable PATH={JUPYTER}:/usr/bin:/bin")
    begin = begin.replace("--folder src", f"--folder {tmp_path / 'src'}").replace("--memory 2g", "--memory 700m")

    with notebook(platform, begin) as (process, address):
        task = task_named(platform, "notebook")
        assert run_a_cell(address) == f"{task.task_id} beside it"
        process.send_signal(signal.SIGINT)
        assert process.wait(240) == 0
        assert process.stderr and f"`nodewise notebook {task.task_id}` reaches it again" in process.stderr.read()
    assert platform.user.task(task.task_id).state is TaskState.RUNNING

    with notebook(platform, again.replace("task_999855bdfa6921b4", task.task_id)) as (process, address):
        assert run_a_cell(address) == f"{task.task_id} beside it"
        platform.user.stop_task(task.task_id)
        assert process.wait(400) == 0
        assert process.stderr and f"{task.task_id} stopped" in process.stderr.read()


def test_a_notebook_without_jupyter_says_so(platform: Platform) -> None:
    words = command(platform, "nodewise notebook --name bare --variable PATH=/usr/bin:/bin --port 0")
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, check=False, cwd=ROOT)

    assert done.returncode == 1
    assert "its environment or image has no Jupyter" in " ".join(done.stderr.split())


def test_a_task_that_is_no_notebook_is_not_reached_as_one(platform: Platform) -> None:
    task = platform.user.submit_task(TaskSpec(["true"], memory_mb=64))
    words = command(platform, f"nodewise notebook {task.task_id} --port 0")
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, check=False, cwd=ROOT)

    assert done.returncode == 1
    assert f"{task.task_id} is no notebook" in " ".join(done.stderr.split())
    platform.ended(task.task_id)
