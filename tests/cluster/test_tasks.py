"""Tasks on a real cluster: a user submits, the submitter hands over, YARN runs, and all of it is seen over REST."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
import venv
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

import psutil
import pytest
from hdfs import HdfsError, InsecureClient

from bench.distributed_shell import containers
from bench.stage import PATIENT
from hadoop.local.site import NODE_MEMORY_MB
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, NotFound
from infosvc.wire.records import Datum, Kind, Producer, Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskDecision, TaskState
from jobs.kinds.task.request import RUNNER_MEMORY_MB
from tests.cluster.site import ANSWER_SECONDS, job_files, nodewise, succeed, until
from tests.cluster.task_platform import ROOT, Platform
from tests.cluster.task_session import session_of
from tests.infosvc.receiver import Receiver, receiving
from tests.recipes.pages import block
from tests.recipes.shell import Shell

PYTHON_WITH_MLFLOW = ROOT / ".venv-mlflow" / "bin" / "python"
PROGRAM = """import os, signal, sys, time
print("hello from", os.environ["TASK_ID"], "on", os.environ["NODE_NAME"], flush=True)
print("a complaint", file=sys.stderr, flush=True)
with open(os.path.join(os.environ["OUTPUT"], "result.txt"), "w") as file:
    file.write(os.environ.get("SEED", "none"))
