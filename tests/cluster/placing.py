"""A cluster with the plug-in, a service whose values tests write, and how many containers YARN has put where."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.distributed_shell import containers, first_order, order_named, places, shell
from bench.stage import PATIENT, START_SECONDS
from hadoop.local import lifecycle, site
from hadoop.local.lifecycle import Cluster
from hadoop.rest.pages import Pages
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Kind, Producer
from tests.cluster.site import add_properties, give_containers, until

NAME = "my_order"
POLICY = """
service.url = http://{master}:8400
service.poll-interval-ms = 200
service.timeout-ms = 20000
first.score = my_order higher 0..1
first.herd = 0.001
first.room.memory-mb = 64
second.score = my_order lower 0..1
second.herd = 0.001
second.room.memory-mb = 64
program.score = speed:{{program}} higher 0..1
program.herd = 0.001
program.room.memory-mb = 64
"""
PATIENCE = {"yarn.scheduler.skip.node.multiplier": "120"}
"""YARN passes over a node that it has not heard of for two heartbeats, which is a second: here for a minute."""

LIGHT_JAVA = "JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1"
"""For every JVM in a container: they live for seconds."""


@dataclass
class Placing:
    """A cluster with the plug-in, and a service whose values tests write."""

    cluster: Cluster
    service: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> InfoClient:
        token = self.cluster.home / "service" / "token"
        return InfoClient.from_token_file(f"http://{self.cluster.master}:8400", token, PATIENT.seconds)

    def serve(self, *more: str) -> None:
        policy = self.cluster.conf_dir / site.POLICY_FILE
        words = ["--home", str(self.cluster.home), "serve", "--host", self.cluster.master, "--policy-file", str(policy)]
        words += more
        self.service = subprocess.Popen([sys.executable, "-m", "nodewise", *words], stdout=subprocess.DEVNULL)
        until(lambda: answers(self))

    def stop(self) -> None:
        if self.service:
            self.service.terminate()
            self.service.wait(120)
            self.service = None

    def put(self, *values: float) -> None:
        """One for each node."""
        for node, value in zip(self.cluster.nodes, values, strict=True):
            self.client.put_value(NAME, node, value)

    def settle(self, *values: float) -> None:
        """Put values, and wait until the ResourceManager goes by them, node by node: others may have had the same."""
        self.put(*values)
        wanted = dict(zip(self.cluster.nodes, values, strict=True))
        until(lambda: self.scores() == wanted)

    def scores(self) -> dict[str, float]:
        """What the ResourceManager orders the nodes by now."""
        lines = [line.split() for line in self.health()["First"]]
        return {node.partition(":")[0]: float(score) for node, score, *_ in lines}

    def health(self) -> dict[str, Any]:
        return first_order(self.cluster)

    @contextmanager
    def shell(self, containers: int, *more: str) -> Iterator[Callable[[], Counter[str]]]:
        """Hadoop's distributed shell, sleeping in so many containers; gives how many of them each node has."""
        with shell(self.cluster, ["sleep", "600"], containers, 128, *more):
            try:
                yield lambda: Counter(one.node for one in places(self.cluster) if one.state == "RUNNING")
            except AssertionError as error:
                error.add_note(f"containers: {places(self.cluster)}; applications: {self.applications()}")
                raise

    def applications(self) -> list[dict[str, Any]]:
        """All that YARN remembers."""
        answer = Pages("ResourceManager", self.cluster.rm_http, PATIENT).read_json(
            "/ws/v1/cluster/apps", "the applications"
        )
        found: list[dict[str, Any]] = answer["apps"]["app"]
        return found

    def programs(self) -> Counter[tuple[str, str]]:
        """How many containers each program has on each node, masters among them."""
        tags = {one["id"].removeprefix("application_"): one["applicationTags"] for one in self.applications()}
        running = [one for one in containers(self.cluster) if one.state == "RUNNING"]
        return Counter((tags[one.application], one.node) for one in running)

    def best_of(self, program: str) -> str | None:
        """The node that the plug-in puts first for a program; None while there are no values, or the best two alike."""
        lines = order_named(self.cluster, f"program.{program}").get("First", ())
        if len(lines) < 2:
            return None
        (best, score), (_, next_score) = (line.split()[:2] for line in lines[:2])
        return best.partition(":")[0] if float(score) > float(next_score) else None

    def attributes(self) -> dict[str, dict[str, str]]:
        """What the NodeManagers have published, by node."""
        answer = Pages("ResourceManager", self.cluster.rm_http, PATIENT).read_json("/ws/v1/cluster/nodes", "the nodes")
        nodes = answer["nodes"]["node"]
        found = {node["nodeHostName"]: (node.get("nodeAttributesInfo") or {}) for node in nodes}
        return {
            name: {one["name"]: one["value"] for one in info.get("nodeAttributeInfo", [])}
            for name, info in found.items()
        }


@contextmanager
def placing_on(home: Path, nodes: int, jars: Path | None = None, *, mapreduce: bool = False) -> Iterator[Placing]:
    """A new cluster of this home with the plug-in, and the service; both end with the block."""
    placing = None
    render = site.render

    def render_patiently(cluster: Cluster) -> None:
        render(cluster)
        add_properties(cluster.conf_dir / "yarn-site.xml", PATIENCE)

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(site, "render", render_patiently)
            give_containers(patch, LIGHT_JAVA)
            made = lifecycle.up(
                home, nodes=nodes, jars=jars, plugin=True, mapreduce=mapreduce, ready_seconds=START_SECONDS
            )
            placing = Placing(made)
        policy = placing.cluster.conf_dir / site.POLICY_FILE
        policy.write_text(POLICY.format(master=placing.cluster.master))
        placing.serve()
        placing.client.put_producer(Producer(NAME, cmd="", time_max=3600, kind=Kind.PROGRAM))
        yield placing
    finally:
        if placing:
            placing.stop()
        lifecycle.down(home)


def answers(placing: Placing) -> bool:
    try:
        placing.client.producers()
    except InfoError:
        return False
    return True
