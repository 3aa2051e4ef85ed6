"""Tasks on a real cluster: their files, their output, what they print, how they end, and that nothing stays behind."""

from __future__ import annotations

import io
import json
import secrets
import sys
import tarfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from bench.stage import START_SECONDS
from hadoop.local import daemons, lifecycle
from hadoop.local.site import NODE_MEMORY_MB
from jobs.kinds.task.reported import Noted, read_notes
from jobs.kinds.task.request import RUNNER_MEMORY_MB
from tests.cluster.site import nodewise, succeed, until
from tests.cluster.task_session import Tasks, node_of

ROOT = Path(__file__).resolve().parents[2]
TRAIN = """#!/bin/bash
echo "on $NODE_NAME: $TASK_ID attempt $ATTEMPT, seed $SEED, says $1"
cat data/words.txt
printf 'to stderr, \\xff\\x00 without an end' >&2
mkdir "$OUTPUT/model" "$OUTPUT/empty"
printf '\\x00\\xff' > "$OUTPUT/model/weights.bin"
ln -s weights.bin "$OUTPUT/model/latest.bin"
ln -s /etc/hostname "$OUTPUT/outside"
env | grep -e PYTHONPATH -e HADOOP_TOKEN; exit 0
"""
COUNTS = """import itertools, os, sys, time
for number in itertools.count():
    print(number, time.monotonic(), 'x' * 1000, flush=True)
    if os.path.exists(sys.argv[1]):
        open(sys.argv[2], "w").write(str(number + 1))
        break
    time.sleep(0.05)
"""
FAMILY = "setsid sleep 3600.75 & (sleep 3600.75 &) ; trap '' TERM; echo ready; while :; do sleep 0.2; done"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with tarfile.open(tmp_path / "files.tar", "w") as made:
        for name, text, mode in (("train.sh", TRAIN, 0o755), ("data/words.txt", "some words\n", 0o644)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), mode
            made.addfile(entry, io.BytesIO(text.encode()))
    return tmp_path / "files.tar"


