"""How many values a second the service takes: every node reports as soon as its report before was acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

from bench.info import database
from bench.info.errors import BenchError
from bench.info.figures import Found
from bench.info.scale import Scale
from bench.info.server import Service, close, enrol, serving
from bench.info.simulate import Fleet, stamp
from bench.info.wire import Line, drive

Services = dict[str, Service]


@contextmanager
def services(directory: Path, scale: Scale) -> Iterator[Services]:
    """One service for every way of storing and acknowledging, by the key of its figure."""
    directory.mkdir()
    with ExitStack() as held:
        found = {
            "ingest_fast": held.enter_context(serving(directory / "fast", "fast")),
            "ingest_durable": held.enter_context(serving(directory / "durable")),
        }
        if database.program():
            url = held.enter_context(database.mariadb(directory / "mariadb"))
            found["ingest_mariadb"] = held.enter_context(serving(directory / "on-mariadb", database=url))
        for service in found.values():
            enrol(service, scale)
        yield found


def one_round(services: Services, scale: Scale) -> Found:
    """Values acknowledged a second, each service in turn."""
    return {key: _values_per_second(service, scale) for key, service in services.items()}


def _values_per_second(service: Service, scale: Scale) -> float:
    flood = _Flood(service, scale)
    flood.run(scale.ingest / 4)  # every node has a row by then, and everything is warm
    acknowledged = flood.run(scale.ingest)
    flood.close()
    flood.check()
    return acknowledged * scale.names / scale.ingest


class _Flood:
    """Nodes that send at once what they have, and remember what was acknowledged."""

    def __init__(self, service: Service, scale: Scale) -> None:
        self._service = service
        self._name = scale.data_names[0]
        self._fleet = Fleet(scale.data_names, service.agents)
        self._lines = [Line(service.address) for _ in range(min(scale.flood, scale.nodes))]
        # A node has a line of its own, so that none of its reports overtakes another.
        self._nodes = {line: cycle(scale.node_names[at :: len(self._lines)]) for at, line in enumerate(self._lines)}
        self._open: dict[Line, tuple[str, str]] = {}
        self._acknowledged: dict[str, str] = {}

    def run(self, seconds: float) -> int:
        """Send for so long; how many reports were acknowledged in time, of which the first is one in any case."""
        until = time.monotonic() + seconds
        count = 0

        def turn(line: Line) -> bytes | None:
            if time.monotonic() >= until:
                return None
            node_name, now = self._open[line] = next(self._nodes[line]), stamp()
            return self._fleet.report(node_name, now)

        def done(line: Line, _seconds: float) -> None:
            nonlocal count
            count += time.monotonic() < until or not count
            self._acknowledged.update([self._open[line]])

        drive(self._lines, turn, done)
        return count

    def close(self) -> None:
        """Give the connections up."""
        close(self._lines)

    def check(self) -> None:
        """BenchError unless a reader sees everything that was acknowledged."""
        shown = {row["node_name"]: row["data_value"] for row in self._service.values(self._name)}
        lost = [node for node, value in self._acknowledged.items() if shown.get(node) != value]
        if lost:
            raise BenchError(f"acknowledged values of {len(lost)} nodes are not to be read, for example of {min(lost)}")
