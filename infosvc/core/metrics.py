"""What Prometheus may scrape: how the service does, and every numeric value of the cluster as a gauge."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from infosvc.data.curves import Curves
from infosvc.data.events import Broker
from infosvc.state.value import Value, number_of, state_of
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.records import Producer, State

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
NODE_STATES = ("ready", "stale", "lost")

_VALUE_HEAD = (
    b"# HELP nodewise_value The latest value, left out while it is stale or its last run went wrong.\n"
    b"# TYPE nodewise_value gauge\n"
)
_AGE_HEAD = (
    b"# HELP nodewise_value_age_seconds Time since the latest value was true.\n"
    b"# TYPE nodewise_value_age_seconds gauge\n"
)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Calls:
    """Counts calls by endpoint (method and path template), status and duration; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """One call that was answered, for example of "GET /api/v1/data/<data_name>"."""
        place = bisect_left(BUCKETS, seconds)
        with self._lock:
            self._statuses[endpoint, status] += 1
            self._seconds[endpoint] += seconds  # type: ignore[assignment]
            buckets = self._buckets.get(endpoint)
            if buckets is None:
                buckets = self._buckets[endpoint] = [0] * (len(BUCKETS) + 1)
            buckets[place] += 1

    def families(self) -> Iterator[Metric]:
        """What was counted so far."""
        with self._lock:
            statuses, seconds = dict(self._statuses), dict(self._seconds)
            buckets = {endpoint: list(counts) for endpoint, counts in self._buckets.items()}
        calls = CounterMetricFamily("nodewise_calls", "Calls answered.", labels=["method", "endpoint", "status"])
        for (endpoint, status), number in sorted(statuses.items()):
            calls.add_metric([*_split(endpoint), str(status)], number)
        yield calls
        durations = HistogramMetricFamily("nodewise_call_seconds", "Time a call took.", labels=["method", "endpoint"])
        for endpoint, counts in sorted(buckets.items()):
            durations.add_metric(_split(endpoint), _cumulate(counts), seconds[endpoint])
        yield durations


class PassedOver:
    """Counts reports that held fields which this version does not know."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.number = 0

    def count(self) -> None:
        """One report more."""
        with self._lock:
            self.number += 1


class Metrics(Collector):
    """Everything of one service as text; `calls` and `passed_over` are where those who answer calls count."""

    def __init__(self, latest: Latest, writer: Writer, broker: Broker, curves: Curves) -> None:
        self.calls = Calls()
        self.passed_over = PassedOver()
        self._latest = latest
        self._writer = writer
        self._broker = broker
        self._curves = curves
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def render(self) -> Iterator[bytes]:
        """The text format 0.0.4 in parts: the values of the cluster, their ages, what the service says of itself."""
        ages: list[bytes] = []
        now = self._latest.clock.monotonic()
        yield _VALUE_HEAD
        for name, producer in sorted(self._latest.configuration.producers.items()):
            lines = column(producer, self._latest.current_values.rows(name), now)
            yield lines[0].encode()
            ages.append(lines[1].encode())
        yield _AGE_HEAD
        yield from ages
        yield generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Called by the registry: what the service says of itself."""
        latest, configuration = self._latest, self._latest.configuration
        yield from self.calls.families()
        said = "Reports with fields that this version does not know, which were passed over."
        yield CounterMetricFamily("nodewise_reports_with_unknown_fields", said, self.passed_over.number)
        yield CounterMetricFamily("nodewise_commits", "Commits made.", self._writer.commits)
        yield CounterMetricFamily("nodewise_commit_seconds", "Time spent in commits.", self._writer.commit_seconds)
        yield GaugeMetricFamily("nodewise_changes_waiting", "Changes not stored yet.", self._writer.waiting)
        yield GaugeMetricFamily("nodewise_values_stored", "Values known.", latest.current_values.count())
        yield GaugeMetricFamily("nodewise_curves", "Numbers whose last hour is in memory.", len(self._curves))
        yield GaugeMetricFamily("nodewise_curves_most", "As many there may be; others have none.", self._curves.most)
        yield GaugeMetricFamily("nodewise_producers", "Registered names.", len(configuration.producers))
        yield GaugeMetricFamily("nodewise_watchers", "Callers that watch events.", self._broker.watching)
        last = configuration.audit.get("last")
        yield CounterMetricFamily("nodewise_audit_entries", "Entries of the audit log.", last.sequence if last else 0)
        states = Counter(latest.state(node_name) for node_name in configuration.nodes)
        nodes = GaugeMetricFamily("nodewise_nodes", "Nodes by state.", labels=["state"])
        for state in NODE_STATES:
            nodes.add_metric([state], states[state])
        yield nodes
        dropped = CounterMetricFamily("nodewise_runs_dropped", "Runs that an agent lost.", labels=["node_name"])
        for name, machine in sorted(configuration.nodes.items()):
            dropped.add_metric([name], machine.dropped)
        yield dropped


def column(producer: Producer, rows: Iterable[tuple[str, Value]], now: float) -> tuple[str, str]:
    """The lines of one name's values, and those of their ages; `now` in monotonic seconds.

    >>> from infosvc.wire.records import Outcome
    >>> column(Producer("load_1m", "x", 5), [("n1", Value("2", 10.0, Outcome.OK, None, 10.0))], 12.5)[1]
    'nodewise_value_age_seconds{data_name="load_1m",unit="",node_name="n1"} 2.500\\n'
    """
    ttl = float(producer.ttl or 0.0)
    labels = f'{{data_name="{producer.data_name}",unit="{producer.unit.translate(_ESCAPES)}",node_name="'
    value_start, age_start = "nodewise_value" + labels, "nodewise_value_age_seconds" + labels
    values: list[str] = []
    ages: list[str] = []
    for node_name, row in rows:
        number = number_of(row.text)
        if number is None or row.measured is None:
            continue
        age = max(0.0, now - row.measured)
        if state_of(row.outcome, age, ttl) is State.FRESH:
            values.append(f'{value_start}{node_name}"}} {number!r}\n')
        ages.append(f'{age_start}{node_name}"}} {age:.3f}\n')
    return "".join(values), "".join(ages)


def _split(endpoint: str) -> list[str]:
    return endpoint.split(" ", 1)


def _cumulate(counts: list[int]) -> list[tuple[str, float]]:
    """Buckets as Prometheus counts them: all calls that took at most so long."""
    total = 0
    found: list[tuple[str, float]] = []
    for bound, count in zip((*map(repr, BUCKETS), "+Inf"), counts, strict=True):
        total += count
        found.append((bound, total))
    return found
