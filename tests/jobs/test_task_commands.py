"""`nodewise task`, run as people run it, against a running service; and what goes along with a task."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Role
from infosvc.wire.task_spec import LONGEST_CHANGES, TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from jobs.commands.asking import folder_tar
from jobs.commands.asking.folder_origin import Origin, origin_of
from jobs.commands.asking.folder_tar import pack
from jobs.commands.task.task_array import Indices
from jobs.errors import JobError
from tests.in_process import nodewise
from tests.recipes.pages import block
from tests.recipes.shell import Shell

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]


@pytest.fixture
def command(client: InfoClient, tmp_path: Path) -> Command:
    """command(*WORDS): one run of nodewise with its output, as the user maria."""
    token = tmp_path / "maria.token"
    token.write_text(client.create_token("maria", Role.USER)[1])
    told = {"NODEWISE_URL": client.url, "NODEWISE_TOKEN_FILE": str(token), "NODEWISE_HOME": str(tmp_path / "home")}

    def run(*words: str) -> Done:
        return nodewise("task", *words, env=os.environ | told)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a program needs."""
    place = tmp_path / "src"
    (place / "data" / "empty").mkdir(parents=True)
    (place / "train.py").write_text("print(1)\n")
    (place / "train.py").chmod(0o755)
    (place / "data" / "ä b").write_bytes(b"\0" * 1000)
    (place / "data" / "link").symlink_to("../train.py")
    (place / "data" / "up").symlink_to("empty/../../train.py")
    return place


def fine(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def refused(done: Done) -> str:
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done
    return done.stderr


def test_a_task_is_asked_for_with_all_that_its_options_say(
    command: Command, client: InfoClient, folder: Path, tmp_path: Path
) -> None:
    given = {"name": "mnist", "memory": "2g", "vcores": "2", "queue": "q", "program": "resnet", "not-node": "n3"}
    given |= {"attempts": "3", "seconds-at-most": "60", "output": "hdfs:///out/mnist"}
    words = [word for name, text in given.items() for word in (f"--{name}", text)]
    more = ["--node", "n1", "--node", "n2", "--variable", "A=1", "--variable", "B=x=y"]
    more += ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]
    said = json.loads(fine(command("submit", *words, *more, "--folder", str(folder), "--json", "--", "ls", "-l")))
    spec = TaskSpec.from_json(said["spec"])

    assert (said["owner"], said["name"], said["state"]) == ("maria", "mnist", "queued")
    assert spec == TaskSpec(
        ["ls", "-l"],
        "mnist",
        spec.files,
        {"A": "1", "B": "x=y"},
        2048,
        2,
        "q",
        "resnet",
        ["n1", "n2"],
        ["n3"],
        [],
        "hdfs:///out/mnist",
        3,
        60.0,
        devices=["nvidia.com/gpu=0", "nvidia.com/gpu=1"],
    )
    client.get_files(str(spec.files), tmp_path / "sent.tar")
    with tarfile.open(tmp_path / "sent.tar") as tar:
        names = tar.getnames()
    assert names == ["data", "data/empty", "data/link", "data/up", "data/ä b", "train.py"]


def test_tasks_are_listed_shown_stopped_repeated_and_removed(command: Command, client: InfoClient) -> None:
    first = json.loads(fine(command("submit", "--variable", "KEY=hidden", "--json", "--", "sleep", "9")))["task_id"]
    assert fine(command("submit", "--after", first, "--idempotency-key", "k", "--", "ls")).endswith(" waiting\n")
    second = client.tasks(["waiting"])[0].task_id
    assert fine(command("submit", "--after", first, "--idempotency-key", "k", "--", "ls")).startswith(second)
    assert [row["task_id"] for row in json.loads(fine(command("list", "--json")))] == [second, first]
    listed = fine(command("list", "--state", "queued"))
    assert first in listed and second not in listed and "sleep" in listed
    assert fine(command("list", "-q", "nothing")).startswith("no task")
    shown = fine(command("show", first))
    assert '["sleep", "9"]' in shown and "KEY" in shown and "hidden" not in shown
    assert json.loads(fine(command("show", first, "--json")))["spec"]["variables"] == {"KEY": "hidden"}
    client.put_task_news(first, TaskNews(TaskState.RUNNING, node_name="n1"))
    assert fine(command("stop", first)) == f"{first}: asked to stop\n"
    assert "stop it first" in refused(command("rm", first))
    assert fine(command("stop", second)) == f"{second}: stopped\n"
    assert "has ended" in refused(command("stop", second))
    again = fine(command("again", first)).split()
    assert again[1] == "queued" and client.task(again[0]).again_of == first
    assert fine(command("rm", second)) == f"{second}: forgotten\n"
    assert "nodewise task list" in refused(command("show", second))
    assert "nodewise task list" in refused(command("again", second))


