"""Training runs on a real cluster: members in containers that are killed, and masters too, with the same result."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.stage import PATIENT, START_SECONDS
from hadoop.local import daemons, health, lifecycle
from hadoop.local.daemons import Daemon
from hadoop.rest.resourcemanager import ResourceManager
from jobs.application.following import ask_proxy
from tests.cluster.site import Site, find_processes, nodewise, succeed, until
from tests.learning.results import EXACT, PROGRAM, differ, train_alone
from tests.recipes.pages import block

pytestmark = pytest.mark.usefixtures("kept_commands")
HELD = """
import pathlib, runpy, sys, time
go, pause = pathlib.Path(sys.argv.pop(1)), time.sleep

def sleep(seconds):
    if sys._getframe(1).f_code.co_name != "train":
        return pause(seconds)
    end = time.monotonic() + (seconds or 2.5)
    while not go.exists() and time.monotonic() < end:
        pause(0.05)

time.sleep = sleep
runpy.run_path("member.py", run_name="__main__")
"""
"""The program with steps of 2.5 s, or at its pace, until a file is there: not all of them are done before that."""


@pytest.fixture(scope="module")
def alone() -> list[float]:
    """What one process finds."""
    return train_alone()


@pytest.fixture
def submit(site: Site) -> Callable[..., str]:
    """submit("--members", "2", ..., program=("member.py", ...)): the id of a run of the program."""

    def call(*words: str, program: tuple[str, ...] = (PROGRAM.name,)) -> str:
        line = ["train", "submit", "--json", "--file", str(PROGRAM), "--memory", "512", *words]
        ran = nodewise(site.cluster.home, *line, "--", "python", *program, url=site.client().url)
        job_id: str = json.loads(succeed(ran))["job_id"]
        return job_id

    return call


def status(site: Site, job_id: str) -> dict[str, Any]:
    """What the command tells."""
    found: dict[str, Any] = json.loads(succeed(site.nodewise("train", "status", job_id, "--json")))
    return found


def look(site: Site, job_id: str) -> dict[str, Any]:
    """What its application master tells of a run, nothing while there is none; a command would start a JVM for each."""
    status = ask_proxy(site.cluster.rm_http, job_id)
    return status.to_json() if status else {}


def progress(site: Site, job_id: str) -> tuple[int, int]:
    """The attempt and the steps."""
    told = look(site, job_id)
    return int(told.get("attempt", 0)), int(told.get("done", 0))


def training(site: Site, job_id: str) -> dict[str, Any]:
    """What is told of members and generations."""
    found: dict[str, Any] = (look(site, job_id).get("section") or {}).get("training", {})
    return found


def sizes(site: Site, job_id: str) -> list[int]:
    """How many members each generation had."""
    return [len(one["nodes"]) for one in training(site, job_id).get("generations", ())]


def end(site: Site, job_id: str) -> dict[str, Any]:
    """The status of a run once it has ended."""
    manager = ResourceManager(site.cluster.rm_http, site.cluster.user, PATIENT)
    until(lambda: not manager.is_running(job_id))
    return status(site, job_id)


def report(site: Site, run: str) -> dict[str, Any]:
    """By the output of a run, or by its id."""
    found: dict[str, Any] = json.loads(succeed(nodewise(site.cluster.home, "train", "report", run, "--json")))
    return found


def found_by_members(site: Site, job_id: str) -> list[list[float]]:
    """What each member that came to the end has printed."""
    ran = nodewise(site.cluster.home, "train", "logs", job_id, url=site.client().url)
    lines = [line.partition(" | ")[2] for line in ran.stdout.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("[")]


def test_members_and_a_master_that_are_killed_change_nothing_of_what_is_found(
    site: Site, submit: Callable[..., str], alone: list[float], tmp_path: Path
) -> None:
    output, go, held = "/training/killed", tmp_path / "go", tmp_path / "held.py"
    held.write_text(HELD)
    words = ("--members", "2:3", "--output", f"hdfs://{output}", "--file", str(held))
    job_id = submit(*words, program=(held.name, str(go)))

    until(lambda: progress(site, job_id)[1] > 0)
    until(lambda: (status(site, job_id)["status"] or {}).get("done"))
    os.kill(min(find_processes(job_id, held.name)), signal.SIGKILL)  # its store process came later
    until(lambda: training(site, job_id).get("losses"))  # steps that were done before may be told of until then
    _, before = progress(site, job_id)
    until(lambda: progress(site, job_id)[1] > before)
    (master,) = find_processes(job_id, "jobs.kinds")
    os.kill(master, signal.SIGKILL)
    until(lambda: progress(site, job_id) > (2, before))
    go.touch()

    ended = end(site, job_id)
    assert ended["final"] == "SUCCEEDED", ended["diagnostics"]
    found = found_by_members(site, job_id)
    assert len(found) >= 2
    assert max(differ(one, alone) for one in found) < EXACT
    told = report(site, job_id)
    assert (told["steps"], told["checkpoint"]) == (64, 64)
    assert told["losses"] and all(loss["cost_seconds"] is not None for loss in told["losses"])
    assert sum(node["samples"] for node in told["nodes"].values()) > 0


def test_a_node_that_is_added_to_the_cluster_joins_the_members(
    site: Site, submit: Callable[..., str], alone: list[float], tmp_path: Path
) -> None:
    cluster, go, held = site.cluster, tmp_path / "go", tmp_path / "held.py"
    away = set(cluster.nodes[2:])
    for node in away:
        daemons.find_running(cluster)[Daemon(cluster, "nodemanager", node)].kill()
    until(lambda: health.running_nodemanagers(cluster) == set(cluster.nodes) - away)
    held.write_text(HELD)
    words = ("--members", "1:3", "--output", "hdfs:///training/added", "--file", str(held))
    job_id = submit(*words, program=(held.name, str(go), "--pace", "0.08"))
    until(lambda: progress(site, job_id)[1] > 0)

    lifecycle.up(cluster.home, nodes=cluster.size, ready_seconds=START_SECONDS)
    until(lambda: 3 in sizes(site, job_id))
    go.touch()

    ended = end(site, job_id)
    assert ended["final"] == "SUCCEEDED", ended["diagnostics"]
    found = found_by_members(site, job_id)
    assert len(found) == 3 and max(differ(one, alone) for one in found) < EXACT
    generations = [set(one["nodes"]) for one in report(site, job_id)["generations"]]
    assert generations[0] == set(cluster.nodes) - away
    assert len(generations[-1]) == 3 and generations[0] < generations[-1]


def test_a_program_that_fails_ends_the_run_with_its_own_words_and_another_resumes_it(
    site: Site, submit: Callable[..., str], alone: list[float]
) -> None:
    output = "/training/resumed"
    words = ("--members", "1", "--output", f"hdfs://{output}", "--restarts", "0")
    first = submit(*words, program=(PROGRAM.name, "--pace", "0.01", "--break", "nan"))

    assert "the gradient of step 3 is not finite on" in end(site, first)["diagnostics"]

    again = submit(*words)
    assert end(site, again)["final"] == "SUCCEEDED"
    (found,) = found_by_members(site, again)
    assert differ(found, alone) < EXACT
    assert report(site, f"hdfs://{output}")["generations"][0]["from_checkpoint"]


def test_a_run_that_is_stopped_goes_on_with_its_own_program_and_files_and_ends_as_one_process_does(
    site: Site, submit: Callable[..., str], alone: list[float], tmp_path: Path
) -> None:
    output, go, held = "hdfs:///training/stopped", tmp_path / "go", tmp_path / "held.py"
    held.write_text(HELD)
    words = ("--members", "2", "--output", output, "--file", str(held))
    first = submit(*words, program=(held.name, str(go)))
    until(lambda: progress(site, first)[1] > 0)
    early = site.nodewise("train", "resume", output)

    lines = (
        block("training-stop").replace("application_1700000000000_0001", first).replace("hdfs:///out/train1", output)
    )
    stop, resume = (shlex.split(line)[1:] for line in lines.splitlines())

    stopped = json.loads(succeed(site.nodewise(*stop, "--json")))
    told = report(site, output)
    steps = told["steps"]
    assert 0 < steps < 64 and told["stopped"] and told["checkpoint"] == steps
    assert stopped["said"] == f"stopped after {steps} of 64 steps; resume it with nodewise train resume {output}"
    assert "trains with the output /training/stopped now" in early.stderr.replace("\n", " ")
    assert len({tuple(one) for one in found_by_members(site, first)}) == 1
    held.unlink()
    go.touch()
    kept = site.hdfs().status("/training/stopped/files/held.py")

    again = json.loads(succeed(site.nodewise(*resume, "--wait", "--json")))["job_id"]
    found = found_by_members(site, again)
    assert found and max(differ(one, alone) for one in found) < EXACT
    again_kept = site.hdfs().status("/training/stopped/files/held.py")
    assert (kept["permission"], again_kept["fileId"]) == ("640", kept["fileId"])
    told = report(site, output)
    assert (told["steps"], told["stopped"], told["generations"][0]["first_step"]) == (64, False, steps)
    for line, said in (
        (("resume", first), f"{again} has done all 64 steps of the run in /training/stopped"),
        (("resume", "hdfs:///training"), "/training holds no run.json"),
        (("stop", again), f"{again} has ended already: succeeded"),
    ):
        refused = site.nodewise("train", *line)
        assert refused.returncode == 1 and said in refused.stderr.replace("\n", " ")


def test_the_program_of_the_manual_trains_on_the_cluster(site: Site, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(block("training-program"))
    line = block("training-submit").replace("--file train.py", f"--file {program}")

    ran = nodewise(site.cluster.home, *shlex.split(line)[1:], url=site.url)

    assert ran.returncode == 0 and "succeeded" in ran.stderr, ran.stderr
    shown = succeed(nodewise(site.cluster.home, "train", "report", "hdfs:///out/train1"))
    assert "50 steps in" in shown and "generation 1 computes from step 0 on" in shown
