"""How long a value takes until a reader sees it, and how old the values are that readers see."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable

from bench.info import prometheus
from bench.info.errors import BenchError
from bench.info.figures import Found, quantile
from bench.info.prometheus import Prometheus, first_nodes
from bench.info.scale import Scale
from bench.info.server import Service, close
from bench.info.simulate import Fleet, stamp
from bench.info.wire import Line

LONGEST_PAUSE_SECONDS = 0.04  # at random between two probes, so that they keep no step with anything
READ_EVERY_SECONDS = 0.2
LOST_SECONDS = 10.0
PATIENCE_SECONDS = 60.0  # until something was seen, where so little time is asked for that nothing was


def of_service(service: Service, scale: Scale, probe: str) -> Found:
    """Report for the node `probe` again and again, each time reading its name until the new value is there."""
    fleet, writer, reader = Fleet(scale.data_names, service.agents), Line(service.address), Line(service.address)
    message = service.read(scale.data_names[-1])
    delays: list[float] = []

    def report_and_see() -> None:
        now = stamp()
        writer.ask(fleet.report(probe, now))
        delays.append(_until(lambda: now.encode() in reader.ask(message), writer.sent))
        time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))  # noqa: S311 - no secret

    def read() -> Iterable[float]:
        rows = json.loads(reader.ask(message))["values"]
        return [float(row["data_value"]) for row in rows if row["node_name"] != probe]

    try:
        ages = _for(scale.probing, delays, report_and_see, read)
    finally:
        close((writer, reader))
    return _quantiles(delays, ages)


def of_prometheus(side: Prometheus, scale: Scale) -> Found:
    """Ask for one node of every page again and again; a number that changed was read from its page when it says."""
    line = Line(side.address)
    some = prometheus.query(f'{scale.data_names[-1]}{{node=~"{"|".join(first_nodes(scale))}"}}')
    whole = prometheus.query(scale.data_names[-1])
    before = prometheus.values(line.ask(some))
    delays: list[float] = []

    def see() -> None:
        for node_name, measured in prometheus.values(line.ask(some)).items():
            known, before[node_name] = before.get(node_name), measured
            if known is not None and known != measured:
                delays.append(time.monotonic() - measured)
        time.sleep(0.001)

    try:
        ages = _for(scale.probing, delays, see, lambda: prometheus.values(line.ask(whole)).values())
    finally:
        line.close()
    return _quantiles(delays, ages)


def _for(
    seconds: float, delays: list[float], probe: Callable[[], None], read: Callable[[], Iterable[float]]
) -> list[float]:
    """Probe all the time, which adds to `delays`, and now and then read everything; the ages of what was read."""
    ages: list[float] = []
    begun = last = time.monotonic()
    while time.monotonic() < begun + (seconds if delays and ages else max(seconds, PATIENCE_SECONDS)):
        probe()
        if time.monotonic() >= last + READ_EVERY_SECONDS:
            last = time.monotonic()
            measured = read()
            now = time.monotonic()
            ages += [now - each for each in measured]
    return ages


def _until(condition: Callable[[], bool], since: float) -> float:
    """Seconds from `since` until the condition held."""
    while not condition():
        if time.monotonic() > since + LOST_SECONDS:
            raise BenchError(f"a reported value was not to be read {LOST_SECONDS:g} s later")
    return time.monotonic() - since


def _quantiles(delays: list[float], ages: list[float]) -> Found:
    if not delays or not ages:
        raise BenchError("no value was seen to change: probe for longer")
    return {
        "visible_p50_seconds": quantile(delays, 0.5),
        "visible_p99_seconds": quantile(delays, 0.99),
        "age_p99_seconds": quantile(ages, 0.99),
    }