@pytest.mark.parametrize(
    ("news", "status", "said"),
    [
        (TaskNews(TaskState.SUCCEEDED, exit_code=0), 0, "succeeded"),
        (TaskNews(TaskState.FAILED, exit_code=3), 1, "failed: exit code 3"),
        (TaskNews(TaskState.LOST, reason="its node is gone"), 1, "lost: its node is gone"),
    ],
)
def test_waiting_ends_with_the_task(
    command: Command, client: InfoClient, news: TaskNews, status: int, said: str
) -> None:
    def end_all() -> None:
        deadline = time.monotonic() + 50
        while time.monotonic() < deadline and not (found := client.tasks(["queued"])):
            time.sleep(0.1)
        client.put_task_news(found[0].task_id, news)

    ending = threading.Thread(target=end_all)
    ending.start()
    done = command("submit", "--wait", "--", "ls")
    ending.join()
    task_id = client.tasks()[0].task_id
    assert (done.returncode, done.stdout, done.stderr) == (status, f"{task_id} {said}\n", "")
    again = command("wait", task_id)
    assert (again.returncode, again.stdout) == (status, f"{task_id} {said}\n")


def test_what_is_wrong_is_refused_in_one_sentence(command: Command, client: InfoClient, tmp_path: Path) -> None:
    assert "program" in refused(command("submit", "--program", "Big", "--", "ls"))
    assert "has no task" in refused(command("submit", "--after", "task_0123456789abcdef", "--", "ls"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "out").symlink_to("/etc/passwd")
    assert "leaves the folder" in refused(command("submit", "--folder", str(tmp_path / "bad"), "--", "ls"))
    assert "NAME=VALUE" in command("submit", "--variable", "A", "--", "ls").stderr
    assert client.tasks() == []


def test_the_commands_of_the_page_do_what_it_says(client: InfoClient, tmp_path: Path) -> None:
    admin = tmp_path / "admin.token"
    admin.write_text("a-token-for-the-tests")
    told = {"NODEWISE_URL": client.url, "NODEWISE_TOKEN_FILE": str(admin)}
    shell = Shell(tmp_path / "reader", tmp_path / "work", told)
    (shell.folder / "src").mkdir()
    shell.run(block("task-token"))
    submitted = shell.run(block("task-submit"))
    first, second = (line.split()[0] for line in submitted.splitlines() if line.startswith("task_"))
    assert [task.owner for task in client.tasks()] == ["maria", "maria"]
    assert first in block("task-commands"), "the page shows the id that this key makes"
    said = shell.run(block("task-commands"))
    assert client.task(second).state is TaskState.FAILED and "stopped" in said


# What goes along.


def test_the_same_folder_is_the_same_archive(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "1.tar")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    (folder / "data" / "ä b").chmod(0o600)
    folder.rename(tmp_path / "other")
    pack(tmp_path / "other", tmp_path / "2.tar")
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()
    with tarfile.open(tmp_path / "1.tar") as tar:
        members = {one.name: one for one in tar.getmembers()}
        assert {(one.uid, one.gid, one.uname, one.mtime) for one in members.values()} == {(0, 0, "", 0)}
        assert (members["train.py"].mode, members["data/ä b"].mode) == (0o755, 0o644)
        assert members["data/link"].linkname == members["data/up"].linkname == "../train.py"
        tar.extractall(tmp_path / "out", filter="data")
    (tmp_path / "other" / "train.py").chmod(0o644)
    pack(tmp_path / "other", tmp_path / "3.tar")
    assert (tmp_path / "3.tar").read_bytes() != (tmp_path / "1.tar").read_bytes()


@pytest.mark.parametrize("target", ["/etc/passwd", "../..", "../../src/train.py", "inner/../../../x", "loop"])
def test_links_that_leave_the_folder_are_refused(folder: Path, tmp_path: Path, target: str) -> None:
    (folder / "data" / "loop").symlink_to(target)
    with pytest.raises(JobError, match="leaves the folder"):
        pack(folder, tmp_path / "1.tar")


def test_a_link_by_way_of_another_cannot_leave_either(folder: Path, tmp_path: Path) -> None:
    (folder / "up").symlink_to("data/empty")
    (folder / "data" / "empty" / "x").symlink_to("../../../outside")
    with pytest.raises(JobError, match="leaves the folder"):
        pack(folder, tmp_path / "1.tar")


def test_what_is_no_file_and_what_is_too_large_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        with pytest.raises(JobError, match="neither a file"):
            pack(folder, tmp_path / "1.tar")
    (folder / "s").unlink()
    os.mkfifo(folder / "p")
    with pytest.raises(JobError, match="neither a file"):
        pack(folder, tmp_path / "2.tar")
    (folder / "p").unlink()
    with (folder / "sparse").open("wb") as file:
        file.truncate(folder_tar.LARGEST + 1)
    with pytest.raises(JobError, match="larger than 256 MiB"):
        pack(folder, tmp_path / "3.tar")
    (folder / "sparse").unlink()
    monkeypatch.setattr(folder_tar, "LARGEST", 2000)
    with pytest.raises(JobError, match="put large data into HDFS"):
        pack(folder, tmp_path / "4.tar")


def test_without_a_token_one_is_asked_for(client: InfoClient) -> None:
    with InfoClient(client.url) as nobody, pytest.raises(InfoError, match="shows no token"):
        nobody.submit_task(TaskSpec(["ls"]))


@pytest.mark.parametrize(
    ("said", "numbers"),
    [("1-3", (1, 2, 3)), ("7", (7,)), ("1,3,7", (1, 3, 7)), ("0-100:50", (0, 50, 100)), ("2,1-3", (2, 1, 3))],
)
def test_an_array_is_numbers(said: str, numbers: tuple[int, ...]) -> None:
    assert Indices().convert(said, None, None) == numbers


@pytest.mark.parametrize("said", ["", "a", "1-", "3-1", "1-9:0", "1-1001", "1;2", "-1", "1-2-3"])
def test_what_is_no_array_is_refused(said: str) -> None:
    with pytest.raises(click.BadParameter):
        Indices().convert(said, None, None)


def test_an_array_is_a_task_for_each_number(command: Command, client: InfoClient) -> None:
    words = ("submit", "--array", "1-3", "--at-once", "2", "--name", "sweep", "--idempotency-key", "k", "--", "run")
    done = command(*words)

    assert [line.split()[1] for line in done.stdout.splitlines()] == ["queued", "queued", "waiting"]
    tasks = client.tasks()[::-1]
    assert [task.name for task in tasks] == ["sweep[1]", "sweep[2]", "sweep[3]"]
    assert [task.spec.variables for task in tasks] == [{"ARRAY_INDEX": str(number)} for number in (1, 2, 3)]
    assert len({task.spec.array for task in tasks}) == 1
    made = json.loads(
        command("submit", "--array", "7", "--output", "/out/s/", "--checkpoint", "/c", "--json", "--", "x").stdout
    )
    assert [(one["spec"]["output"], one["spec"]["checkpoint"]) for one in made] == [("/out/s/7", "/c/7")]
    assert command(*words).stdout == done.stdout, "the same key makes the same array"
    assert len(json.loads(command("submit", "--array", "1,2", "--json", "--", "run").stdout)) == 2
    assert "give --array too" in command("submit", "--at-once", "2", "--", "run").stderr


def git(folder: Path, *words: str) -> str:
    named = ["-c", "user.name=maria", "-c", "user.email=maria@example.org"]
    done = subprocess.run(["git", *named, "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_folder_that_git_knows_says_its_commit_and_its_changes(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("rate = 1\n")
    assert origin_of(tmp_path / "src") == Origin()
    git(tmp_path, "init", "--quiet")
    assert origin_of(tmp_path / "src") == Origin(), "there is no commit yet"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    assert origin_of(tmp_path / "src") == Origin(commit)

    (tmp_path / "src" / "train.py").write_text("rate = 2\n")
    (tmp_path / "beside").write_text("not below the folder")
    git(tmp_path, "add", "beside")
    found = origin_of(tmp_path / "src")

    assert found.commit == commit and found.changes is not None
    assert [line for line in found.changes.splitlines() if line[:1] in "+-"][2:] == ["-rate = 1", "+rate = 2"]
    assert "beside" not in found.changes


def test_of_many_changes_the_beginning_is_kept(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    (tmp_path / "words").write_text("word\n" * 100_000)

    changes = origin_of(tmp_path).changes

    assert changes is not None and len(changes) == LONGEST_CHANGES and changes.endswith("\n(cut here)\n")


def test_a_program_that_git_would_call_for_a_diff_is_not_called(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("one\n")
    (tmp_path / ".gitattributes").write_text("*.txt diff=evil\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    for name in ("diff.evil.command", "diff.evil.textconv", "core.fsmonitor"):
        git(tmp_path, "config", name, f"touch {tmp_path}/called")
    (tmp_path / "words.txt").write_text("two\n")
    (tmp_path / "called").unlink(missing_ok=True)

    assert "+two" in (origin_of(tmp_path).changes or "")
    assert not (tmp_path / "called").exists()
