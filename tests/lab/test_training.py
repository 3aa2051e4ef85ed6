"""PyTorch, which the playbook gives to two of the workers and takes away again: a program trains on these meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import lab
from lab.commands import call
from lab.keys import CONFIG
from tests.lab.playbooks import changes, play, sweep
from tests.recipes.pages import block

pytestmark = [pytest.mark.usefixtures("cluster"), pytest.mark.timeout(1800)]

PAIR, OTHERS = ("worker1", "worker2"), ("worker3", "worker4")
IMPORT = ["sudo", "-u", "yarn", "/opt/nodewise/worker/bin/python", "-I", "-c", "import torch; print(torch.__version__)"]


def made(torch: bool) -> dict[str, int]:
    """How much the playbook changed on each of the two."""
    words = ["--tags", "jobs", "--limit", ",".join(PAIR), "-e", f"jobs_torch={json.dumps(torch)}"]
    return changes(play("site.yml", *words))


@pytest.fixture(scope="module")
def trainers(cluster: list[lab.Machine]) -> Iterator[str]:
    """The data name that is 1 where PyTorch is and 0 elsewhere; afterwards no worker has PyTorch."""
    assert min(made(True).values()) > 0
    lab.nodewise("producer", "put", "has_torch", "--kind", "program", "--time-max", "3600")
    for name in PAIR + OTHERS:
        lab.nodewise("data", "put", "has_torch", name, str(int(name in PAIR)))
    yield "has_torch"
    lab.nodewise("producer", "rm", "has_torch")
    assert made(False) == dict.fromkeys(PAIR, 1)
    for name in PAIR:
        with pytest.raises(lab.LabError, match="No module named 'torch'"):
            lab.run(name, IMPORT)


def test_a_second_run_that_gives_pytorch_changes_nothing(trainers: str) -> None:
    assert made(True) == dict.fromkeys(PAIR, 0)


def test_the_program_of_the_manual_trains_on_the_workers_with_pytorch(trainers: str, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(block("training-program"))
    call(["scp", "-q", "-F", CONFIG, program, "master:/tmp/train.py"])
    sweep("/out/trained")
    words = ["--members", "2", "--capability", trainers, "--output", "hdfs:///out/trained", "--memory", "512"]
    words += ["--file", "/tmp/train.py", "--wait", "--json", "--", "python", "train.py"]
    try:
        job = json.loads(lab.nodewise("train", "submit", *words))["job_id"]
        status = json.loads(lab.nodewise("train", "status", job, "--json"))
        report = json.loads(lab.nodewise("train", "report", "hdfs:///out/trained", "--json"))
    finally:
        sweep("/out/trained")
        lab.run("master", ["rm", "/tmp/train.py"])

    assert status["final"] == "SUCCEEDED"
    assert report["steps"] == 50
    assert set(report["nodes"]) == set(PAIR)
    assert [name for name, done in report["nodes"].items() if not done["samples"]] == []
    assert sum(done["samples"] for done in report["nodes"].values()) == 10_000