def processes(job_id: str) -> list[psutil.Process]:
    """Who works in a container of an application, also after its folder was deleted."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if job_id in process.cwd() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def runner_of(job_id: str) -> psutil.Process | None:
    for one in processes(job_id):
        with suppress(psutil.Error):  # it has ended since it was found
            if "job.json" in one.cmdline():
                return one
    return None


def test_a_task_has_its_files_leaves_its_output_and_its_log_is_kept(tasks: Tasks, archive: Path) -> None:
    output = f"/out/{secrets.token_hex(4)}/trained"
    spec = {"variables": {"SEED": "7", "ATTEMPT": "9"}, "output": f"hdfs://{output}/", "name": "mnist"}
    task_id, job_id = tasks.submit("./train.sh", "it's $HOME; *", archive=archive, **spec)

    ended = tasks.ask("wait", job_id)

    assert (ended["final"], ended["diagnostics"]) == ("SUCCEEDED", "the program ended with exit code 0")
    assert ended["name"] == "mnist" and {f"task:{task_id}", "kind=task"} <= set(ended["tags"])
    record = ended["record"]
    assert (record["state"], record["done"], record["of"], record["unit"]) == ("succeeded", 1, 1, "tasks")
    assert 0 < record["section"].pop("Seconds") < 600
    assert record["section"] == {"Program": "./train.sh", "Exit code": 0}
    (node,) = record["nodes"]
    assert (node["state"], node["said"]) == ("done", "exit code 0")

    printed = f"on {node['node_name']}: {task_id} attempt 1, seed 7, says it's $HOME; *\nsome words\n".encode()
    assert tasks.log(task_id, "stdout.1") == printed
    assert tasks.log(task_id, "stderr.1") == b"to stderr, \xff\x00 without an end"
    folder = f"/user/{tasks.cluster.user}/.nodewise/tasks/{task_id}"
    assert tasks.hdfs.status(folder)["permission"] == "700"
    assert {(one["permission"], one["replication"]) for _, one in tasks.hdfs.list(folder, status=True)} == {("600", 2)}
    logged = succeed(nodewise(tasks.cluster.home, "job", "logs", job_id, "--json")).splitlines()
    said = [json.loads(line)["line"] for line in logged]
    assert printed.decode().splitlines()[0] in said and "outside is left out" in " ".join(said)

    assert sorted(tasks.hdfs.list(output)) == ["empty", "model"]
    for name in ("weights", "latest"):
        with tasks.hdfs.read(f"{output}/model/{name}.bin") as reader:
            assert reader.read() == b"\x00\xff"
    assert tasks.hdfs.list(str(Path(output).parent)) == ["trained"], "nothing half-written is left"
    with pytest.raises(AssertionError, match=f"{output} exists already"):
        tasks.submit("true", output=output)


def test_a_task_that_fails_says_how_and_is_not_started_again(tasks: Tasks, archive: Path) -> None:
    asked = {
        "the program ended with exit code 3": (("bash", "-c", "echo last words; exit 3"), {}),
        "the program was killed by SIGSEGV": (("bash", "-c", "kill -SEGV $$"), {}),
        "on NODE, there is no program ./trian.sh": (("./trian.sh",), {"archive": archive}),
        "it ran longer than 2 s": (("sleep", "3600.75"), {"seconds_at_most": 2}),
    }
    submitted = {
        said: tasks.submit(*argv, attempts=2, output="/out/failed", **more)  # type: ignore[arg-type]
        for said, (argv, more) in asked.items()
    }

    ended = {said: tasks.ask("wait", job_id) for said, (_, job_id) in submitted.items()}

    for said, one in ended.items():
        (node,) = one["record"]["nodes"]
        assert (one["final"], one["attempt"]) == ("FAILED", 1)
        assert one["diagnostics"] == one["said"] == node["said"] == said.replace("NODE", node["node_name"])
        assert (one["record"]["state"], node["state"], node["running"]) == ("failed", "done", 0)
    codes = [one["record"]["section"].get("Exit code") for one in ended.values()]
    assert codes == [3, 139, None, 143]
    assert tasks.log(submitted["the program ended with exit code 3"][0], "stdout.1") == b"last words\n"
    assert tasks.hdfs.status("/out/failed", strict=False) is None
    until(lambda: not any(processes(job_id) for _, job_id in submitted.values()))


def test_a_later_start_and_another_task_go_on_from_the_checkpoint(tasks: Tasks) -> None:
    place = f"/checkpoints/{secrets.token_hex(4)}"
    script = (
        'cd $CHECKPOINT; echo "found $(cat steps/last 2> /dev/null || echo nothing)"; mkdir -p steps; '
        'echo "step $ATTEMPT" > steps/last; [ "$ATTEMPT" = 2 ] || while :; do sleep 0.2; done; echo end > steps/last'
    )
    task_id, job_id = tasks.submit("bash", "-c", script, attempts=2, checkpoint=f"hdfs://{place}/")
    until(lambda: tasks.hdfs.status(f"{place}/start-1/1/steps/last", strict=False))
    until(lambda: tasks.log(task_id, "stdout.1"))
    runner = runner_of(job_id)
    assert runner

    runner.kill()

    assert tasks.ask("wait", job_id)["final"] == "SUCCEEDED"
    assert tasks.log(task_id, "stdout.1") == b"found nothing\n"
    assert tasks.log(task_id, "stdout.2") == b"found step 1\n"
    other, job_id = tasks.submit("bash", "-c", "cat $CHECKPOINT/steps/last", checkpoint=place)
    assert tasks.ask("wait", job_id)["final"] == "SUCCEEDED"
    assert tasks.log(other, "stdout.1") == b"end\n", "what was there at the end was kept"
    assert sorted(tasks.hdfs.list(place)) == ["start-1", "start-2", "start-3"]


def test_data_of_hdfs_lies_beside_the_program(tasks: Tasks) -> None:
    place = f"/data/{secrets.token_hex(4)}"
    tasks.hdfs.write(f"{place}/digits/a/one.txt", b"one\n")
    tasks.hdfs.write(f"{place}/digits/two.txt", b"two\n")
    tasks.hdfs.write(f"{place}/labels.csv", b"label\n")
    script = "cd $DATA; find . -type f | sort; cat digits/a/one.txt labels.csv"

    task_id, job_id = tasks.submit("bash", "-c", script, data=[f"hdfs://{place}/digits/", f"{place}/labels.csv"])
    ended = tasks.ask("wait", job_id)

    assert ended["final"] == "SUCCEEDED", ended
    listed = ["./digits/a/one.txt", "./digits/two.txt", "./labels.csv"]
    assert tasks.log(task_id, "stdout.1").decode().splitlines() == [*listed, "one", "label"]
    assert f"{place}/digits: 2 files, 8 bytes; {place}/labels.csv: 1 files, 6 bytes" in str(ended["record"])


def test_data_that_cannot_be_read_is_refused(tasks: Tasks) -> None:
    with pytest.raises(AssertionError, match="the data /data/nowhere cannot be read"):
        tasks.submit("true", data=["/data/nowhere"])
    with pytest.raises(AssertionError, match=r"/a/x and /b/x would both be data/x: name a folder that has both"):
        tasks.submit("true", data=["/a/x", "/b/x/"])


def test_files_that_want_out_of_their_folder_are_refused(tasks: Tasks, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as made:
        made.addfile(tarfile.TarInfo("../outside"), io.BytesIO())

    ended = tasks.run("true", archive=tmp_path / "bad.tar")

    assert ended["final"] == "FAILED"
    assert ended["diagnostics"].startswith("the files of the task cannot be unpacked: ../outside leaves the folder")


def test_a_task_runs_on_the_nodes_that_it_may_run_on_and_on_no_other(tasks: Tasks) -> None:
    first, second, third, fourth = tasks.cluster.nodes
    only = [
        tasks.submit("hostname", nodes=[fourth, "10.9.9.9"]),
        tasks.submit("true", not_nodes=[first, second, fourth]),
    ]

    where = [tasks.ask("wait", job_id)["record"]["nodes"][0]["node_name"] for _, job_id in only]

    assert where == [fourth, third]
    with pytest.raises(AssertionError, match=r"none of the nodes that may run it accepts work \(10.9.9.9\)"):
        tasks.submit("true", nodes=["10.9.9.9"])


def test_a_task_has_the_node_that_it_prefers_and_soon_another_where_that_is_full(tasks: Tasks) -> None:
    for node in reversed(tasks.cluster.nodes):
        assert node_of(tasks.run_preferring(node)) == node
    full, *others = tasks.cluster.nodes
    _, holder = tasks.submit("sleep", "900", nodes=[full], memory_mb=NODE_MEMORY_MB - RUNNER_MEMORY_MB)
    try:
        until(lambda: tasks.ask("application", holder)["state"] == "RUNNING")

        elsewhere = tasks.run("true", prefers=[full])
    finally:
        tasks.ask("kill", holder)
    assert node_of(elsewhere) in others


def test_a_task_whose_runner_is_killed_runs_again_and_commits_once(tasks: Tasks) -> None:
    output = f"/out/{secrets.token_hex(4)}"
    script = f'echo "attempt $ATTEMPT"; echo "$ATTEMPT" > "$OUTPUT/by"; [ "$ATTEMPT" = 2 ] || {{ {FAMILY}; }}'
    task_id, job_id = tasks.submit("bash", "-c", script, attempts=2, output=output)
    until(lambda: tasks.log(task_id, "stdout.1") == b"attempt 1\nready\n")
    runner = runner_of(job_id)
    assert runner
    first = processes(job_id)
    assert len(first) >= 5

    runner.kill()
    until(lambda: not any(one.is_running() for one in first))

    ended = tasks.ask("wait", job_id)
    assert (ended["final"], ended["attempt"]) == ("SUCCEEDED", 2)
    assert tasks.log(task_id, "stdout.1") == b"attempt 1\nready\n"
    assert tasks.log(task_id, "stdout.2") == b"attempt 2\n"
    with tasks.hdfs.read(f"{output}/by") as reader:
        assert reader.read() == b"2\n"
    assert [name for name in tasks.hdfs.list("/out") if name.startswith(Path(output).name)] == [Path(output).name]


def test_a_kill_of_the_application_leaves_no_process(tasks: Tasks) -> None:
    task_id, job_id = tasks.submit("bash", "-c", FAMILY)
    until(lambda: tasks.log(task_id, "stdout.1") == b"ready\n")
    assert len(processes(job_id)) >= 5

    tasks.ask("kill", job_id)

    until(lambda: not processes(job_id))
    record = json.loads(succeed(nodewise(tasks.cluster.home, "job", "report", job_id, "--json")))
    assert (record["state"], record["nodes"][0]["state"]) == ("killed", "ended")
    assert tasks.log(task_id, "stdout.1") == b"ready\n"


def test_sigterm_reaches_the_program_which_may_end_in_peace_and_yarn_decides(tasks: Tasks) -> None:
    script = "trap 'echo saved; sleep 1; echo gone; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    task_id, job_id = tasks.submit("bash", "-c", f'[ "$ATTEMPT" = 1 ] || exit 0; {script}', attempts=2)
    until(lambda: tasks.log(task_id, "stdout.1") == b"ready\n")
    runner = runner_of(job_id)
    assert runner

    runner.terminate()

    ended = tasks.ask("wait", job_id)
    assert (ended["final"], ended["attempt"]) == ("SUCCEEDED", 2), "that it ended well does not mean that it was done"
    assert tasks.log(task_id, "stdout.1") == b"ready\nsaved\ngone\n"


def test_an_attempt_that_wakes_after_a_later_one_began_commits_nothing(tasks: Tasks, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").write_text("old")

    output = f"/out/{secrets.token_hex(4)}"
    identity = tasks.ask("stage", output, 1, str(tmp_path / "old"))  # it notes nothing: the journal is fenced
    tasks.ask("begin", output, 2)
    with pytest.raises(AssertionError, match="renaming"):
        tasks.ask("commit", output, 1, identity)
    assert Path(output).name not in tasks.hdfs.list("/out")

    output = f"/out/{secrets.token_hex(4)}"
    identity = tasks.ask("stage", output, 1, str(tmp_path / "old"))  # it notes this, and sleeps
    assert tasks.ask("finish_earlier", output, 2, identity)
    tasks.ask("commit", output, 1, identity)  # the same, done already
    assert tasks.ask("finish_earlier", output, 3, identity)
    assert tasks.hdfs.list(output) == ["file"]
    stranger = tasks.ask("stage", output, 4, str(tmp_path / "old"))
    with pytest.raises(AssertionError, match="exists already, so what the program left stays in"):
        tasks.ask("commit", output, 4, stranger)


def test_a_program_goes_on_while_hdfs_is_away_and_nothing_it_prints_is_lost_or_doubled(
    tasks: Tasks, tmp_path: Path
) -> None:
    enough, count = tmp_path / "enough", tmp_path / "count"
    task_id, job_id = tasks.submit(sys.executable, "-c", COUNTS, str(enough), str(count))
    until(lambda: tasks.log(task_id, "stdout.1"))

    try:
        tasks.ask("take_log_away", task_id, "stdout.1")
        before = len(tasks.log(task_id, "stdout.1"))
        until(lambda: len(tasks.log(task_id, "stdout.1")) > before)
        for daemon, process in daemons.find_running(tasks.cluster).items():
            if daemon.kind in ("namenode", "datanode"):
                process.kill()
        gone_at = time.monotonic()
        time.sleep(10)  # so that HDFS is missed for longer than its own client waits for a node
        lifecycle.up(tasks.cluster.home, nodes=tasks.cluster.size, ready_seconds=START_SECONDS)
        gone_seconds = time.monotonic() - gone_at
        until(lambda: len(memory_notes(tasks, task_id)) >= 8)
    finally:
        enough.touch()

    ended = tasks.ask("wait", job_id)
    assert ended["final"] == "SUCCEEDED"
    lines = [line.split() for line in tasks.log(task_id, "stdout.1").decode().splitlines()]
    assert [int(number) for number, _, _ in lines] == list(range(int(count.read_text())))
    moments = [float(moment) for _, moment, _ in lines]
    # One that waited for HDFS would do so all that time, less the three seconds for which a pipe takes what it prints.
    assert max(later - before for before, later in pairwise(moments)) < gone_seconds / 2, "the program had to wait"
    assert moments[-1] > gone_at + gone_seconds
    assert all(1e6 < one.value < 1e9 for one in memory_notes(tasks, task_id))


def memory_notes(tasks: Tasks, task_id: str) -> list[Noted]:
    return [one for one in read_notes(tasks.log(task_id, "used.1")) if one.name == "memory_bytes"]
