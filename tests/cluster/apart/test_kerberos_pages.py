"""What reads Hadoop's pages or writes over WebHDFS, on a cluster with Kerberos and two of each master: by a ticket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bench.stage import START_SECONDS
from hadoop.local import daemons, health, lifecycle, ports, variables
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from jobs.images.datasets import make
from tests.cluster.hadoop_scripts import Scripts, scripts_of
from tests.cluster.site import succeed, until

ROOT = Path(__file__).resolve().parents[3]
PICTURES = 12
NO_TICKET = {"KRB5CCNAME": "FILE:/nowhere/tickets", "KRB5_CLIENT_KTNAME": ""}
KINIT = r"run `kinit`, or name a keytab with KRB5_CLIENT_KTNAME"
# One listing for the whole process, as a master has it: its first call is before the failover, its last one behind it.
PAGES = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.listing import Listing

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
sys.kept_listing = getattr(sys, "kept_listing", None) or Listing(FileSystem())
found = [sum(len(page.partialListing) for page in sys.kept_listing.pages(folder)), sorted(sys.kept_listing.racks())]
"""


@dataclass(frozen=True)
class Place:
    """A cluster, and the folder in which commands run."""

    cluster: Cluster
    folder: Path

    def variables(self, user: str = "alice") -> dict[str, str]:
        """The environment of a shell of a user's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "NODEWISE_"))}
        path = f"{self.cluster.realm.commands}:{os.environ['PATH']}"
        return kept | variables.of(self.cluster, user) | {"PATH": path, "PYTHONPATH": str(ROOT)}

    def nodewise(self, *words: str, user: str = "alice", **changed: str) -> subprocess.CompletedProcess[str]:
        """A command of a user's."""
        command = [sys.executable, "-m", "nodewise", "--home", str(self.cluster.home), *words]
        environment = self.variables(user) | changed
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    def doctor(self, **changed: str) -> dict[str, Any]:
        """Its findings by name."""
        done = self.nodewise("doctor", "--json", **changed)
        return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}

    def load(self, target: str) -> int:
        """How many pictures have been loaded into a folder of HDFS."""
        done = self.nodewise("images", "load", "pictures", target, "--json")
        return int(json.loads(succeed(done))["loaded"])

    def active(self, kind: str) -> str:
        return next(master for master in self.cluster.masters if health.roles(self.cluster)[kind, master] == "active")

    def end_active(self, kind: str) -> str:
        """Kill the active one of a kind; the master that takes over, once it has."""
        before = self.active(kind)
        (other,) = set(self.cluster.masters) - {before}
        one = Daemon(self.cluster, kind, None if before == self.cluster.master else before)
        daemons.find_running(self.cluster)[one].kill()
        until(lambda: health.roles(self.cluster)[kind, other] == "active")
        return other


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("pages")
    home = folder / "home"
    try:
        cluster = lifecycle.up(
            home, nodes=2, kerberos=True, ha=True, principals=("alice", "bob"), ready_seconds=START_SECONDS
        )
        made = Place(cluster, folder)
        subprocess.run(["kinit", "-k", "-i", "alice"], env=made.variables(), check=True)
        make(folder / "pictures", PICTURES)
        assert made.load("hdfs://nodewise/user/alice/pictures") == PICTURES
        yield made
    finally:
        lifecycle.down(home)


@pytest.fixture(scope="module")
def alice(place: Place) -> Iterator[Scripts]:
    """Scripts that run beside Hadoop's client with her ticket."""
    told = {name: value for name, value in place.variables().items() if name not in ("PATH", "PYTHONPATH")}
    with scripts_of(place.cluster, variables=told) as made:
        yield made


