"""The cluster and the site that many modules use, one after another: each begins with one that is whole.

What a module has killed is started again, what it has registered is forgotten, and what cannot be mended is replaced.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from hdfs import InsecureClient

from bench.stage import PATIENT, START_SECONDS
from hadoop.errors import HadoopError
from hadoop.local import daemons, lifecycle, processes
from hadoop.local.lifecycle import Cluster
from hadoop.rest.pages import Pages
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Producer, Scope
from tests.cluster.site import BROKEN, EXAMPLES, PICTURES, Site, job_files, nodewise, succeed, until

NODES = 4
LOADED = "/data/images"
USUAL_SECONDS = 60.0
STILL_RUN = {"cpu_free_ratio", "load_1m"}
"""Of what ships, the only values that are measured more often: the others would take a twentieth of the machine."""
Catalogue = tuple[dict[str, Producer], dict[str, dict[str, tuple[bool, float]]]]


class Standing:
    """One cluster in a folder of its own, and the service, agents and images on it once somebody asks for them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.pictures = folder / "pictures"
        self.service: subprocess.Popen[bytes] | None = None
        self._first: Catalogue | None = None
        self._bytes = 0
        self._changed: set[str] = set()

    def cluster(self) -> Cluster:
        """The cluster with all its daemons at work by the usual settings, and no application or files of one left."""
        try:
            self._end_changed()
            cluster = lifecycle.up(self.home, nodes=NODES, ready_seconds=START_SECONDS)
        except HadoopError:
            lifecycle.down(self.home)
            cluster = lifecycle.up(self.home, nodes=NODES, ready_seconds=START_SECONDS)
        _end_applications(cluster)
        _take_files(cluster)
        return cluster

    def note_changed(self, *kinds: str) -> None:
        """The settings of daemons of these kinds are not the usual ones: whoever comes next needs them anew."""
        self._changed |= set(kinds)

    def _end_changed(self) -> None:
        """End daemons with other settings; `up` writes the usual ones before it starts what is missing."""
        if self._changed:
            for daemon, process in daemons.find_running(lifecycle.load(self.home)).items():
                if daemon.kind in self._changed:
                    with suppress(psutil.NoSuchProcess):  # it has ended since it was found
                        process.kill()
                    process.wait(60)
        self._changed = set()

    def site(self) -> Site:
        """The site with its agents, images and catalogue as at first."""
        cluster = self.cluster()
        made = Site(cluster, f"http://{cluster.master}:8400", self.home / "service" / "token")
        if self._first is None or not self._is_mended(made):
            self._make(made)
        self._load(made)
        return made

    def end_site(self) -> None:
        """End the service and the agents, which would take time from whatever runs next; the cluster goes on."""
        if self.service:
            self.service.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.service.wait(60)
            self.service.kill()
            self.service.wait()
            self.service = None
        agents = []
        for file in self.home.glob("agents/*/agent.pid"):
            with suppress(psutil.NoSuchProcess, FileNotFoundError, ValueError):
                agent = psutil.Process(int(file.read_text()))
                if str(self.home) in " ".join(agent.cmdline()):  # else somebody has got its number since
                    agent.terminate()
                    agents.append(agent)
        until(lambda: not any(map(processes.is_alive, agents)))
        self._first = None

    def end(self) -> None:
        """End everything."""
        if self.service:
            self.service.kill()
            self.service.wait()
        lifecycle.down(self.home)

    def _make(self, made: Site) -> None:
        """A service that knows nothing but the nodes and what ships."""
        self.end_site()
        shutil.rmtree(self.home / "service", ignore_errors=True)
        self._serve(made)
        where = ["--directory", str(self.home / "agents" / "{node}"), "--allow", str(EXAMPLES)]
        config = str(self.home / "cluster" / "ssh" / "config")
        succeed(nodewise(self.home, "node", "add", "-F", config, *where, *made.cluster.nodes, url=made.url))
        _calm(made)
        self._first = _catalogue(made)

    def _serve(self, made: Site) -> None:
        serve = [sys.executable, "-m", "nodewise", "--home", str(self.home), "serve", "--host", made.cluster.master]
        self.service = subprocess.Popen(serve, stdout=subprocess.DEVNULL)
        until(lambda: _answers(made.url))

    def _is_mended(self, made: Site) -> bool:
        """Forget what was registered since; False when that does not make it what it was."""
        try:
            if self.service is None or self.service.poll() is not None:
                self._serve(made)
            with made.client() as client:
                until(lambda: {node.state for node in client.nodes()} == {"ready"}, 30)
            assert self._first is not None
            _restore(made, *self._first)
            return _catalogue(made) == self._first
        except (InfoError, AssertionError):
            return False

    def _load(self, made: Site) -> None:
        """Images in HDFS, unless they are there."""
        found = made.hdfs().status(LOADED, strict=False)
        if found and self._bytes and made.hdfs().content(LOADED)["length"] == self._bytes:
            return
        if not self.pictures.exists():
            succeed(made.nodewise("images", "make", str(self.pictures), "-n", str(PICTURES)))
            _spoil(self.pictures)
        load = [f"hdfs://{LOADED}", "--keep-broken", "--overwrite", "--json"]
        loaded = succeed(made.nodewise("images", "load", str(self.pictures), *load))
        assert json.loads(loaded)["loaded"] == PICTURES + len(BROKEN)
        self._bytes = made.hdfs().content(LOADED)["length"]


