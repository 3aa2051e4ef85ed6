"""The launcher of a member, as a process of its own, with real programs; HDFS is a folder that may be away."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hadoop.installation import ROOT
from jobs.application.listener import Listener
from jobs.application.status import JobStatus
from jobs.kinds.train.hearing import RunHearing
from jobs.kinds.train.launcher_settings import LauncherSettings
from learning.lead.leader import Leader
from locality.training.generations import MemberRules

TOKEN, PROCESS = "a token of the tests", "container_1_0001_01_000002"
STATUS = JobStatus("local", "running", 1, 0, 0, 0, 0.0, None, ())
STATE = b"a state"
CHECKPOINT = f"40-{hashlib.sha256(STATE).hexdigest()}.state"
PLAYED = '''
"""hdfs_native on the folder HDFS; each call fails while the file AWAY is there."""
import os, pathlib, shutil
from contextlib import contextmanager

WriteOptions = dict

class Found:
    def __init__(self, path):
        self.path = path

class Client:
    def __init__(self, config=None): pass

    def _at(self, path):
        if os.path.exists(os.environ["AWAY"]):
            raise RuntimeError("no NameNode answers")
        return pathlib.Path(os.environ["HDFS"] + path)

    def read(self, path):
        return self._at(path).open("rb")

    def list_status(self, path):
        return [Found(f"{path}/{one.name}") for one in self._at(path).iterdir()]

    def get_file_info(self, path):
        return self._at(path).stat()

    def mkdirs(self, path, create_parent):
        self._at(path).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def create(self, path, options):
        with self._at(path).open("wb") as sink:
            yield sink

    def rename(self, old, new, overwrite):
        self._at(old).replace(self._at(new))

    def delete(self, path):
        self._at(path).unlink()
'''
CALL = """
import os, sys
from jobs.kinds.train import launcher
launcher.HDFS_SECONDS = float(sys.argv[1])
launcher.END_SECONDS = launcher.GOODBYE_SECONDS = 60.0  # a busy machine has its time
sys.exit(launcher.main("train.json", os.environ))
"""


class Node:
    """A container's folder, the HDFS that is played, and an application master that hears."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.away = folder, folder / "away"
        self.stored = folder / "hdfs" / "out" / "checkpoints"
        self.staging = folder / "hdfs" / "staging"
        for made in (self.stored, self.staging, folder / "played"):
            made.mkdir(parents=True)
        (folder / "played" / "hdfs_native.py").write_text(PLAYED)
        self.leader = Leader(1, MemberRules(), lambda _: None, time.monotonic)
        self.listener = Listener("127.0.0.1", TOKEN)
        self.listener.serve(RunHearing(self.leader), lambda: STATUS, str)
        (self.staging / "master.json").write_text(json.dumps({"address": self.listener.address}))
        self.started: list[subprocess.Popen[str]] = []

    def launch(self, *argv: str, hdfs_seconds: float = 60.0) -> subprocess.Popen[str]:
        """A launcher of this program."""
        settings = LauncherSettings(argv=argv, master="/staging/master.json", token=TOKEN, output="/out")
        (self.folder / "train.json").write_bytes(settings.to_bytes())
        played = {"HDFS": str(self.folder / "hdfs"), "AWAY": str(self.away), "CONTAINER_ID": PROCESS}
        path = os.pathsep.join([str(self.folder / "played"), str(ROOT)])
        self.started.append(
            subprocess.Popen(
                [sys.executable, "-c", CALL, str(hdfs_seconds)],
                cwd=self.folder,
                env={**os.environ, **played, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return self.started[-1]

    def run(self, *argv: str, hdfs_seconds: float = 60.0) -> tuple[int, str]:
        """The exit status of a launcher, and what it printed with its program."""
        launched = self.launch(*argv, hdfs_seconds=hdfs_seconds)
        said, _ = launched.communicate(timeout=120)
        return launched.returncode, said

    def heard(self) -> str:
        """What the application master was told when the program failed."""
        return self.leader.members()[PROCESS].said


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    for one in made.started:
        one.kill()
        one.communicate()
    made.listener.close()


def until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60.0
    while not (found := holds()):
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.02)
    return found


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_program_starts_with_the_newest_checkpoint_once_hdfs_is_back(node: Node) -> None:
    (node.stored / CHECKPOINT).write_bytes(STATE)
    node.away.touch()
    launched = node.launch("sh", "-c", f"cat training/checkpoints/{CHECKPOINT}")
    assert launched.stdout
    for line in launched.stdout:
        if "the newest checkpoint cannot be fetched yet: no NameNode answers" in line:
            break
    node.away.unlink()
    said, _ = launched.communicate(timeout=120)

    assert launched.returncode == 0
    assert said.endswith("a state")


def test_without_hdfs_the_container_ends_with_one_sentence(node: Node) -> None:
    node.away.touch()
    status, said = node.run("true", hdfs_seconds=0.5)

    assert status == 1
    assert "the newest checkpoint cannot be fetched from HDFS: no NameNode answers" in said
    assert "Traceback" not in said


def test_a_program_that_is_not_there_is_told_to_all(node: Node) -> None:
    status, said = node.run("no-such-program")

    assert (status, said) == (1, "no-such-program cannot be started: No such file or directory\n")
    assert node.heard() == "no-such-program cannot be started: No such file or directory"


def test_an_end_of_the_program_is_told_with_its_status(node: Node) -> None:
    assert node.run("sh", "-c", "kill -9 $$")[0] == 137
    assert node.heard() == "the program ended with exit status 137"


def test_what_the_program_stores_last_reaches_hdfs_when_that_is_back(node: Node) -> None:
    launched = node.launch(
        "sh",
        "-c",
        f'touch "$AWAY"; printf "a state" > training/.new; mv training/.new training/checkpoints/{CHECKPOINT}',
    )
    assert launched.stdout
    for line in launched.stdout:
        if "cannot be stored now" in line:
            break
    node.away.unlink()

    assert launched.wait(60) == 0
    assert (node.stored / CHECKPOINT).read_bytes() == STATE


def test_sigterm_reaches_the_program_which_may_end_by_itself(node: Node) -> None:
    launched = node.launch(
        "sh", "-c", "trap 'sleep 0.5; echo stored; exit 0' TERM; echo begun; while :; do sleep 0.05; done"
    )
    assert launched.stdout and launched.stdout.readline() == "begun\n"
    launched.send_signal(signal.SIGTERM)
    said, _ = launched.communicate(timeout=60)

    assert launched.returncode == 143
    assert said.endswith("stored\n")


def test_nothing_of_the_program_outlives_it(node: Node) -> None:
    status, said = node.run("sh", "-c", "sleep 600 & echo $!")

    assert status == 0
    until(lambda: not is_running(int(said)))


def test_the_program_does_not_outlive_a_launcher_that_is_killed(node: Node) -> None:
    launched = node.launch("sh", "-c", "echo $$; exec sleep 600")
    assert launched.stdout
    program = int(launched.stdout.readline())
    launched.kill()

    until(lambda: not is_running(program))


def test_the_program_ends_when_the_folder_of_the_job_is_gone(node: Node) -> None:
    launched = node.launch("sh", "-c", "echo begun; exec sleep 600")
    assert launched.stdout and launched.stdout.readline() == "begun\n"
    (node.staging / "master.json").unlink()
    node.staging.rmdir()

    assert launched.wait(60) == 0
    assert "the run has ended: its folder is not there any more" in launched.stdout.read()
