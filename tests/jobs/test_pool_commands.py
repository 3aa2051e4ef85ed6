"""What the commands of pools say, to people and in JSON; Hadoop's masters are played, the pool's own listens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.application.status import NodeStatus
from jobs.commands.pool.pool_show import _heading
from jobs.kinds.pool import client as pool_client
from jobs.kinds.pool.about import tell_worker
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.pool.wishes import READY
from tests.in_process import nodewise
from tests.jobs.played import JOB, Hadoop
from tests.jobs.test_pool_client import FOLDER, Place

SITES = {
    "core": {"fs.defaultFS": "hdfs://127.0.0.1:1"},
    "hdfs": {"dfs.namenode.http-address": "{}"},
    "yarn": {"yarn.resourcemanager.webapp.address": "{}"},
}
NODE = NodeStatus("alpha", "working", 0, 0, 0, 0, 0, 0.0)


@pytest.fixture
def place(hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for name, told in SITES.items():
        rows = (f"<property><name>{key}</name><value>{text}</value></property>" for key, text in told.items())
        text = f"<configuration>{''.join(rows)}</configuration>".format(hadoop.address)
        (tmp_path / f"{name}-site.xml").write_text(text)
    monkeypatch.setattr(pool_client, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(pool_client, "AWAY_SECONDS", 0.0)
    made = Place(hadoop, tmp_path, monkeypatch)
    yield made
    for listener in made.listeners:
        listener.close()


def pool(folder: Path, *words: str) -> Any:
    return nodewise("--home", str(folder), "pool", *words, "--hadoop-conf", str(folder), "--user", "me")


def test_every_command_calls_the_application_of_a_pool_alike(place: Place, tmp_path: Path) -> None:
    place.master.answers.append({"jobs": []})

    (listed,) = json.loads(pool(tmp_path, "list", "--json").stdout)
    shown = json.loads(pool(tmp_path, "show", "photos", "--json").stdout)

    assert (listed["name"], listed["job_id"], listed["user"], listed["state"]) == ("photos", JOB, "me", "RUNNING")
    assert (shown["name"], shown["job_id"], shown["idle"]) == ("photos", JOB, "30m")
    assert {node["node_name"]: node["worker"] for node in shown["nodes"]} == {"alpha": "loading"}


def test_pictures_that_have_rows_are_shown_although_another_cannot_be_read(place: Place, tmp_path: Path) -> None:
    best = [{"class_id": 3, "class_name": "cat", "score": 0.75}]
    row = {"path": "cat.jpg", "top5": best, "error": None, "node_name": "alpha", "milliseconds": 3.2}
    place.master.answers.append({"row": row})
    (tmp_path / "cat.jpg").write_bytes(b"bytes")
    pictures = [str(tmp_path / name) for name in ("gone.jpg", "cat.jpg")]
    words = ("--pool", "photos", "--json", "--hadoop-conf", str(tmp_path), "--user", "me")

    done = nodewise("--home", str(tmp_path), "infer", *pictures, *words)

    assert done.returncode == 1
    assert json.loads(done.stdout) == [row]
    assert "cannot be read: No such file or directory" in " ".join(done.stderr.split())


def test_a_pool_whose_master_is_not_up_says_so_and_what_to_do(place: Place, tmp_path: Path) -> None:
    del place.hadoop.stored[f"{FOLDER}/master.json"]

    done = pool(tmp_path, "down", "photos")

    assert done.returncode == 1
    assert " ".join(done.stderr.split()) == (
        f"Error: the master of the pool {JOB} does not answer: it is not up yet; YARN may have no room for it: "
        f"`nodewise job status {JOB}` tells what it does, `nodewise job kill {JOB}` ends it"
    )


@pytest.mark.parametrize(
    ("node", "word"),
    [
        (replace(NODE, said=READY), "ready"),
        (replace(NODE, said=READY, running=3), "working"),
        (NODE, "loading"),
        (replace(NODE, state="starting"), "asked for"),
        (replace(NODE, state="waiting", said="crashed"), "asked for"),
        (replace(NODE, state="left out"), "left out"),
    ],
)
def test_the_state_of_a_worker_is_a_word_of_pools(node: NodeStatus, word: str) -> None:
    assert tell_worker(node) == word


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {},
            "photos (a1): onnx, alexnet, batch 8, 1 vcore a worker, on all nodes, queue q, "
            "ends after 30m without a job or picture",
        ),
        ({"most_nodes": 4, "best_by": "perf"}, "on 4 nodes at most, the best by perf, queue q"),
        ({"model": "0123456789ab", "model_file": "net.onnx"}, "onnx, net.onnx (0123456789ab), batch 8"),
        ({"idle_seconds": None}, "queue q, never ends by itself"),
    ],
)
def test_the_heading_says_what_a_pool_is(changed: dict[str, Any], said: str) -> None:
    about = {
        "name": "photos",
        "job_id": "a1",
        "engine": "onnx",
        "model": "alexnet",
        "model_file": None,
        "batch": 8,
        "vcores": 1,
        "queue": "q",
        "most_nodes": None,
        "best_by": None,
        "idle_seconds": 1800.0,
        "idle": "30m",
    }

    assert said in _heading(about | changed)


def test_a_time_without_a_unit_is_told_in_seconds() -> None:
    assert [PoolSettings(idle=text).idle_text for text in ("45", "90s", "2h")] == ["45 s", "90s", "2h"]


def test_what_no_pool_can_be_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    for words, said in (
        (("--best-by", "perf"), "--best-by perf chooses some of the nodes"),
        (("--idle", "soon"), "--idle is 'soon'"),
        (("--capability-wait", "5"), "No such option"),
    ):
        done = pool(tmp_path, "up", "photos", *words)

        assert done.returncode != 0
        assert said in " ".join(done.stderr.split())