@pytest.fixture(scope="module")
def board(place: Place) -> Iterator[Callable[[str], Any]]:
    """What a service with alice's keytab answers to a call of an admin's, who sees what she sees."""
    host = place.cluster.master
    url = f"http://{host}:{ports.INFOSVC}"
    serve = [sys.executable, "-m", "nodewise", "--home", str(place.cluster.home), "serve", "--host", host]
    shown = NO_TICKET | {"NODEWISE_KEYTAB": str(place.cluster.realm.keytab("alice"))}
    service = subprocess.Popen(serve, cwd=ROOT, env=place.variables() | shown, stdout=subprocess.DEVNULL)

    def ask(path: str) -> Any:
        token = (place.cluster.home / "service" / "token").read_text().strip()
        request = Request(f"{url}/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
        with urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    try:
        until(lambda: urlopen(f"{url}/healthz", timeout=60).status == 200)
        yield ask
    finally:
        service.terminate()
        service.wait(60)


def files_shown(board: Callable[[str], Any], path: str) -> int:
    """How many files the dashboard shows of a path, once it has listed them."""
    shown = until(lambda: (found := board(f"/path?path={path}"))["state"] == "ready" and found)
    return int(shown["files"])


def test_doctor_asks_the_active_masters_and_is_content(place: Place) -> None:
    found = place.doctor()

    assert {found[name]["state"] for name in ("hdfs", "yarn")} == {"ok"}, found
    assert f"https://{place.active('namenode')}:" in found["hdfs"]["what"]
    assert f"http://{place.active('resourcemanager')}:" in found["yarn"]["what"]


def test_without_a_ticket_every_command_says_kinit(place: Place) -> None:
    found = place.doctor(**NO_TICKET)
    for name in ("hdfs", "yarn"):
        assert (found[name]["state"], "kinit" in found[name]["remedy"]) == ("fail", True), found[name]
    for words in (
        ("images", "load", "pictures", "/user/alice/other"),
        ("images", "pack", "pictures", "/user/alice/other"),
        ("job", "logs", "application_1_0001"),
    ):
        done = place.nodewise(*words, **NO_TICKET)
        assert done.returncode == 1
        assert KINIT in done.stderr, (words, done.stderr)
        assert "not known" not in done.stderr


def test_a_folder_of_somebody_else_is_refused_by_hdfs_itself(place: Place) -> None:
    done = place.nodewise("images", "load", "pictures", "hdfs://nodewise/user/bob/pictures")
    assert done.returncode == 1
    assert "Permission denied: user=alice" in done.stderr


def test_a_name_service_that_is_not_this_one_is_named(place: Place) -> None:
    done = place.nodewise("images", "load", "pictures", "hdfs://elsewhere/user/alice/pictures")
    assert "names the HDFS at elsewhere, and images can go to the one at nodewise only" in done.stderr


def test_pictures_are_packed_with_a_ticket(place: Place) -> None:
    done = place.nodewise("images", "pack", "pictures", "hdfs://nodewise/user/alice/packed", "--json")
    assert json.loads(succeed(done))["packed"] == PICTURES


def test_a_log_is_shown_to_whom_it_belongs(place: Place) -> None:
    words = ["job", "run", "--memory", "256", "--wait", "--json", "--", "echo", "spoken"]
    job_id = json.loads(succeed(place.nodewise(*words)))["job_id"]

    assert "| spoken" in succeed(place.nodewise("job", "logs", job_id))
    assert "spoken" not in place.nodewise("job", "logs", job_id, user="bob").stdout


def test_the_dashboard_reads_by_the_keytab_of_its_service(place: Place, board: Callable[[str], Any]) -> None:
    assert files_shown(board, "/user/alice/pictures") == PICTURES
    assert until(lambda: "jobs" in board("/jobs"))


@pytest.mark.parametrize("kind", ["namenode", "resourcemanager"])
def test_all_go_on_when_the_other_master_takes_over(
    place: Place, alice: Scripts, board: Callable[[str], Any], kind: str
) -> None:
    nodes = sorted(place.cluster.nodes)
    assert alice.find(PAGES, folder="/user/alice/pictures") == [PICTURES, nodes]
    other = place.end_active(kind)

    assert alice.find(PAGES, folder="/user/alice/pictures") == [PICTURES, nodes]
    assert place.load(f"hdfs://nodewise/user/alice/after_{kind}") == PICTURES
    assert f"//{other}:" in place.doctor()["hdfs" if kind == "namenode" else "yarn"]["what"]
    assert files_shown(board, f"/user/alice/after_{kind}") == PICTURES
    assert until(lambda: "jobs" in board("/jobs"))
    lifecycle.up(place.cluster.home, ready_seconds=START_SECONDS)
