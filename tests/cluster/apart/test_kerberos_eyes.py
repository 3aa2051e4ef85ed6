"""Whose eyes the dashboard looks with: with Kerberos, services show users what a real Hadoop shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from bench.stage import START_SECONDS
from hadoop.local import lifecycle, variables
from hadoop.local.lifecycle import Cluster
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from tests.cluster.site import ANSWER_SECONDS, succeed, until
from tests.jobs.decisions import decide
from tests.ports import free_port
from tests.recipes.pages import block
from tests.recipes.shell import Shell

ROOT = Path(__file__).resolve().parents[3]
USERS = ("alice", "bob")
NO_TICKET = {"KRB5CCNAME": "FILE:/nowhere/tickets", "KRB5_CLIENT_KTNAME": ""}
WRITE = """
import sys
from pathlib import Path
from hadoop.rest.addresses import namenode_addresses
from hadoop.rest.webhdfs_writing import WritableHdfs

WritableHdfs(namenode_addresses(Path(sys.argv[1])), "").write(sys.argv[2], sys.stdin.buffer.read())
"""


@dataclass(frozen=True)
class Service:
    """A service with the keytab of one user, and tokens of alice and bob."""

    url: str
    tokens: dict[str, str]

    def ask(self, user: str, path: str) -> tuple[int, Any]:
        """The status, and the answer or the sentence of the refusal."""
        request = Request(f"{self.url}/api/v1{path}", headers={"Authorization": f"Bearer {self.tokens[user]}"})
        try:
            with urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as refused:
            return refused.code, json.loads(refused.read())["error"]["message"]

    def see(self, user: str, path: str) -> tuple[int, Any]:
        """How many files are shown of a path once they are listed, or how it is refused."""
        status, shown = until(lambda: found if (found := self.ask(user, f"/path?path={path}"))[0] != 202 else None)
        return status, shown["files"] if status == 200 else shown

    def logs(self, user: str, job_id: str) -> list[tuple[int, Any]]:
        """What is shown of the output of each container of a job."""
        found = self.ask(user, f"/jobs/{job_id}/logs")[1]["containers"]
        return [self.ask(user, f"/jobs/{job_id}/logs?container={one['container_id']}") for one in found]


@dataclass(frozen=True)
class Place:
    """A cluster with a picture and a job of alice's, a service that is a proxy user, and one that is none."""

    cluster: Cluster
    job_id: str
    proxy: Service
    other: Service


def environment(cluster: Cluster, user: str) -> dict[str, str]:
    """That of a shell of a user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "NODEWISE_"))}
    path = f"{cluster.realm.commands}:{os.environ['PATH']}"
    return kept | variables.of(cluster, user) | {"PATH": path, "PYTHONPATH": str(ROOT)}


def write(cluster: Cluster, user: str, path: str, content: bytes) -> None:
    """A file of HDFS."""
    command = [sys.executable, "-c", WRITE, str(cluster.conf_dir), path]
    subprocess.run(command, env=environment(cluster, user), input=content, check=True, timeout=120)


@contextmanager
def serving(cluster: Cluster, user: str, home: Path, *words: str) -> Iterator[Service]:
    """A service with the keytab of a user."""
    url = f"http://{cluster.master}:{(port := free_port(cluster.master))}"
    command = [sys.executable, "-m", "nodewise", "--home", str(home), "serve", "--host", cluster.master]
    shown = NO_TICKET | {"NODEWISE_KEYTAB": str(cluster.realm.keytab(user))}
    service = subprocess.Popen(
        [*command, "--port", str(port), *words], env=environment(cluster, user) | shown, stdout=subprocess.DEVNULL
    )
    try:
        until(lambda: urlopen(f"{url}/healthz", timeout=10).status == 200)
        admins = home / "service" / "token"
        shell = Shell(home, home / "work", {"NODEWISE_URL": url, "NODEWISE_TOKEN_FILE": str(admins)})
        shell.run(block("whose-eyes"))
        tokens = {"alice": (shell.folder / "alice.token").read_text().strip()}
        with InfoClient.from_token_file(url, admins, ANSWER_SECONDS) as admin:
            yield Service(url, tokens | {"bob": admin.create_token("bob", Role.USER)[1]})
    finally:
        service.terminate()
        service.wait(60)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("eyes")
    home = folder / "home"
    try:
        cluster = lifecycle.up(home, nodes=1, kerberos=True, principals=(*USERS, "svc"), ready_seconds=START_SECONDS)
        for user in (cluster.user, "alice"):
            subprocess.run(["kinit", "-k", "-i", user], env=environment(cluster, user), check=True)
        words = ["job", "run", "--memory", "256", "--wait", "--json", "--", "echo", "spoken"]
        command = [sys.executable, "-m", "nodewise", "--home", str(home), *words]
        done = subprocess.run(
            command, env=environment(cluster, "alice"), capture_output=True, text=True, timeout=600, check=False
        )
        job_id = json.loads(succeed(done))["job_id"]
        write(cluster, "alice", "/user/alice/pictures/one.jpg", b"a picture")
        write(cluster, "alice", f"/user/alice/.nodewise/decisions/{job_id}.json", decide().to_bytes())
        write(cluster, cluster.user, "/data/one.jpg", b"a picture of all")
        with ExitStack() as services:
            proxy = services.enter_context(serving(cluster, cluster.user, folder / "proxy"))
            other = services.enter_context(serving(cluster, "svc", folder / "other", "--open-path", "hdfs:///data/"))
            yield Place(cluster, job_id, proxy, other)
    finally:
        lifecycle.down(home)


def test_a_proxy_user_shows_each_user_what_is_his(place: Place) -> None:
    seen = {user: place.proxy.see(user, "/user/alice/pictures") for user in USERS}
    assert seen["alice"] == (200, 1)
    assert seen["bob"][0] == 403
    assert seen["bob"][1].startswith("HDFS refused /user/alice/pictures to bob: Permission denied: user=bob")
    for call in (f"/jobs/{place.job_id}", f"/jobs/{place.job_id}/logs", f"/jobs/{place.job_id}/decision"):
        assert place.proxy.ask("alice", call)[0] == 200, call
        assert place.proxy.ask("bob", call)[0] == 404, call
    assert [len(place.proxy.ask(user, "/jobs")[1]["jobs"]) for user in USERS] == [1, 0]
    assert any("spoken" in shown["text"] for status, shown in place.proxy.logs("alice", place.job_id) if status == 200)


def test_any_other_service_shows_open_paths_and_own_jobs(place: Place) -> None:
    for user in USERS:
        status, said = place.other.see(user, "/user/alice/pictures")
        assert status == 403
        assert f"for Hadoop says: User: svc is not allowed to impersonate {user}: make it a proxy user" in said
        assert place.other.see(user, "/data") == (200, 1)
    job = f"/jobs/{place.job_id}"
    assert [place.other.ask(user, job)[0] for user in USERS] == [200, 404]
    assert [place.other.ask(user, f"{job}/decision")[0] for user in USERS] == [403, 403]
    status, said = place.other.logs("alice", place.job_id)[0]
    assert (status, "does not show the stdout of" in said) == (503, True), "svc is no admin of YARN's"
