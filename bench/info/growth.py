"""What the service costs with ever more agents: CPU for each of them, and how soon a reader is answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.info import reads
from bench.info.figures import Found, quantile
from bench.info.rounds import await_all_there, usage_of
from bench.info.scale import Scale
from bench.info.server import Service, enrol, serving
from bench.info.simulate import sending

SIZES = ("small", "middle", "large")  # begin the names of the figures
Services = dict[str, tuple[Service, Scale]]


@contextmanager
def services(directory: Path, scale: Scale) -> Iterator[Services]:
    """One service for every number of nodes, which are enrolled there; all but one have nothing to do."""
    directory.mkdir()
    with ExitStack() as held:
        found: Services = {}
        for size, nodes in zip(SIZES, scale.sizes, strict=True):
            found[size] = held.enter_context(serving(directory / size)), replace(scale, nodes=nodes)
            enrol(*found[size])
        yield found


def one_round(services: Services) -> Found:
    """Every number of nodes in turn, and how much more CPU an agent costs among many."""
    found: Found = {}
    for size, (service, scale) in services.items():
        found |= {f"{size}_{key}": value for key, value in _measure(service, scale).items()}
    of_one = {size: found[f"{size}_cores"] / scale.nodes for size, (_, scale) in services.items()}
    return found | {f"{size}_growth": of_one[size] / of_one[SIZES[0]] for size in SIZES[1:]}


def _measure(service: Service, scale: Scale) -> Found:
    with sending(service.address, service.agents, scale, scale.node_names):
        time.sleep(1.2 * scale.interval)
        await_all_there(service, scale)
        used = usage_of(service.pid, scale.window)
        took = reads.time_reads(service.address, [service.read(scale.data_names[0])], 1, scale.reading)
    return {
        "read_p99_seconds": quantile(took, 0.99),
        "cores": used["server_cores"],
        "rss_bytes": used["server_rss_bytes"],
    }