def leave(*_):
    time.sleep(2)  # longer than YARN waits between its two signals
    print("good bye", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
while "waits" in sys.argv:
    time.sleep(0.2)
sys.exit(3 if "fails" in sys.argv else 0)
"""
REPORTS = """import os, time
attempt = int(os.environ["ATTEMPT"])
for step in range(20 * (attempt - 1), 30 if attempt == 1 else 50):
    print(f"nodewise: loss={1 / (step + 1)} accuracy={attempt} step={step}")
print("nodewise: and an ordinary line")
while attempt == 1:
    time.sleep(0.2)
"""
WAITS = """import os, time
for _ in range(3000):
    if not os.path.exists("{}"):
        time.sleep(0.1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "program.py").write_text(PROGRAM)
    return tmp_path / "work"


def _decision(platform: Platform, task_id: str, attempt: int | None = None) -> TaskDecision | None:
    with suppress(NotFound):
        return platform.user.task_decision(task_id, attempt)
    return None


def test_a_program_runs_with_its_folder_and_leaves_its_log_and_output(platform: Platform, folder: Path) -> None:
    output = "hdfs:///out/task-hello"
    given = ["--folder", str(folder), "--output", output, "--variable", "SEED=7", "--memory", "128"]

    said = succeed(platform.run("submit", "--name", "hello", *given, "--wait", "--json", "--", "python3", "program.py"))

    task = Task.from_json(json.loads(said))
    node = task.node_name
    assert (task.state, task.exit_code, task.owner, task.name) == (TaskState.SUCCEEDED, 0, "maria", "hello")
    decision = until(partial(_decision, platform, task.task_id))
    assert decision.node_name == node
    assert {one.node_name for one in decision.nodes if one.allowed and one.has_room} == set(platform.cluster.nodes)
    assert decision.said.startswith("4 of 4 nodes may run it, of which 4 had room. ")
    assert node in platform.cluster.nodes
    assert platform.log(task.task_id) == f"hello from {task.task_id} on {node}\n"
    assert platform.log(task.task_id, "stderr") == "a complaint\n"
    hdfs = InsecureClient(platform.cluster.namenode_http, user=platform.cluster.user)
    with hdfs.read("/out/task-hello/result.txt") as file:
        assert file.read() == b"7"
    kept = f"/user/{platform.cluster.user}/.nodewise/tasks/{task.task_id}"
    left = set(hdfs.list(kept)) - {"used.1"}  # which one that runs for some seconds has, too
    assert left == {"decision.1", "stderr.1", "stdout.1"}, "what reports nothing has no file for it"
    assert len(platform.applications(task.task_id)) == 1
    shown = block("task-logs").partition("#")[0].replace("task_999855bdfa6921b4", task.task_id).split()
    assert shown[:2] == ["nodewise", "task"]
    printed = platform.run(*shown[2:])
    assert (succeed(printed), printed.stderr) == (f"hello from {task.task_id} on {node}\n", "a complaint\n")
    again = platform.run("submit", *given, "--wait", "--", "python3", "program.py")
    assert again.returncode == 1
    assert "/out/task-hello exists already" in again.stdout
    platform.user.remove_task(task.task_id)
    until(lambda: hdfs.status(kept, strict=False) is None)
    assert hdfs.list("/out/task-hello") == ["result.txt"]


def test_the_log_is_read_while_the_program_runs_and_stop_lets_it_end_by_itself(
    platform: Platform, folder: Path
) -> None:
    words = ["--folder", str(folder), "--memory", "128", "--json", "--", "python3", "program.py", "waits"]
    task_id = json.loads(succeed(platform.run("submit", *words)))["task_id"]

    until(lambda: "hello from" in platform.log(task_id))
    until(lambda: platform.user.task(task_id).state is TaskState.RUNNING)
    succeed(platform.run("stop", task_id))

    task = platform.ended(task_id)
    assert (task.state, task.reason, task.exit_code) == (TaskState.STOPPED, "it was stopped", 0)
    assert platform.log(task_id).splitlines()[1:] == ["good bye"]
    until(lambda: not [one for one in psutil.process_iter() if _is_of(one, task_id)])


def _is_of(process: psutil.Process, task_id: str) -> bool:
    try:
        return process.environ().get("TASK_ID") == task_id
    except psutil.Error:
        return False


def test_what_cannot_run_fails_with_the_reason(platform: Platform, folder: Path) -> None:
    asked = {
        "fails": TaskSpec(["sh", "-c", "exit 3"], memory_mb=128),
        "missing": TaskSpec(["no-such-program"], memory_mb=128),
        "queue": TaskSpec(["true"], memory_mb=128, queue="nobodys"),
        "large": TaskSpec(["true"], memory_mb=9_000_000),
        "stranger": TaskSpec(["true"], memory_mb=128, nodes=("127.9.9.9",)),
    }
    tasks = {name: platform.user.submit_task(spec).task_id for name, spec in asked.items()}

    ended = {name: platform.ended(task_id) for name, task_id in tasks.items()}

    assert {task.state for task in ended.values()} == {TaskState.FAILED}
    assert (ended["fails"].exit_code, "exit code 3" in ended["fails"].reason) == (3, True)
    assert "no-such-program" in ended["missing"].reason
    assert "nobodys" in ended["queue"].reason
    assert "memory" in ended["large"].reason
    assert "127.9.9.9" in ended["stranger"].reason


def test_a_program_finds_the_python_of_a_published_environment(platform: Platform, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (tmp_path / "venv" / "lib/python3.11/site-packages" / "only_here.py").write_text("WORDS = 'from the environment'")
    words = ("env", "publish", "--python", str(tmp_path / "venv"), "hdfs:///shared/of-tasks", "--json")
    published = json.loads(succeed(nodewise(platform.cluster.home, *words)))["path"]

    for python in ("python", "python3"):
        task = platform.user.submit_task(
            TaskSpec((python, "-c", "import only_here; print(only_here.WORDS)"), env=published)
        )
        assert platform.ended(task.task_id).state is TaskState.SUCCEEDED, platform.user.task(task.task_id).reason
        assert platform.log(task.task_id) == "from the environment\n"
    lost = platform.user.submit_task(TaskSpec(("python3",), env="/shared/of-tasks/gone.tar.gz"))
    assert platform.ended(lost.task_id).reason.startswith("/shared/of-tasks/gone.tar.gz is not in HDFS")


def test_of_two_that_wait_the_one_of_higher_priority_runs_first(platform: Platform) -> None:
    # Two tasks have all that YARN gives application masters, so the next two wait to be let in. What is let in has a
    # node set aside at once, and keeps it whatever comes later.
    most = NODE_MEMORY_MB - RUNNER_MEMORY_MB
    nodes = platform.cluster.nodes[:2]
    held = [platform.user.submit_task(TaskSpec(("sleep", "900"), nodes=(node,), memory_mb=most)) for node in nodes]
    wait = TaskSpec(("sleep", "1"), nodes=nodes[:1], memory_mb=most)
    try:
        until(lambda: all(platform.user.task(one.task_id).state is TaskState.RUNNING for one in held))
        low, high = (platform.user.submit_task(replace(wait, priority=priority)) for priority in (1, 5))
        for task in (low, high):
            until(partial(_is_not_let_in, platform, task.task_id))

        platform.user.stop_task(held[0].task_id)

        first, second = (platform.ended(task.task_id) for task in (high, low))
    finally:
        for one in held:
            with suppress(Conflict):  # it has ended
                platform.user.stop_task(one.task_id)
            platform.ended(one.task_id)
    assert (first.state, second.state) == (TaskState.SUCCEEDED, TaskState.SUCCEEDED)
    assert first.started_at is not None and second.started_at is not None
    assert first.started_at < second.started_at
    refused = platform.ended(platform.user.submit_task(replace(wait, priority=11)).task_id)
    assert refused.reason.startswith("priority 11 is higher than the 10 that the cluster allows")


def test_a_task_with_an_image_goes_only_where_a_node_says_that_it_allows_it(platform: Platform) -> None:
    allowed, other = "sha256:" + "a" * 64, "sha256:" + "b" * 64
    node = platform.cluster.nodes[0]
    platform.admin.put_node(node, f"{node}:8410")
    platform.admin.put_producer(Producer("box_images", "", 30.0, Kind.PROGRAM, unit="ids"))
    platform.admin.put_value("box_images", node, f"{allowed} {'c' * 7}")
    try:
        refused = platform.user.submit_task(TaskSpec(["true"], memory_mb=128, image=f"torch@{other}")).task_id
        missing = platform.user.submit_task(TaskSpec(["true"], memory_mb=128, image=allowed)).task_id

        assert f"none of the nodes that may run it allows the image torch@{other}" in platform.ended(refused).reason
        assert f"there is no image {allowed}" in platform.ended(missing).reason
    finally:
        platform.admin.delete_node(node)
        platform.admin.delete_producer("box_images")


def test_a_task_after_others_waits_for_them_and_fails_with_them(platform: Platform, tmp_path: Path) -> None:
    first = platform.user.submit_task(
        TaskSpec(["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.2; done"], memory_mb=128)
    )
    try:
        second = platform.user.submit_task(TaskSpec(["sh", "-c", "exit 4"], memory_mb=128, after=(first.task_id,)))
        third = platform.user.submit_task(TaskSpec(["true"], memory_mb=128, after=(second.task_id,)))
        assert (second.state, third.state) == (TaskState.WAITING, TaskState.WAITING)
    finally:
        (tmp_path / "go").touch()

    assert platform.ended(first.task_id).state is TaskState.SUCCEEDED
    assert platform.ended(second.task_id).exit_code == 4
    last = platform.ended(third.task_id)
    assert (last.state, last.application_id) == (TaskState.FAILED, None)
    assert second.task_id in last.reason


def test_the_python_of_the_page_runs_a_task(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("import sys; print(sys.argv[1:])")
    variables = os.environ | platform.variables | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", block("task-python")]

    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    assert succeed(done) == "succeeded ['--epochs', '3']\n\n"


def test_users_see_and_stop_their_own_tasks_only(platform: Platform) -> None:
    task = platform.user.submit_task(TaskSpec(["true"], memory_mb=128))
    _, text = platform.admin.create_token("eve", Role.USER)
    eve = InfoClient(platform.url, text, ANSWER_SECONDS)
    for call in (eve.task, eve.stop_task, eve.task_again):
        with pytest.raises(NotFound):
            call(task.task_id)
    with pytest.raises(NotFound):
        eve.task_log(task.task_id, "stdout")
    with pytest.raises(NotFound):
        eve.task_values(task.task_id)
    assert platform.admin.task(task.task_id).owner == "maria"
    assert platform.ended(task.task_id).state is TaskState.SUCCEEDED


def test_a_submitter_that_is_killed_again_and_again_hands_each_task_over_once(platform: Platform) -> None:
    tasks: list[str] = []
    kills = 0
    while kills < 2 and len(tasks) < 24:  # it may have handed all over before this gets its turn to kill it
        tasks += [platform.user.submit_task(TaskSpec(["true"], memory_mb=128)).task_id for _ in range(8)]
        while kills < 6 and any(platform.user.task(task_id).application_id is None for task_id in tasks):
            if process := platform.submitter():
                time.sleep(0.2 + 1.5 * kills)  # from before it has a JVM to amid the tasks
                process.send_signal(signal.SIGKILL)
                kills += 1
            time.sleep(0.1)

    assert {platform.ended(task_id, 400).state for task_id in tasks} == {TaskState.SUCCEEDED}
    assert [len(platform.applications(task_id)) for task_id in tasks] == [1] * len(tasks)
    assert kills >= 2
    _sweep(platform)


def _is_not_let_in(platform: Platform, task_id: str) -> bool:
    """Whether the application of a task waits in YARN's queue, and YARN does not look for room for it yet."""
    return any("is not yet activated" in one["diagnostics"] for one in platform.applications(task_id))


def _has_no_order(hdfs: InsecureClient, folder: str) -> bool:
    """Whether a folder does not say whose it is: one that was killed before it wrote that has left none of it."""
    if hdfs.status(f"{folder}/job.json", strict=False) is None:
        return True
    with suppress(HdfsError), hdfs.read(f"{folder}/job.json") as file:
        return not file.read()
    return False  # it is taken away just now: the next look tells


def _sweep(platform: Platform) -> None:
    """Nothing is left of what never came to YARN, but what had no name yet: that goes after some hours.

    Of one that YARN had, the files stay if the submitter was killed just before it took them away: they go with the
    next job that is submitted.
    """
    hdfs = InsecureClient(platform.cluster.namenode_http, user=platform.cluster.user)
    manager = ResourceManager(platform.cluster.rm_http, platform.cluster.user, PATIENT)
    for name in job_files(platform.cluster) - {one["id"] for one in manager.applications("NODEWISE")}:
        until(partial(_has_no_order, hdfs, f"/user/{platform.cluster.user}/.nodewise/{name}"))


def test_what_a_program_reports_is_a_curve_while_it_runs_and_over_its_starts(
    platform: Platform, tmp_path: Path
) -> None:
    (tmp_path / "report.py").write_text(REPORTS)
    words = ["--folder", str(tmp_path), "--memory", "128", "--attempts", "2", "--json", "--", "python3", "report.py"]
    task_id = json.loads(succeed(platform.run("submit", *words)))["task_id"]

    until(lambda: [one.count for one in platform.user.task_values(task_id).curves] == [30, 30])
    until(lambda: platform.user.task_values(task_id).state is TaskState.RUNNING)
    (application,) = platform.applications(task_id)
    _runner_of(application["id"]).kill()

    task = platform.ended(task_id)
    assert (task.state, task.attempt) == (TaskState.SUCCEEDED, 2)
    found = platform.user.task_values(task_id)
    accuracy, loss = found.curves
    assert (found.whole, accuracy.name, loss.name, loss.last, loss.most) == (True, "accuracy", "loss", 0.02, 1.0)
    assert [(step, value) for step, _, value in accuracy.points] == [(step, 1 + (step >= 20)) for step in range(50)]
    moments = [at for _, at, _ in loss.points]
    assert moments == sorted(moments) and task.created_at < moments[0] and moments[-1] < time.time()
    assert [one.count for one in platform.user.task_values(task_id, attempt=1).curves] == [30, 30]
    assert "nodewise: loss=1.0 accuracy=1 step=0\n" in platform.user.task_log(task_id, attempt=1).text


def _runner_of(job_id: str) -> psutil.Process:
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if job_id in one.cwd() and "job.json" in one.cmdline():
                return one
    raise AssertionError(f"{job_id} has no runner")


def test_the_page_shows_how_values_are_reported_and_read(platform: Platform, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "reader", tmp_path / "work", platform.variables)
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "report.py").write_text(block("task-report"))
    submits, reads = (
        "".join(line for line in block("task-values").splitlines(True) if ("task submit" in line) == wanted)
        for wanted in (True, False)
    )

    for shown, made in zip(
        dict.fromkeys(re.findall("task_[0-9a-f]{16}", reads)), shell.run(submits, timeout=600).splitlines(), strict=True
    ):
        reads = reads.replace(shown, made.split()[0])

    said = shell.run(reads)
    assert re.search(r"^ loss +0\.1695 +0\.1695 +1 +50 +█", said, re.MULTILINE)
    assert re.search(r"^ task_\w+ +fast +succeeded +0\.98 +0\.02 ", said, re.MULTILINE)
    assert re.search(r"^ +49 +0\.1695 +0\.02 ", said, re.MULTILINE)


def test_a_script_that_tracks_runs_does_so_as_a_task_and_its_files_are_the_output(
    platform: Platform, tmp_path: Path
) -> None:
    shell = Shell(tmp_path / "reader", tmp_path / "work", platform.variables)
    log_file = 'with mlflow.start_run(run_name="files"):\n    mlflow.log_text("weights", "model/net.txt")\n'
    script = WAITS.format(tmp_path / "seen") + block("tracking-train").replace("for rate", f"{log_file}for rate", 1)
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "train.py").write_text(script)
    command = block("tracking-task")
    assert command.count("python3") == 1 and "hdfs:///out/digits" in command
    states: list[str] = []
    with platform.user.events(types=["task"]) as events:
        task_id = shell.run(command.replace("python3", str(PYTHON_WITH_MLFLOW))).split()[0]
        for event in events:
            if event.type == "task" and event.data["task_id"] == task_id:
                states.append(event.data["state"])
                if states[-1] == "running":
                    (tmp_path / "seen").touch()
                if TaskState(states[-1]).is_final:
                    break

    assert platform.log(task_id).splitlines()[-1] == "rate 0.5 0.18181818181818182", platform.log(task_id, "stderr")
    assert [state for state, _ in groupby(states)] == ["queued", "starting", "running", "succeeded"]
    hdfs = InsecureClient(platform.cluster.namenode_http, user=platform.cluster.user)
    with hdfs.read("/out/digits/model/net.txt") as file:
        assert file.read() == b"weights"
    headers = {"Authorization": f"Bearer {platform.user_file.read_text().strip()}"}
    asked = urllib.request.Request(f"{platform.url}/api/2.0/mlflow/runs/get?run_id={task_id}", headers=headers)
    with urllib.request.urlopen(asked, timeout=120) as answer:
        assert json.load(answer)["run"]["info"]["status"] == "FINISHED"


def test_the_speed_of_a_program_is_a_value_of_its_node_and_is_learned_for_others(
    platform: Platform, tmp_path: Path
) -> None:
    for node in platform.cluster.nodes:
        platform.admin.put_node(node, "127.0.0.1:9")
    shell = Shell(tmp_path / "reader", tmp_path / "work", platform.variables)
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "report.py").write_text(block("task-report"))

    submit, show = block("task-speeds").splitlines()
    shell.run(submit, timeout=600)
    (seen,) = until(partial(_speeds, platform, "steps_per_second:fast"))  # it is noted after the task has ended
    said = shell.run(show)

    (task,) = [one for one in platform.user.tasks() if one.spec.program == "fast"]
    assert seen.node_name == task.node_name and seen.number() > 49, "it prints 50 steps at once"
    assert re.search(rf"^ fast +{task.node_name} +\d\S* +\d\S* +100 % ", said, re.MULTILINE)
    until(lambda: len(_speeds(platform, "training_speed:fast")) == len(platform.cluster.nodes))
    assert {one.number() for one in platform.admin.data("training_speed:fast")} == {1.0}, "one says nothing of others"


