"""One turn of each side under the load: CPU and memory without readers, then readers, then probes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from bench.info import prometheus, reads, visible
from bench.info.errors import BenchError
from bench.info.figures import Found
from bench.info.processes import usage
from bench.info.prometheus import Prometheus
from bench.info.scale import Scale
from bench.info.server import Service
from bench.info.simulate import sending
from bench.info.wire import Line

PATIENCE_SECONDS = 120.0
PARTS = frozenset({"read", "server", "visible"})


def of_service(service: Service, scale: Scale, parts: Collection[str]) -> tuple[Found, Found]:
    """What was measured, and how the simulated nodes got on. The last node is kept for the probes."""
    *nodes, probe = scale.node_names
    with sending(service.address, service.agents, scale, nodes) as said:
        time.sleep(1.2 * scale.interval)
        await_all_there(service, scale)
        found = _measure(
            parts,
            lambda: usage_of(service.pid, scale.window),
            lambda: reads.measure(service.address, [service.read(name) for name in scale.data_names], scale.reading),
            lambda: visible.of_service(service, scale, probe),
        )
    return found, said


def of_prometheus(side: Prometheus, scale: Scale, parts: Collection[str]) -> Found:
    """The same for Prometheus, which stands still before and after."""
    side.go_on()
    try:
        time.sleep(2 * scale.interval)
        _await_scraped(side, scale)
        queries = [prometheus.query(name) for name in scale.data_names]
        return _measure(
            parts,
            lambda: usage_of(side.process.pid, scale.window),
            lambda: reads.measure(side.address, queries, scale.reading),
            lambda: visible.of_prometheus(side, scale),
        )
    finally:
        side.pause()


def _measure(
    parts: Collection[str], server: Callable[[], Found], read: Callable[[], Found], seen: Callable[[], Found]
) -> Found:
    found: Found = {}
    for part, action in (("server", server), ("read", read), ("visible", seen)):
        found |= action() if part in parts else {}
    return found


def usage_of(pid: int, seconds: float) -> Found:
    """CPU and memory of a server, over so long; and longer where it never had its turn in that time."""
    before = after = usage(pid)
    until = time.monotonic() + PATIENCE_SECONDS
    while after.cpu == before.cpu and time.monotonic() < until:
        time.sleep(seconds)
        after = usage(pid)
    return {"server_cores": after.cores(before), "server_rss_bytes": float(after.rss)}


def await_all_there(service: Service, scale: Scale) -> None:
    """Wait until a reader gets a fresh value of every node that reports; BenchError when that takes too long."""
    until = time.monotonic() + PATIENCE_SECONDS
    while missing := set(scale.node_names[:-1]) - _fresh_nodes(service, scale):
        if time.monotonic() > until:
            raise BenchError(f"the service shows no fresh value of {len(missing)} nodes, for example {min(missing)}")
        time.sleep(0.1)


def _fresh_nodes(service: Service, scale: Scale) -> set[str]:
    return {row["node_name"] for row in service.values(scale.data_names[0]) if row["state"] == "fresh"}


def _await_scraped(side: Prometheus, scale: Scale) -> None:
    """Wait until it has scraped every node lately; BenchError when that takes too long."""
    until = time.monotonic() + PATIENCE_SECONDS
    line = Line(side.address)
    try:
        while True:
            measured = prometheus.values(line.ask(prometheus.query(scale.data_names[0])))
            old = [node for node, value in measured.items() if time.monotonic() - value > 2 * scale.interval]
            if not old and len(measured) == scale.nodes:
                return
            if time.monotonic() > until:
                raise BenchError(
                    f"Prometheus has {len(measured)} of {scale.nodes} nodes, {len(old)} of them not scraped lately"
                )
            time.sleep(0.1)
    finally:
        line.close()
