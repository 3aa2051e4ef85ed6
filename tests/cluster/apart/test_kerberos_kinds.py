"""Environments, a task of another user in one, and training from HDFS, with Kerberos and two of each master."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bench.stage import START_SECONDS
from hadoop.local import lifecycle, ports, variables
from hadoop.local.lifecycle import Cluster
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Role
from infosvc.wire.service_options import TIMEOUT_VARIABLE
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from jobs.images import labels
from tests.cluster.site import ANSWER_SECONDS, succeed, until

ROOT = Path(__file__).resolve().parents[3]
READER = ROOT / "tests" / "learning" / "from_hdfs.py"
SAMPLES, CLASSES, EPOCHS = 48, 4, 3
TOKEN_SECONDS = 20
"""How long a token is good that nobody renews."""


@dataclass(frozen=True)
class Place:
    """A cluster, a service that submits tasks as alice, and a folder for files."""

    cluster: Cluster
    url: str
    folder: Path

    def variables(self, user: str = "alice") -> dict[str, str]:
        """The environment of a shell of a user's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "NODEWISE_"))}
        path = f"{self.cluster.realm.commands}:{os.environ['PATH']}"
        told = {"PATH": path, "NODEWISE_URL": self.url, "PYTHONPATH": str(ROOT), TIMEOUT_VARIABLE: str(ANSWER_SECONDS)}
        return kept | variables.of(self.cluster, user) | told

    def nodewise(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of alice's, who has a keytab and no ticket."""
        command = [sys.executable, "-m", "nodewise", "--home", str(self.cluster.home), *words]
        shown = {"KRB5CCNAME": "FILE:/nowhere/tickets", "NODEWISE_KEYTAB": str(self.cluster.realm.keytab("alice"))}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.variables() | shown,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def ask(self, *words: str) -> Any:
        """What a command of alice's prints as JSON."""
        return json.loads(succeed(self.nodewise(*words, "--json")))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kinds")
    home, service = folder / "home", None
    try:
        cluster = lifecycle.up(
            home,
            nodes=2,
            kerberos=True,
            ha=True,
            principals=("alice",),
            token_seconds=TOKEN_SECONDS,
            ready_seconds=START_SECONDS,
        )
        made = Place(cluster, f"http://{cluster.master}:{ports.INFOSVC}", folder)
        serve = [sys.executable, "-m", "nodewise", "--home", str(home), "serve", "--submit", "--host", cluster.master]
        shown = {"KRB5CCNAME": "FILE:/nowhere/tickets", "NODEWISE_KEYTAB": str(cluster.realm.keytab("alice"))}
        service = subprocess.Popen(serve, cwd=ROOT, env=made.variables() | shown, stdout=subprocess.DEVNULL)
        until(lambda: _answers(made.url))
        yield made
    finally:
        if service:
            service.terminate()  # its submitter ends with it
            service.wait(60)
        lifecycle.down(home)


def _answers(url: str) -> bool:
    with suppress(InfoError):
        InfoClient(url).producers()
        return True
    return False


@pytest.fixture(scope="module")
def bob(place: Place) -> Iterator[InfoClient]:
    """A user of the service, whom Hadoop does not know."""
    with InfoClient.from_token_file(place.url, place.cluster.home / "service" / "token", ANSWER_SECONDS) as admin:
        _, token = admin.create_token("bob", Role.USER)
    with InfoClient(place.url, token, ANSWER_SECONDS) as client:
        yield client


def end(client: InfoClient, task_id: str) -> Task:
    """A task once it has ended."""

    def look() -> Task | None:
        task = client.task(task_id)
        return task if task.state.is_final else None

    found: Task = until(look)
    return found


def test_an_environment_is_made_fetched_ahead_and_run_in(place: Place, bob: InfoClient) -> None:
    made = place.ask("env", "make", "plain", "--version", "1", "--package", "packaging==26.4")
    assert (made["is_new"], place.ask("env", "verify", "plain@1")) == (True, {"damaged": []})
    assert [one["name"] for one in place.ask("env", "list")] == ["plain@1"]

    warmed = place.ask("env", "warm", "plain@1", "--all")

    blob = f"sha256-{made['parts'][0]['sha256']}.sqfs"
    assert sorted(warmed["nodes"]) == sorted(place.cluster.nodes)
    for node in place.cluster.nodes:
        assert list((place.cluster.node_dir(node) / "local" / "filecache").glob(f"*/{blob}"))
    program = "import sys, packaging; print(packaging.__file__)"
    ended = end(bob, bob.submit_task(TaskSpec(("python", "-c", program), env="plain@1")).task_id)
    assert (ended.state, ended.reason) == (TaskState.SUCCEEDED, "")
    assert bob.task_log(ended.task_id, "stdout").text == "/opt/env/lib/python3.11/site-packages/packaging/__init__.py\n"


def test_members_read_the_replicas_of_their_own_nodes_by_their_tokens(place: Place) -> None:
    _draw(place.folder / "drawn")
    packs, output = "hdfs://nodewise/user/alice/packs", "hdfs:///user/alice/read"
    succeed(place.nodewise("images", "pack", "drawn", packs, "--file-size", "6k"))
    words = ("--members", "2", "--output", output, "--file", str(READER), "--memory", "768", "--wait")

    succeed(place.nodewise("train", "submit", *words, "--", "python", READER.name, "packs", "hdfs:///user/alice/packs"))

    nodes = place.ask("train", "report", output)["nodes"]
    reads, local = (sum(node[name] for node in nodes.values()) for name in ("reads", "local_reads"))
    assert reads == local == EPOCHS * SAMPLES  # both nodes hold all


def _draw(folder: Path) -> None:
    """Pictures of some classes, in a folder each."""
    chance, shown = np.random.default_rng(5), {}
    for number in range(SAMPLES):
        name = f"class{number % CLASSES}/{number:03}.png"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(256, size=(20, 24, 3), dtype=np.uint8)).save(folder / name)
        shown[name] = f"class{number % CLASSES}"
    labels.write(folder, shown, sorted(set(shown.values())))
