"""How long the service is away when it is killed and started again with everything it has stored."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.info import database
from bench.info.errors import BenchError
from bench.info.figures import Found
from bench.info.scale import Scale
from bench.info.server import Service, enrol, send_all, serving
from bench.info.simulate import Fleet, stamp


@dataclass(frozen=True)
class Stored:
    """What a killed service has left: its home, its database where that is not in there, and a value of each node."""

    home: Path
    url: str | None
    values: dict[str, str]


@contextmanager
def fill(directory: Path, scale: Scale) -> Iterator[dict[str, Stored]]:
    """One row for every value of every node on each kind of database, by the key of its figure."""
    directory.mkdir()
    with ExitStack() as held:
        found = {"restart_sqlite_seconds": _fill(directory / "sqlite", None, scale)}
        if database.program():
            url = held.enter_context(database.mariadb(directory / "mariadb"))
            found["restart_mariadb_seconds"] = _fill(directory / "on-mariadb", url, scale)
        yield found


def one_round(stored: dict[str, Stored], scale: Scale) -> Found:
    """Seconds from the start until the service says that it is ready, each kind of database in turn."""
    return {key: _start(each, scale) for key, each in stored.items()}


def _fill(home: Path, url: str | None, scale: Scale) -> Stored:
    with serving(home, database=url) as service:
        enrol(service, scale)
        fleet = Fleet(scale.data_names, service.agents)
        values = {node_name: stamp() for node_name in scale.node_names}
        send_all(service, [fleet.report(node_name, now) for node_name, now in values.items()])
        service.kill()
    return Stored(home, url, values)


def _start(stored: Stored, scale: Scale) -> float:
    begun = time.monotonic()
    with serving(stored.home, database=stored.url) as service:
        took = time.monotonic() - begun
        _check(service, stored, scale)
        service.kill()
    return took


def _check(service: Service, stored: Stored, scale: Scale) -> None:
    """BenchError unless every value that was acknowledged is there."""
    for name in scale.data_names:
        shown = {row["node_name"]: row["data_value"] for row in service.values(name)}
        if shown != stored.values:
            raise BenchError(f"after a restart {name} is not what was acknowledged on {len(stored.values)} nodes")
