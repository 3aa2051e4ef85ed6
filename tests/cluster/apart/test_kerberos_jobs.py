"""Jobs on a cluster with Kerberos and two of each master: whose they are, what containers may, and who is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.stage import START_SECONDS
from hadoop.local import daemons, health, lifecycle, ports, variables
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer
from jobs.application.package import WORKER_PYTHON
from jobs.images.datasets import make
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.site import succeed, until
from tests.cluster.small_network import small_network

ROOT = Path(__file__).resolve().parents[3]
PICTURES = 20
CAPABILITY = "perf_even"
TOKEN_SECONDS = 20
"""How long a token is good that nobody renews."""
NO_TICKET = {"KRB5CCNAME": "FILE:/nowhere/tickets", "KRB5_CLIENT_KTNAME": ""}
LOG_IN = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, java, start

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
files = FileSystem()
"""
UPLOAD = f"""{LOG_IN}
files.make_folder(target, mode=0o700)
for one in sorted(Path(folder).glob("*.jpg")):
    files.upload(one, f"{{target}}/{{one.name}}")
found = len(files.entries(target))
"""
OWNERS = f"""{LOG_IN}
found = sorted({{str(one.getOwner()) for one in files.java.listStatus(files.path(target))}})
"""
# What a container may, by the tokens that it was given; a folder of this machine gets a copy of these.
USE = """#!{python}
import os, shutil, sys, time
from hdfs_native import Client

copy, seconds = sys.argv[1:]
shutil.copy(os.environ["HADOOP_TOKEN_FILE_LOCATION"], copy)
time.sleep(float(seconds))
print("seen", sorted(one.path for one in Client().list_status("/user/alice/pictures")))
"""
HELD = f"""{LOG_IN}
credentials = java("org.apache.hadoop.security.Credentials").readTokenStorageFile(
    java("java.io.File")(file), java("org.apache.hadoop.conf.Configuration")())
found = sorted((str(one.getKind()), str(one.getService()), str(one.decodeIdentifier().getUser().getShortUserName()))
               for one in credentials.getAllTokens())
"""


@dataclass(frozen=True)
class Place:
    """A cluster, a service that has judged its nodes alike, and a folder for files."""

    cluster: Cluster
    url: str
    folder: Path

    def variables(self, user: str) -> dict[str, str]:
        """The environment of a shell of a user's."""
        told = variables.of(self.cluster, user)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "NODEWISE_"))}
        path = f"{self.cluster.realm.commands}:{os.environ['PATH']}"
        return kept | told | {"PATH": path, "NODEWISE_URL": self.url, "PYTHONPATH": str(ROOT)}

    def nodewise(self, *words: str, **changed: str) -> subprocess.CompletedProcess[str]:
        """A command of alice's."""
        command = [sys.executable, "-m", "nodewise", "--home", str(self.cluster.home), *words]
        environment = self.variables("alice") | changed
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    def kinit(self, *words: str, **changed: str) -> None:
        """Get alice a ticket, by her keytab."""
        subprocess.run(["kinit", "-k", "-i", *words, "alice"], env=self.variables("alice") | changed, check=True)

    def classify(self, output: str, *words: str, **changed: str) -> dict[str, Any]:
        """The report of a job that has ended well."""
        given = ("--input", "hdfs:///user/alice/pictures", "--output", output, "--capability", CAPABILITY)
        more = ("--batch", "8", "--container-wait", "300", *small_network(self.folder), "--wait", "--json")
        done = self.nodewise("job", "submit", *given, *more, *words, **changed)
        report: dict[str, Any] = json.loads(succeed(done))
        return report

    def jobs(self) -> list[dict[str, Any]]:
        """What YARN knows of all jobs."""
        found: list[dict[str, Any]] = json.loads(succeed(self.nodewise("job", "list", "--json")))
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kerberos")
    home = folder / "home"
    service: subprocess.Popen[bytes] | None = None
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
        shown = NO_TICKET | {"NODEWISE_KEYTAB": str(cluster.realm.keytab("alice"))}
        service = subprocess.Popen(serve, cwd=ROOT, env=made.variables("alice") | shown, stdout=subprocess.DEVNULL)
        _judge(made)
        made.kinit()
        make(folder / "pictures", PICTURES)
        yield made
    finally:
        if service:
            service.terminate()  # its submitter ends with it
            service.wait(60)
        lifecycle.down(home)


@pytest.fixture(scope="module")
def alice(place: Place) -> Iterator[Scripts]:
    """Scripts that run beside Hadoop's client with her ticket."""
    told = {name: value for name, value in variables.of(place.cluster, "alice").items() if name != "PATH"}
    with scripts_of(place.cluster, variables=told) as made:
        yield made


@pytest.fixture(scope="module")
def pictures(place: Place, alice: Scripts) -> str:
    """A folder of HDFS that is alice's alone."""
    target = "/user/alice/pictures"
    assert alice.find(UPLOAD, folder=str(place.folder / "pictures"), target=target) == PICTURES
    return target


