"""A cluster with Kerberos and two of each master as its user alice has it: commands, pages, masters to be ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import psutil

from bench.stage import START_SECONDS
from hadoop.local import daemons, health, lifecycle, ports, variables
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster
from infosvc.wire.service_options import TIMEOUT_VARIABLE
from jobs.application.package import WORKER_PYTHON
from tests.cluster.site import ANSWER_SECONDS, succeed, until
from tests.cluster.small_network import small_network

ROOT = Path(__file__).resolve().parents[4]
PICTURES = 12
LOADED = "/user/alice/pictures"
CAPABILITY = "perf_even"
PACKAGES = ("--package", "packaging==26.4", "--package", "hdfs-native==0.14.7")
"""Of the environment `plain@1`."""
TOKEN_SECONDS = 60
"""How long a token is good that nobody renews, as by YARN while no ResourceManager is active."""
OUTLIVING = 1.2 * TOKEN_SECONDS
"""How long a job takes at least that outlives its tokens; other tests run meanwhile."""
NO_TICKET = {"KRB5CCNAME": "FILE:/nowhere/tickets", "KRB5_CLIENT_KTNAME": ""}
# What a container may, by the tokens that it was given; a folder of this machine gets a copy of these.
USE = f"""#!{WORKER_PYTHON}
import os, shutil, sys, time
from hdfs_native import Client

