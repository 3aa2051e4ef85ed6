"""A newcomer's and a researcher's recipes, one after another, on a smaller cluster than the README starts."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from bench.stage import START_SECONDS
from hadoop.local import lifecycle
from infosvc.wire.client import InfoClient
from infosvc.wire.records import State
from tests.infosvc.shipping.conftest import end_agents
from tests.recipes.pages import block
from tests.recipes.shell import Shell, changed, stop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(2400)]

URL = "http://127.0.0.1:8400"  # as the pages have it: nothing else may listen there
NODES = 2
"""Fewer than the page has, as each takes a part of the time."""
PICTURES = 100


@dataclass(frozen=True)
class FirstSteps:
    """What "Use it" leaves behind: a cluster, a service, agents, pictures and a job that is done."""

    shell: Shell

    def run(self, text: str, timeout: float = 900) -> str:
        """A recipe, with the agents' files below this test's home: ssh logs in to the real one."""
        where = f"--directory '{self.shell.home}/.nodewise/agents/{{node}}'"
        for words in ("nodewise node add", "nodewise producer push"):
            text = text.replace(words, f"{words} {where}")
        return self.shell.run(text, timeout)

    def said(self, words: str) -> Any:
        """What a command of nodewise says with --json."""
        return json.loads(self.shell.run(f"nodewise {words} --json"))

    def wait_for(self, name: str) -> None:
        """Until every node has a fresh value."""
        until(lambda: len(fresh(name)) == NODES, 300)


def fresh(name: str) -> dict[str, str | None]:
    """The fresh values of a name, by node."""
    with InfoClient(URL, timeout=60) as client:
        return {one.node_name: one.data_value for one in client.data(name) if one.state is State.FRESH}


def until(condition: Callable[[], object], seconds: float) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.2)


REFUSED_WHILE_BUSY = ("the capability of every node is 0", "no fresh perf_history")
"""A node is judged by its free cores, and one that ran nothing by what others did with theirs."""


def submit_once_a_node_has_room(steps: FirstSteps, job: str) -> None:
    """A job that is judged by free cores is refused while other tests keep all of them busy."""
    for _ in range(20):
        until(lambda: any(float(value or 0) > 0 for value in fresh("perf_cpu").values()), 300)
        try:
            steps.run(job)
        except AssertionError as refused:
            if not any(text in str(refused) for text in REFUSED_WHILE_BUSY):
                raise
        else:
            return
    raise AssertionError("no node had a free core when the job looked, twenty times")


def answers() -> bool:
    """Whether the service is there."""
    with suppress(OSError), urllib.request.urlopen(f"{URL}/readyz", timeout=10) as answer:
        return bool(answer.status == 200)
    return False


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirstSteps]:
    """Both blocks of "Use it", the first of which goes on as long as its service."""
    home = tmp_path_factory.mktemp("newcomer")
    shell = Shell(home, home / "work")
    own = home / ".nodewise"
    assert not answers(), f"somebody else's service listens at {URL}"
    up = "nodewise cluster up"
    fewer = (f"{up} --nodes 4", f"{up} --wait {START_SECONDS:.0f} --nodes {NODES}")
    serving = shell.start(changed(block("use-cluster"), fewer))
    try:
        until(lambda: answers() or serving.poll() is not None, 600)
        assert serving.poll() is None, "the cluster or the service did not start"
        made = FirstSteps(shell)
        before, submit, job = block("use-first-steps").partition("nodewise job submit")
        made.run(before)
        submit_once_a_node_has_room(made, submit + job)
        yield made
    finally:
        end_agents(own / "agents")
        stop(serving)
        lifecycle.down(own)


def test_the_first_job_classifies_every_picture(steps: FirstSteps) -> None:
    rows = steps.said("job result hdfs:///out/run1")

    assert len({row["path"] for row in rows}) == len(rows) == PICTURES
    assert [row["error"] for row in rows if row["error"]] == []


def test_what_a_plan_is_made_from_can_be_seen(steps: FirstSteps) -> None:
    steps.wait_for("perf_history")

    said = steps.run(block("where-knowledge"))

    assert all(node in said for node in fresh("perf_history"))


def test_plans_are_compared_explained_and_made_again(steps: FirstSteps) -> None:
    steps.wait_for("perf_history")

    said = steps.run(changed(block("where-plans"), ("JOB_ID", newest(steps))))

    assert "algorithm1" in said and "maxflow" in said


def test_a_decision_is_replayed_from_its_file(steps: FirstSteps) -> None:
    said = steps.run(block("replay"))

    assert (steps.shell.folder / "decision.json").is_file()
    assert "local_only" in said and "algorithm1" in said


def test_a_network_is_trained_and_its_job_followed(steps: FirstSteps) -> None:
    steps.wait_for("perf_history")
    train, *rest = block("jobs").splitlines(keepends=True)
    # A few steps, as what is learnt is tested elsewhere; and the output of the first job is taken.
    steps.run(changed(train, ("photos.params ", "photos.params --steps 5 --no-int8 ")), 1200)
    followed = next(place for place, line in enumerate(rest) if "JOB_ID" in line)
    submit_once_a_node_has_room(steps, changed("".join(rest[:followed]), ("out/run1", "out/run2")))

    said = steps.run(changed("".join(rest[followed:]), ("JOB_ID", newest(steps))))

    assert said
    assert len(steps.said("job result hdfs:///out/run2")) == PICTURES


def test_a_collector_in_shell_measures_every_node(steps: FirstSteps) -> None:
    (steps.shell.folder / "disk_waiting_processes.sh").write_text(block("collector"))
    assert len(block("collector").splitlines()) == 5

    steps.run(block("collector-started"))

    steps.wait_for("disk_waiting_processes")
    assert all(int(value or "-1") >= 0 for value in fresh("disk_waiting_processes").values())


def test_a_processor_in_python_judges_every_node(steps: FirstSteps) -> None:
    (steps.shell.folder / "perf_scarce.py").write_text(block("processor"))
    assert len(block("processor").splitlines()) <= 25
    *started, planned = block("processor-started").splitlines(keepends=True)

    steps.run("".join(started))
    steps.wait_for("perf_scarce")
    said = steps.run(planned)

    assert all(0 <= float(value or "nan") <= 1 for value in fresh("perf_scarce").values())
    assert "maxflow" in said


def newest(steps: FirstSteps) -> str:
    """The id of the last job."""
    return max(str(one["application_id"]) for one in steps.said("job list"))