def _judge(place: Place) -> None:
    until(lambda: _answers(place.url))
    with InfoClient.from_token_file(place.url, place.cluster.home / "service" / "token") as client:
        client.put_producer(Producer(CAPABILITY, cmd="", time_max=86400, kind=Kind.PROGRAM))
        for node in place.cluster.nodes:
            client.put_node(node, f"{node}:8410")
            client.put_value(CAPABILITY, node, 1.0)


def _answers(url: str) -> bool:
    with suppress(InfoError):
        InfoClient(url).producers()
        return True
    return False


def test_who_has_no_ticket_or_an_expired_one_is_told_so_and_nothing_is_submitted(place: Place, tmp_path: Path) -> None:
    before = place.jobs()
    old = {"KRB5CCNAME": f"FILE:{tmp_path}/old"}
    place.kinit("-l", "1s", **old)
    time.sleep(1.5)

    for shown in (NO_TICKET, old):
        done = place.nodewise("job", "run", "--memory", "256", "--wait", "--", "true", **shown)

        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            f"Error: this cluster has Kerberos, and you have no ticket that is valid now in {shown['KRB5CCNAME']}: "
            "run `kinit`, or name a keytab with --keytab"
        )
    assert place.jobs() == before


def test_nobody_is_somebody_else(place: Place) -> None:
    for how in ({"HADOOP_USER_NAME": "bob"}, {"HADOOP_USER_NAME": place.cluster.user}):
        done = place.nodewise("job", "list", **how)

        assert done.returncode == 1
        refused = f"--user {how['HADOOP_USER_NAME']} is refused: this cluster has Kerberos, for which you are alice"
        assert refused in done.stderr


def test_a_ticket_is_enough_to_classify_every_picture(place: Place, alice: Scripts, pictures: str) -> None:
    report = place.classify("hdfs:///user/alice/by_ticket")

    assert report["images"] == PICTURES
    assert sum(node["images"] for node in report["nodes"]) == report["images"]
    assert report["failures"] == []
    assert alice.find(OWNERS, target="/user/alice/by_ticket") == ["alice"]


def test_a_keytab_is_enough_too(place: Place, pictures: str) -> None:
    keytab = str(place.cluster.realm.keytab("alice"))

    report = place.classify("hdfs:///user/alice/by_keytab", **NO_TICKET, NODEWISE_KEYTAB=keytab)

    assert report["images"] == PICTURES


def test_a_service_with_a_keytab_runs_tasks(place: Place) -> None:
    done = place.nodewise("task", "submit", "--memory", "256", "--wait", "--", "sh", "-c", "echo spoken; exit 3")

    assert "exit code 3" in done.stdout + done.stderr
    tags = {tag for job in place.jobs() for tag in job["tags"]}
    assert "kind=task" in tags


def test_containers_get_a_token_of_hdfs_that_is_renewed_while_the_job_runs_and_ends_with_it(
    place: Place, alice: Scripts, pictures: str, tmp_path: Path
) -> None:
    (place.folder / "use").write_text(USE.format(python=WORKER_PYTHON))
    (place.folder / "use").chmod(0o755)
    copy, seconds = tmp_path / "tokens", 2.5 * TOKEN_SECONDS

    done = place.nodewise("job", "run", "--memory", "256", "--wait", "--", "./use", str(copy), str(seconds))

    assert done.returncode == 0, done.stderr
    assert alice.find(HELD, file=str(copy)) == [["HDFS_DELEGATION_TOKEN", "ha-hdfs:nodewise", "alice"]]
    until(lambda: "can't be found in cache" in _use(place, copy))  # YARN cancels it soon after the end


def _use(place: Place, tokens: Path) -> str:
    """What is said to who shows these tokens and no ticket."""
    shown = NO_TICKET | {"HADOOP_TOKEN_FILE_LOCATION": str(tokens)}
    words = [str(WORKER_PYTHON), str(place.folder / "use"), f"{tokens}.again", "0"]
    variables = place.variables("alice") | shown
    done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120, check=False)
    return done.stderr


def test_a_job_ends_whole_when_both_active_masters_are_killed_in_its_middle(
    place: Place, pictures: str, tmp_path: Path
) -> None:
    (place.folder / "use").write_text(USE.format(python=WORKER_PYTHON))
    (place.folder / "use").chmod(0o755)
    copy, seconds = tmp_path / "tokens", 2 * TOKEN_SECONDS
    words = ("job", "run", "--memory", "256", "--json", "--", "./use", str(copy), str(seconds))
    job_id = json.loads(succeed(place.nodewise(*words)))["job_id"]
    until(copy.exists)

    for kind in ("resourcemanager", "namenode"):
        known = health.roles(place.cluster)
        active = next(master for master in place.cluster.masters if known[kind, master] == "active")
        daemon = Daemon(place.cluster, kind, None if active == place.cluster.master else active)
        daemons.find_running(place.cluster)[daemon].kill()

    assert until(lambda: _outcome(place, job_id)) == "SUCCEEDED"


def _outcome(place: Place, job_id: str) -> str:
    """How a job has ended, "" while it runs or nobody can say."""
    done = place.nodewise("job", "list", "--json")
    known = json.loads(done.stdout) if done.returncode == 0 else []
    ended = ("FINISHED", "FAILED", "KILLED")
    return next((str(one["final"]) for one in known if one["application_id"] == job_id and one["state"] in ended), "")