copy, seconds = sys.argv[1:]
shutil.copy(os.environ["HADOOP_TOKEN_FILE_LOCATION"], copy)
time.sleep(float(seconds))
print("seen", sorted(one.path for one in Client().list_status("{LOADED}")))
"""


@dataclass(frozen=True)
class Place:
    """A cluster, and the folder in which commands run."""

    cluster: Cluster
    folder: Path

    @property
    def url(self) -> str:
        """Of the service, once it runs."""
        return f"http://{self.cluster.master}:{ports.INFOSVC}"

    @property
    def token_file(self) -> Path:
        """What the service's admin shows."""
        return self.cluster.home / "service" / "token"

    def variables(self, user: str = "alice") -> dict[str, str]:
        """The environment of a shell of a user's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HADOOP_", "NODEWISE_"))}
        path = f"{self.cluster.realm.commands}:{os.environ['PATH']}"
        told = {"PATH": path, "PYTHONPATH": str(ROOT), "NODEWISE_URL": self.url, TIMEOUT_VARIABLE: str(ANSWER_SECONDS)}
        return kept | variables.of(self.cluster, user) | told

    def by_keytab(self, user: str = "alice") -> dict[str, str]:
        """What a command of a user's has to be told who has a keytab and no ticket."""
        return NO_TICKET | {"NODEWISE_KEYTAB": str(self.cluster.realm.keytab(user))}

    def script_variables(self) -> dict[str, str]:
        """Those of scripts that run beside Hadoop's client as alice."""
        told = variables.of(self.cluster, "alice").items()
        return {name: value for name, value in told if name != "PATH"}

    def start(self, *words: str, user: str = "alice", **changed: str) -> Command:
        """A command of a user's, which goes on."""
        command = [sys.executable, "-m", "nodewise", "--home", str(self.cluster.home), *words]
        pipe, environment = subprocess.PIPE, self.variables(user) | changed
        return Command(subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True))

    def nodewise(self, *words: str, user: str = "alice", **changed: str) -> subprocess.CompletedProcess[str]:
        """A command of a user's, once it has ended."""
        return self.start(*words, user=user, **changed).end()

    def ask_command(self, *words: str, **changed: str) -> Any:
        """What a command of alice's prints as JSON."""
        return json.loads(succeed(self.nodewise(*words, "--json", **changed)))

    def kinit(self, *words: str, **changed: str) -> None:
        """Get alice a ticket, by her keytab."""
        subprocess.run(["kinit", "-k", "-i", *words, "alice"], env=self.variables() | changed, check=True)

    def doctor(self, **changed: str) -> dict[str, Any]:
        """Its findings by name."""
        done = self.nodewise("doctor", "--json", **changed)
        return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}

    def well(self) -> dict[str, Any]:
        """Its findings once both masters are well: one that has no time to answer is not, for that moment."""

        def look() -> dict[str, Any] | None:
            found = self.doctor()
            print(found["hdfs"], found["yarn"])  # for whoever reads why a test has failed
            return found if found["hdfs"]["state"] == found["yarn"]["state"] == "ok" else None

        told: dict[str, Any] = until(look)
        return told

    def load(self, target: str) -> int:
        """How many pictures have been loaded into a folder of HDFS."""
        done = self.nodewise("images", "load", "pictures", target, "--json")
        return int(json.loads(succeed(done))["loaded"])

    def start_classifying(self, output: str, **changed: str) -> Command:
        """A job over all pictures."""
        given = ("--input", f"hdfs://{LOADED}", "--output", output, "--capability", CAPABILITY)
        patience = ("--lease-seconds", "120", "--container-wait", "300")
        more = ("--batch", "8", *patience, *small_network(self.folder), "--wait", "--json")
        return self.start("job", "submit", *given, *more, **changed)

    def start_using(self, copy: Path, seconds: float) -> Command:
        """A job whose container copies its tokens to a file, and uses them after so many seconds."""
        (self.folder / "use").write_text(USE)
        (self.folder / "use").chmod(0o755)
        return self.start("job", "run", "--memory", "256", "--wait", "--json", "--", "./use", str(copy), str(seconds))

    def run_task(self, *words: str) -> str:
        """What a task of alice's has printed, once it has succeeded."""
        task_id, *_ = succeed(self.nodewise("task", "submit", "--memory", "256", "--wait", *words)).split()
        return succeed(self.nodewise("task", "logs", task_id))

    def jobs(self, *states: str) -> dict[str, str]:
        """The tags of each job that YARN knows, by its number, or of those in one of these states."""
        url = f"http://{self.active('resourcemanager')}:{ports.RESOURCEMANAGER_HTTP}/ws/v1/cluster/apps"
        status, text = self.page(f"{url}?states={','.join(states)}" if states else url, "alice")
        assert status == 200, text
        found = (json.loads(text)["apps"] or {}).get("app", [])
        return {str(one["id"]): str(one["applicationTags"]) for one in found}

    def ask(self, path: str) -> Any:
        """What the service answers to a call of its admin's."""
        shown = {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}
        with urlopen(Request(f"{self.url}/api/v1{path}", headers=shown), timeout=60) as answer:
            return json.loads(answer.read())

    def files_shown(self, path: str) -> int:
        """How many files the dashboard shows of a path, once it has listed them."""
        shown = until(lambda: (found := self.ask(f"/path?path={path}"))["state"] == "ready" and found)
        return int(shown["files"])

    def page(self, url: str, user: str | None = None) -> tuple[int, str]:
        """The status and text of a page, read with a ticket of a user or without one."""
        trusted = str(self.cluster.realm.certificates.certificate)
        words = ["curl", "--silent", "--cacert", trusted, "--write-out", "\n%{http_code}"]
        more = ["--negotiate", "--user", ":"] if user else []
        environment = self.variables(user) if user else None
        done = subprocess.run([*words, *more, url], env=environment, capture_output=True, text=True, timeout=60)
        text, _, status = done.stdout.rpartition("\n")
        return int(status), text

    def whole(self) -> None:
        """Start what is missing."""
        lifecycle.up(self.cluster.home, ready_seconds=START_SECONDS)

    def active(self, kind: str) -> str:
        """The master whose daemon of a kind is active, once there is one."""
        found: str = until(lambda: self._find_active(kind))
        return found

    def namenode(self) -> str:
        """The address (scheme://host:port) of the NameNode that is active, once there is one."""
        return self.cluster.namenodes_http[self.cluster.masters.index(self.active("namenode"))]

    def other_than(self, master: str) -> str:
        """The other master."""
        (other,) = set(self.cluster.masters) - {master}
        return other

    def process(self, kind: str, master: str) -> psutil.Process:
        """The daemon of a kind on a master."""
        one = Daemon(self.cluster, kind, None if master == self.cluster.master else master)
        return daemons.find_running(self.cluster)[one]

    def _find_active(self, kind: str) -> str | None:
        known = health.roles(self.cluster)
        return next((master for master in self.cluster.masters if known[kind, master] == "active"), None)


def see_at_work(cluster: Cluster) -> list[lifecycle.DaemonStatus]:
    """Every daemon of a cluster, once all work: one that has no time to answer does not, for that moment."""

    def look() -> list[lifecycle.DaemonStatus] | None:
        told = lifecycle.status(cluster)
        others = [one for one in told if not one.ready]
        print(*others)  # for whoever reads why a test has failed
        return None if others else told

    found: list[lifecycle.DaemonStatus] = until(look)
    return found


@dataclass
class Command:
    """A command that goes on."""

    process: subprocess.Popen[str]
    ended: subprocess.CompletedProcess[str] | None = field(default=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """It is ended, unless it has ended by itself."""
        if self.ended is None:
            self.process.kill()
            self.end()

    def end(self, seconds: float = 600) -> subprocess.CompletedProcess[str]:
        """What it has said, once it has ended by itself."""
        if self.ended is None:
            try:
                out, err = self.process.communicate(timeout=seconds)
            finally:
                self.process.kill()
            self.ended = subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)
        return self.ended

    def report(self) -> Mapping[str, Any]:
        """What it prints as JSON when it has ended well."""
        told: Mapping[str, Any] = json.loads(succeed(self.end()))
        return told