MOVES = """import os, pathlib, signal, sys, time
saved = pathlib.Path(os.environ["CHECKPOINT"], "saved")
if saved.exists():
    sys.exit(print(saved.read_text()))
def leave(*_):
    saved.write_text("from " + os.environ["NODE_NAME"])
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


def test_a_task_moves_to_the_node_that_is_faster_and_goes_on_from_what_it_saved(
    platform: Platform, tmp_path: Path
) -> None:
    platform.admin.put_producer(Producer("training_speed:mnist", "", 60.0, Kind.PROGRAM, ttl=3600))
    shell = Shell(tmp_path / "reader", tmp_path / "work", platform.variables)
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "train.py").write_text(MOVES)
    task_id = shell.run(block("task-move"), timeout=600).split()[0]
    until(lambda: platform.log(task_id) == "ready\n")
    until(lambda: platform.user.task(task_id).state is TaskState.RUNNING)
    until(lambda: platform.user.task(task_id).node_name)  # the submitter says that, a moment after the runner's word
    left = platform.user.task(task_id)
    *slower, fast = [node for node in platform.cluster.nodes if node != left.node_name]
    for node, speed in {str(left.node_name): 0.2, **dict.fromkeys(slower, 0.25), fast: 1.0}.items():
        platform.admin.put_node(node, "127.0.0.1:9")
        platform.admin.put_value("training_speed:mnist", node, speed)

    with session_of(platform.cluster) as submitter:
        said = submitter.ask("move", platform.url, platform.admin.create_token("mover", Role.SUBMITTER)[1])

    assert said == [f"{task_id} leaves {left.node_name}: {fast} runs mnist 5.0 times as fast"]
    task = platform.ended(task_id)
    assert (task.state, task.attempt, task.node_name) == (TaskState.SUCCEEDED, 2, fast), task.reason
    assert platform.log(task_id) == f"from {left.node_name}\n"
    decision = until(partial(_decision, platform, task_id, 2))
    assert [one.node_name for one in decision.nodes if one.allowed] == [fast], "the application was for that one alone"


def _speeds(platform: Platform, data_name: str) -> list[Datum]:
    with suppress(NotFound):  # it is registered with its first value
        return platform.admin.data(data_name)
    return []


def _told(receiver: Receiver) -> set[tuple[str, str]]:
    """The type of each message that came, and what it is about."""
    return {(one["type"], one.get("about") or one["task_id"]) for one in list(receiver.got)}


def test_what_failed_is_told_and_what_was_used_is_counted_for_its_owner(platform: Platform, tmp_path: Path) -> None:
    alerts = AlertClient(platform.admin)
    with receiving() as receiver:
        alert = alerts.add("job failed", 0, receiver.url)
        started = time.time()
        words = ["--copies", "1", "--memory", "128", "--json", "--", "sh", "-c", "sleep 1; exit 3"]
        job_id = json.loads(succeed(nodewise(platform.cluster.home, "job", "run", *words, url=platform.url)))["job_id"]
        failing = platform.admin.submit_task(TaskSpec(["false"], memory_mb=128, notify=receiver.url)).task_id
        used = platform.user.submit_task(TaskSpec(["sleep", "2"], memory_mb=128)).task_id
        until(lambda: {job_id, failing} <= {one.about for one in alerts.find(alert.alert_id).on}, 240)
        until(lambda: len(_told(receiver)) == 3)  # one whose answer took long comes again
        assert platform.ended(used).state is TaskState.SUCCEEDED
        alerts.remove(alert.alert_id)
    assert _told(receiver) == {("alert", job_id), ("alert", failing), ("task", failing)}

    words = ["usage", "--since", str(started), "--json", "--token-file", str(platform.home / "service" / "token")]
    own = {str(one["id"]).removeprefix("application_") for one in platform.applications(used)}
    until(lambda: own.isdisjoint(one.application for one in containers(platform.cluster)))  # its use grows until then
    by_user = json.loads(succeed(nodewise(platform.cluster.home, *words, url=platform.url)))
    found = {one["user"]: one for one in by_user["usage"]}
    rows = platform.applications(used)
    maria = found["maria"]
    assert maria["applications"] == 1 and maria["core_hours"] == sum(one["vcoreSeconds"] for one in rows) / 3600 > 0
    assert maria["memory_gb_hours"] == sum(one["memorySeconds"] for one in rows) / 1024 / 3600 > 0
    assert found["admin"]["applications"] == 1 and found[platform.cluster.user]["core_hours"] > 0
    assert by_user["remembered_since"] <= rows[0]["startedTime"] / 1000
    conf = {"HADOOP_CONF_DIR": str(platform.cluster.home / "cluster" / "conf")}
    said = Shell(tmp_path / "reader", tmp_path / "work", platform.variables | conf).run(block("usage"))
    assert "maria" in said and "YARN remembers" in said and '"queue": "' in said
