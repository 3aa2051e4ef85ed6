"""A job on a real cluster, seen while it runs: what classifies stands still until a test lets it go on."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from bench.stage import module_of
from hadoop.local import processes
from infosvc.wire.service_options import TIMEOUT_VARIABLE
from jobs.division.decision_store import UNKNOWN_SECONDS
from tests.cluster.many_pictures import FOLDER, load_pictures
from tests.cluster.site import ANSWER_SECONDS, Site, applications, job_files, succeed, told_by_master, until
from tests.cluster.small_network import small_network
from tests.cluster.test_job import running

MANY = 160
"""So many images that hardly ever a node has done its part before its processes are found and stopped."""
MOST_TRIES = 5
PREFIXED = re.compile(r"(\S+) (master|worker) [|!-]")


class Screen:
    """A terminal that is read all the time: a command waits for ever to write what nobody reads."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.text = ""
        self._reading = Thread(target=self._read)
        self._reading.start()

    def close(self) -> None:
        """Once no command has it any more."""
        os.close(self.theirs)
        self._reading.join()
        os.close(self.ours)

    def _read(self) -> None:
        with suppress(OSError):  # nobody has it any more
            while part := os.read(self.ours, 4096):
                self.text += part.decode(errors="replace")


@dataclass
class Command:
    """A command that runs while others do; what it writes goes to files, or stderr to a terminal if there is one."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def lines(self) -> list[str]:
        """What it wrote to stdout so far."""
        return self.out.read_text().splitlines()

    def ended(self, seconds: float = 240) -> int:
        return self.process.wait(seconds)

    def end(self) -> None:
        """Stop it if it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def begin(site: Site, folder: Path, *words: str, terminal: int | None = None) -> Command:
    terminals = {"TERM": "xterm", "COLUMNS": "110", "LINES": "40"}
    environment = {**os.environ, **terminals, "NODEWISE_URL": site.url, TIMEOUT_VARIABLE: str(ANSWER_SECONDS)}
    environment.pop("HADOOP_CONF_DIR", None)
    folder.mkdir(exist_ok=True)
    out, err = folder / "out", folder / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "nodewise", "--home", str(site.cluster.home), *words],
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=stdout,
            stderr=stderr if terminal is None else terminal,
            env=environment,
        )
    return Command(process, out, err)


def submitting(site: Site, output: str) -> tuple[str, ...]:
    """The words that submit a job whose processes may stand still for a while."""
    given = (
        "--input",
        FOLDER,
        "--capability",
        "perf_even",
        "--output",
        output,
        "--batch",
        "4",
        *small_network(site.cluster.home),
    )
    patience = ("--picture-seconds", "600", "--lease-seconds", "120", "--container-wait", "300")
    return ("job", "submit", *given, "--no-steal", *patience, "--wait")


def working(site: Site, module: str = "jobs.") -> list[psutil.Process]:
    """The processes of containers that run a module of ours."""
    found = processes.of_cluster(site.cluster.home, site.cluster.subnet)
    return [process for process in found if module_of(process).startswith(module)]


def classifies(process: psutil.Process) -> bool:
    """Whether it shares memory with the worker that forked it; one that only looks for the master ends by itself."""
    with suppress(OSError):  # it has ended since it was found
        return "/dev/zero" in Path(f"/proc/{process.pid}/maps").read_text()
    return False