def _answers(url: str) -> bool:
    try:
        InfoClient(url).producers()
    except InfoError:
        return False
    return True


def _catalogue(made: Site) -> Catalogue:
    """All that is registered, and where it runs."""
    with made.client() as client:
        producers = {one.data_name: replace(one, version=0) for one in client.producers()}
        slots = {
            node.node_name: {
                slot.data_name: (slot.running, slot.interval)
                for slot in client.slots(node.node_name).slots
                if slot.scope is Scope.NODE
            }
            for node in client.nodes()
        }
    return producers, slots


def _calm(made: Site) -> None:
    """Stop what measures often."""
    _, slots = _catalogue(made)
    with made.client() as client:
        for node, found in slots.items():
            for name, (is_running, interval) in found.items():
                if is_running and interval < USUAL_SECONDS and name not in STILL_RUN:
                    client.put_slot(node, name, running=False)


def _restore(made: Site, producers: dict[str, Producer], slots: dict[str, dict[str, tuple[bool, float]]]) -> None:
    """Forget producers that are new or changed, with all their values and slots, and register what was there."""
    now, running = _catalogue(made)
    with made.client() as client:
        changed = {name for name in now.keys() | producers.keys() if now.get(name) != producers.get(name)}
        for name in changed & now.keys():
            client.delete_producer(name)
        for name in changed & producers.keys():
            client.put_producer(producers[name])
        for node, wanted in slots.items():
            for name in running.get(node, {}).keys() - wanted.keys() - changed:
                client.delete_slot(node, name)
            for name, (runs, interval) in wanted.items():
                if name in changed or running.get(node, {}).get(name) != (runs, interval):
                    usual = interval == producers[name].time_max
                    client.put_slot(node, name, runs, None if usual else interval)


def _end_applications(cluster: Cluster) -> None:
    """Kill what YARN has not ended, and wait until it has."""

    def under_way() -> list[dict[str, Any]]:
        path = "/ws/v1/cluster/apps?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
        answer = Pages("ResourceManager", cluster.rm_http, PATIENT).read_json(path, "the jobs")
        found: list[dict[str, Any]] = (answer["apps"] or {}).get("app", [])
        return found

    for application in under_way():
        killed = nodewise(cluster.home, "job", "kill", application["id"])
        print(killed.stderr)  # for whoever reads why it goes on
    until(lambda: not under_way())


def _take_files(cluster: Cluster) -> None:
    """Delete what a test that failed has left of its applications, which the tests of others would find."""
    hdfs = InsecureClient(cluster.namenode_http, user=cluster.user)
    for name in job_files(cluster):
        hdfs.delete(f"/user/{cluster.user}/.nodewise/{name}", recursive=True)


def _spoil(pictures: Path) -> None:
    """Add a truncated JPEG and a text that calls itself one."""
    whole = sorted(pictures.glob("*.jpg"))[0].read_bytes()
    (pictures / "zz_cut.jpg").write_bytes(whole[: len(whole) // 2])
    (pictures / "zz_text.jpg").write_text("these are words")
