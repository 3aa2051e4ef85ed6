"""Another kind of job on a real cluster: copies of a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.stage import PATIENT
from hadoop.local.lifecycle import Cluster
from hadoop.rest.resourcemanager import ResourceManager
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer
from jobs.application import following
from tests.cluster.site import Site, applications, nodewise, succeed, told_by_master, until
from tests.recipes.pages import block

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """#!/bin/bash
echo "copy $COPY of $COPIES on $NODE_NAME says: $1"
if [ "$2" = fails ]; then exit 3; fi
if [ "$2" = once ]; then mkdir "$3/seen-$COPY" || exit 0; exit 4; fi
while [ "$2" = waits ]; do sleep 1; done
"""


@pytest.fixture(scope="module")
def client(site: Site) -> InfoClient:
    """A service that knows how fast each node is: the last the fastest, the first of no use."""
    client = site.client()
    client.put_producer(Producer("speed", cmd="", time_max=3600, kind=Kind.PROGRAM, unit="1/s"))
    for value, node in enumerate(site.cluster.nodes):
        client.put_value("speed", node, str(value))
    return client


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "program").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return "./program"


def run(cluster: Cluster, client: InfoClient, *words: str) -> subprocess.CompletedProcess[str]:
    return nodewise(cluster.home, "job", "run", *words, url=client.url)


def job_ids(cluster: Cluster) -> list[str]:
    """Of all jobs, the newest last."""
    return [one["id"] for one in applications(cluster)]


@contextmanager
def followed(cluster: Cluster, job_id: str) -> Iterator[subprocess.Popen[str]]:
    """Somebody who reads a job's logs while it runs."""
    words = [sys.executable, "-m", "nodewise", "--home", str(cluster.home), "job", "logs", job_id, "-f"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(cluster: Cluster, job_id: str) -> list[dict[str, Any]]:
    """What the containers of a job printed."""
    return [json.loads(line) for line in succeed(nodewise(cluster.home, "job", "logs", job_id, "--json")).splitlines()]


def test_copies_run_on_the_best_nodes_and_their_output_is_in_the_logs(
    cluster: Cluster, client: InfoClient, program: str, tmp_path: Path
) -> None:
    words = ["--copies", "2", "--capability", "speed", "--memory", "256", "--wait", "--json"]

    job_id = json.loads(succeed(run(cluster, client, *words, "--", program, "it's $HOME; *")))["job_id"]

    said = {(one["node_name"], one["line"]) for one in lines(cluster, job_id) if one["role"] == "copy"}
    best, second = cluster.nodes[-1], cluster.nodes[-2]
    assert said == {
        (best, f"copy 0 of 2 on {best} says: it's $HOME; *"),
        (second, f"copy 1 of 2 on {second} says: it's $HOME; *"),
    }
    report = json.loads(succeed(nodewise(cluster.home, "job", "report", job_id, "--json")))
    assert (report["kind"], report["state"], report["done"], report["unit"]) == ("command", "succeeded", 2, "copies")
    assert [node["said"] for node in report["nodes"] if node["planned"]] == ["exit code 0", "exit code 0"]
    assert report["section"] == {"Program": program, "Exit codes": "0 (2 x)"}
    shown = succeed(nodewise(cluster.home, "job", "report", job_id, "--html", str(tmp_path / "report.html")))
    page = (tmp_path / "report.html").read_text()
    assert all("2 copies ended with exit code 0" in text and "0 (2 x)" in text for text in (shown, page))


def test_a_copy_that_fails_is_started_again_and_then_the_job_ends_with_its_exit_code(
    cluster: Cluster, client: InfoClient, program: str, tmp_path: Path
) -> None:
    again = run(cluster, client, "--wait", "--memory", "256", "--", program, "hello", "once", str(tmp_path))
    succeed(again)
    assert len([one for one in lines(cluster, job_ids(cluster)[-1]) if one["line"].startswith("copy 0")]) == 2

    failed = run(cluster, client, "--restarts", "1", "--memory", "256", "--wait", "--", program, "hello", "fails")

    assert failed.returncode == 1
    assert "copy 0 on" in failed.stderr
    assert "ended with exit code 3 after 1 restarts" in failed.stderr


def test_a_job_that_runs_can_be_looked_at_and_killed(
    cluster: Cluster, client: InfoClient, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--copies", "3", "--memory", "256", "--json", "--", program, "hello", "waits"]
    job_id = json.loads(succeed(run(cluster, client, *words)))["job_id"]

    def is_at_work() -> bool:
        found = following.ask_proxy(cluster.rm_http, job_id)
        states = [one.state for one in found.nodes] if found else []
        return found is not None and states == ["working"] * 3 and len(found.containers) == 3

    until(is_at_work)
    found = until(lambda: told_by_master(nodewise(cluster.home, "job", "status", job_id, "--json")))["status"]
    assert [one["state"] for one in found["nodes"]] == ["working"] * 3 and len(found["containers"]) == 3
    assert (found["kind"], found["done"], found["of"], found["unit"]) == ("command", 0, 3, "copies")
    printed = until(lambda: [one for one in lines(cluster, job_id) if one["role"] == "copy"])
    assert "says: hello" in printed[0]["line"]
    until(lambda: f"Program: {program}" in succeed(nodewise(cluster.home, "job", "status", job_id)))
    page = ResourceManager(cluster.rm_http).read_proxied(job_id, "/", PATIENT).decode()
    assert f'<th scope="row">Program</th><td class="words">{program}</td>' in page
    assert "own disk" not in page.lower() and f"nodewise job report {job_id} --html" in page
    with followed(cluster, job_id) as logs:
        assert any("says: hello" in line for line in logs.stdout or ())
        assert "killed" in succeed(nodewise(cluster.home, "job", "kill", job_id))
        assert logs.wait(240) == 0
    report = json.loads(succeed(nodewise(cluster.home, "job", "report", job_id, "--json")))
    assert (report["state"], {node["state"] for node in report["nodes"]}) == ("killed", {"ended"})
    listed = json.loads(succeed(nodewise(cluster.home, "job", "list", "--json")))
    assert {one["kind"] for one in listed if one["application_id"] == job_id} == {"command"}
    monkeypatch.setenv("COLUMNS", "200")  # a narrower table would cut the kind
    assert " command " in succeed(nodewise(cluster.home, "job", "list"))


def test_what_the_cluster_cannot_give_is_refused_before_anything_is_submitted(
    cluster: Cluster, client: InfoClient, program: str
) -> None:
    before = job_ids(cluster)

    unknown = run(cluster, client, "--resource", "yarn.io/gpu=1", "--", program)
    too_many = run(cluster, client, "--copies", "99", "--", program)

    assert "this cluster does not know the resource type yarn.io/gpu: it knows memory-mb, vcores" in unknown.stderr
    assert "99 copies need 99 nodes" in too_many.stderr
    assert job_ids(cluster) == before


def test_the_recipe_runs_a_program_on_the_best_nodes(cluster: Cluster, client: InfoClient, tmp_path: Path) -> None:
    call = f'nodewise() {{ "{sys.executable}" -m nodewise --home "{cluster.home}" "$@"; }}\n'
    recipe = block("run-copies").replace("perf_cpu", "speed")
    environment = {**os.environ, "NODEWISE_URL": client.url, "PYTHONPATH": str(ROOT)}

    succeed(
        subprocess.run(
            ["bash", "-ec", call + recipe], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
    )

    said = {one["line"] for one in lines(cluster, job_ids(cluster)[-1]) if one["role"] == "copy"}
    assert f"copy 0 of 2 on {cluster.nodes[-1]} says it's here" in said