@dataclass
class Work:
    """A job under way whose processes that classify stand still."""

    site: Site
    client: Command
    output: str
    job_id: str = ""
    held: dict[int, psutil.Process] = field(default_factory=dict)

    def hold(self) -> bool:
        """Wait until each node works, and stop what works there; False if all was done before that."""
        for step in (self._is_found, self._all_held, self._all_working):
            until(partial(self._has_ended_or, step))
        if self._has_ended():
            assert self.client.process.returncode == 0, self.client.err.read_text()
            self.go_on()
        return not self._has_ended()

    def go_on(self) -> None:
        """Let it work again; nothing happens when it does so already."""
        while self.held:
            _, process = self.held.popitem()
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _ask(self) -> Any:
        """What the application master says, through the ResourceManager's proxy; None once it has ended."""
        with urlopen(f"{self.proxy}status", timeout=60) as answer, suppress(json.JSONDecodeError):
            return json.load(answer)
        return None  # YARN has shown a page of its own

    @property
    def proxy(self) -> str:
        """The application master's page, as the ResourceManager links it."""
        return f"{self.site.cluster.rm_http}/proxy/{self.job_id}/"

    def _has_ended(self) -> bool:
        return self.client.process.poll() is not None

    def _has_ended_or(self, step: Callable[[], bool]) -> bool:
        return self._has_ended() or step()

    def _is_found(self) -> bool:
        if found := running(self.site, self.output):
            self.job_id = found["id"]
        return found is not None

    def _all_held(self) -> bool:
        workers = {process.pid: process for process in working(self.site, "jobs.worker")}
        parents = set()
        for process in workers.values():
            with suppress(psutil.NoSuchProcess):  # it has ended since it was found
                if (parent := process.ppid()) not in workers or not classifies(process):
                    continue
                if process.pid not in self.held:
                    process.suspend()
                    self.held[process.pid] = process
                parents.add(parent)
        return len(parents) == len(self.site.cluster.nodes)

    def _all_working(self) -> bool:
        found = self._ask()
        return found is not None and all(node["state"] == "working" for node in found["nodes"])

    def end(self) -> None:
        """Whatever a test has left of it."""
        self.client.end()
        if working(self.site) and self.job_id:
            succeed(self.site.nodewise("job", "kill", self.job_id))


