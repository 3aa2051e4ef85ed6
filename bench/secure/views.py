"""What is seen of an agent's values, and what YARN's plug-in has, when the active one of two services fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.distributed_shell import first_order
from bench.info.agent import PYTHON, write_settings
from bench.info.processes import clean_environment, free_port, running
from bench.pair import Pair
from bench.secure.figures import VIEWS
from bench.secure.pairs import OVER_SECONDS, Caller, hit, take_turns, two_services
from bench.secure.scene import Place
from bench.stage import START_SECONDS, until
from hadoop.local import lifecycle, site
from hadoop.local.lifecycle import Cluster
from infosvc.shipping.bundle import build
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Producer

NAME = "bench_seen"
INTERVAL_SECONDS = 0.5
SCRIPT = '#!/bin/sh\nread -r now _ < "$PROC_ROOT/uptime"\necho "$now"\n'
"""A collector that prints another number each time."""
POLICY = "service.url = {url}\nservice.token-file = {token}\nfirst.score = {name} higher 0..1\n"
JITTER_SECONDS = 0.2
"""The plug-in asks once a second; by so much the moment may vary at which it seems to have been answered."""


def measure_views(place: Place, rounds: int) -> None:
    """Each fault in each round; the agent's node is one of a YARN whose nodes are in the order of its values."""
    with two_services(place) as pair, _yarn(place) as cluster, _agent(place.folder, pair, cluster.nodes[0]):
        token = pair.first.home / "service" / "token"
        policy = POLICY.format(url=pair.url, token=token, name=NAME)
        (cluster.conf_dir / site.POLICY_FILE).write_text(policy)
        until(lambda: _has_values(cluster), OVER_SECONDS, "the plug-in has values")
        take_turns(place, rounds, pair, partial(_hit, pair, cluster))


def _hit(pair: Pair, cluster: Cluster, fault: str) -> dict[str, float]:
    return hit(pair, VIEWS, fault, {"agent": Caller(pair, Values()), "plugin": Caller(pair, Answers(cluster))})


class Values:
    """Whether the agent has brought a value since it was asked last."""

    def __init__(self) -> None:
        self._last: str | None = None

    def __call__(self, client: InfoClient, _number: int) -> bool:
        """Ask the services."""
        before, self._last = self._last, next((one.data_value for one in client.data(NAME)), None)
        return self._last not in (None, before)


class Answers:
    """Whether the plug-in has been answered since it was asked last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._answered = cluster, 0.0

    def __call__(self, _client: InfoClient, _number: int) -> bool:
        """Ask the ResourceManager."""
        told = first_order(self._cluster)
        return self.is_news(time.monotonic(), told.get("SnapshotAgeMillis", -1))

    def is_news(self, now: float, age_ms: int) -> bool:
        """Whether an answer of this age (-1 when it has none) has come after the last one that was told."""
        answered = now - age_ms / 1000
        if age_ms < 0 or answered <= self._answered + JITTER_SECONDS:
            return False
        self._answered = answered
        return True


def _has_values(cluster: Cluster) -> bool:
    told = first_order(cluster)
    return bool(told) and not told["StockOrder"]


@contextmanager
def _yarn(place: Place) -> Iterator[Cluster]:
    """A cluster of one node with the plug-in, until the end of the block."""
    home = place.home_of("plugin")
    try:
        yield lifecycle.up(home, nodes=1, plugin=True, ready_seconds=START_SECONDS)
    finally:
        lifecycle.down(home)


@contextmanager
def _agent(folder: Path, pair: Pair, node: str) -> Iterator[None]:
    """The agent of a node, which has brought its first value and goes on until the end of the block."""
    base, port, script = folder / "agent", free_port(), folder / "bin" / "now"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    script.chmod(0o755)
    build(folder / "bundle")
    token = (pair.first.home / "service" / "token").read_text().strip()
    with pair.client(OVER_SECONDS) as client:
        client.put_producer(Producer(NAME, cmd=str(script), time_max=INTERVAL_SECONDS))
        client.put_node(node, f"127.0.0.1:{port}")
        client.put_slot(node, NAME, running=True)
        file = write_settings(base, folder, pair.url, token, node, port)
        argv = [PYTHON, str(folder / "bundle" / "agent.pyz"), "--settings", str(file)]
        with running(argv, base / "log", clean_environment()):
            until(lambda: any(one.data_value for one in client.data(NAME)), OVER_SECONDS, "the agent brings a value")
            yield


VIEWS_SEEN = partial(measure_views, rounds=3)