@pytest.fixture(scope="module")
def site(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    load_pictures(site.cluster, tmp_path_factory.mktemp("many"), MANY)
    return site


def told(client: Command, node: str) -> list[str]:
    """What a client without a terminal wrote of a node."""
    return [line for line in client.err.read_text().splitlines() if re.match(rf"{node} \d+ of 40; ", line)]


def begin_held(site: Site, folder: Path, output: str, terminal: int | None = None) -> Work:
    """A job that is held; the nodes may be done with it sooner than they are seen, and then it begins again."""
    for _ in range(MOST_TRIES):
        made = Work(site, begin(site, folder, *submitting(site, output), terminal=terminal), output)
        try:
            if made.hold():
                return made
        except BaseException:
            made.end()
            raise
        site.hdfs().delete(output, recursive=True)
    raise AssertionError("each of them was done before it was held")


@pytest.fixture(scope="module")
def work(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    """One job for the tests that look on; `go_on` lets it end."""
    made = begin_held(site, tmp_path_factory.mktemp("client"), "/out/seen")
    try:
        until(lambda: all(told(made.client, node) for node in site.cluster.nodes))
        yield made
    finally:
        made.end()


@pytest.fixture
def doomed(site: Site, tmp_path: Path) -> Iterator[Callable[..., Work]]:
    """Begins a job that is to be killed."""
    begun: list[Work] = []

    def start(output: str, terminal: int | None = None) -> Work:
        begun.append(begin_held(site, tmp_path / "client", output, terminal))
        return begun[-1]

    yield start
    for one in begun:
        one.end()


def test_the_status_of_a_running_job_tells_of_each_node(work: Work) -> None:
    found = until(lambda: told_by_master(work.site.nodewise("job", "status", work.job_id, "--json")))
    shown = succeed(work.site.nodewise("job", "status", work.job_id))

    assert (found["state"], found["status"]["state"], found["status"]["images"]) == ("RUNNING", "running", MANY)
    assert [node["node_name"] for node in found["status"]["nodes"]] == list(work.site.cluster.nodes)
    assert all(node["planned"] == MANY / 4 for node in found["status"]["nodes"])
    assert [line.split()[0] for line in shown.splitlines() if " of 40" in line] == list(work.site.cluster.nodes)


def test_the_list_of_jobs_tells_how_often_the_application_master_was_started(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # so that no heading is cut
    listed = json.loads(succeed(work.site.nodewise("job", "list", "--json")))
    (heading, *_) = [line for line in succeed(work.site.nodewise("job", "list")).splitlines() if "outcome" in line]

    assert [(one["state"], one["attempt"]) for one in listed if one["application_id"] == work.job_id] == [
        ("RUNNING", 1)
    ]
    assert "attempts" in heading


def test_the_resourcemanager_shows_the_application_master_s_page(work: Work) -> None:
    with urlopen(work.proxy, timeout=60) as answer:
        page = answer.read().decode()

    assert f"<h1>{work.job_id}</h1>" in page
    assert all(f">{node}<" in page for node in work.site.cluster.nodes)


def test_logs_that_are_followed_come_from_all_containers_and_end_with_the_job(work: Work, tmp_path: Path) -> None:
    logs = begin(work.site, tmp_path / "logs", "job", "logs", work.job_id, "-f")
    heard = {("worker", node) for node in work.site.cluster.nodes}

    def all_heard() -> bool:
        found = [match.groups() for line in logs.lines() if (match := PREFIXED.match(line))]
        return heard <= {(role, node) for node, role in found} and "master" in [role for _, role in found]

    try:
        until(all_heard)
        assert logs.process.poll() is None
        work.go_on()
        assert logs.ended() == 0, logs.err.read_text()
    finally:
        logs.end()
    assert all(PREFIXED.match(line) for line in logs.lines())
    assert any(f"master | {MANY} images, makespan" in line for line in logs.lines())


def test_who_waits_without_a_terminal_reads_a_line_for_each_node(work: Work) -> None:
    work.go_on()

    assert work.client.ended() == 0, work.client.err.read_text()
    said = work.client.err.read_text().splitlines()
    assert all(told(work.client, node) for node in work.site.cluster.nodes), said
    assert said[-1] == f"{work.job_id} succeeded"
    assert "\x1b" not in work.client.err.read_text()


def left(work: Work) -> list[Any]:
    """Processes, half-written files and an output of a job that must have left none."""
    output = [work.output] if work.site.hdfs().status(work.output, strict=False) else []
    return [*working(work.site), *(job_files(work.site.cluster) & {work.job_id}), *output]


def test_a_running_job_that_is_killed_leaves_nothing(site: Site, doomed: Callable[..., Work]) -> None:
    before = job_files(site.cluster)
    work = doomed("/out/killed")
    assert len(working(site, "jobs.worker")) >= 8
    assert job_files(site.cluster) - before == {work.job_id}

    assert f"{work.job_id} killed" in succeed(site.nodewise("job", "kill", work.job_id))

    until(lambda: not left(work))
    assert work.client.ended() == 1
    assert f"Error: {work.job_id} killed" in work.client.err.read_text()


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    yield made
    made.close()


def test_ctrl_c_and_k_take_the_job_and_its_token_away(site: Site, screen: Screen, doomed: Callable[..., Work]) -> None:
    work = doomed("/out/interrupted", screen.theirs)
    until(lambda: " of 40" in screen.text.rpartition(work.job_id)[2])  # it is followed, and not only begun
    (made,) = [token for token in site.client().tokens() if token.name == f"job {work.job_id}"]
    assert made.revoked_at is None

    work.client.process.send_signal(signal.SIGINT)
    until(lambda: "[c]ontinue" in screen.text)
    os.write(screen.ours, b"k\n")

    until(lambda: f"{work.job_id} killed" in screen.text)
    assert work.client.ended() == 130
    (revoked,) = [token for token in site.client().tokens() if token.token_id == made.token_id]
    assert revoked.revoked_at is not None
    until(lambda: not left(work))


def test_what_ended_jobs_left_behind_is_swept_when_the_next_one_is_submitted(site: Site) -> None:
    folder = f"/user/{site.cluster.user}/.nodewise"
    hdfs = site.hdfs()
    ended = next(one["id"] for one in applications(site.cluster) if one["state"] in ("FINISHED", "FAILED", "KILLED"))
    before = job_files(site.cluster) - {ended}
    for name, age in (("application_1_0001", UNKNOWN_SECONDS + 60), ("application_1_0002", 0), ("my notes", 1e6)):
        hdfs.makedirs(f"{folder}/{name}")
        hdfs.set_times(f"{folder}/{name}", modification_time=int(1000 * (time.time() - age)))
    hdfs.write(f"{folder}/{ended}/weights", b"of a client that was killed")

    try:
        done = site.submit("/out/swept")

        assert done.returncode == 0, done.stderr
        assert job_files(site.cluster) - before == {"application_1_0002", "my notes"}
        assert "decisions" in hdfs.list(folder)
    finally:
        for name in ("application_1_0002", "my notes"):
            hdfs.delete(f"{folder}/{name}", recursive=True)
