"""What Prometheus scrapes, read by Prometheus' own parsers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from infosvc.core.metrics import BUCKETS, Calls
from infosvc.wire.records import Outcome, Producer, Report, Run

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def served(sqlite_url: str, serve: Serving, hands: Hands) -> Iterator[Served]:
    """A service whose only node has reported numbers, a text and a failure."""
    with serve(sqlite_url, hands) as service:
        for name, unit in (("cpu", "ratio"), ("load", 'odd "unit"\\n\n'), ("model", ""), ("bad", "")):
            service.client.put_producer(Producer(name, "scripts/x.sh", 2.0, unit=unit))
        service.client.put_node("n1", "127.0.0.1:9")
        runs = (
            Run("cpu", Outcome.OK, 0.1, "0.5"),
            Run("load", Outcome.OK, 0.1, "1_000"),
            Run("model", Outcome.OK, 0.1, "Xeon"),
            Run("bad", Outcome.OK, 0.1, "3"),
            Run("bad", Outcome.FAILED, 0.1, reason="no file"),
        )
        service.client.report("n1", Report("b", 1, "1", runs, dropped=7))
        yield service


def _scraped(served: Served) -> Samples:
    answer = served.ask("GET", "/metrics", token=None)
    assert answer.status == 200
    families = list(text_string_to_metric_families(answer.text))
    assert len({family.name for family in families}) == len(families)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def _values(samples: Samples, metric: str = "nodewise_value") -> dict[str, float]:
    return {dict(labels)["data_name"]: value for (name, labels), value in samples.items() if name == metric}


def test_every_number_is_a_gauge_with_its_labels(served: Served) -> None:
    samples = _scraped(served)
    labels = {"data_name": "cpu", "node_name": "n1", "unit": "ratio"}
    assert samples["nodewise_value", frozenset(labels.items())] == 0.5
    assert _values(samples) == {"cpu": 0.5, "load": 1000.0}
    odd = frozenset({"data_name": "load", "node_name": "n1", "unit": 'odd "unit"\\n\n'}.items())
    assert samples["nodewise_value", odd] == 1000.0


def test_stale_and_failed_values_are_left_out_and_keep_their_age(served: Served, hands: Hands) -> None:
    hands.turn(5)
    served.client.put_value("load", "n1", 2)
    hands.turn(1.5)
    samples = _scraped(served)
    assert _values(samples) == {"load": 2.0}
    assert _values(samples, "nodewise_value_age_seconds") == {"cpu": 6.5, "load": 1.5, "bad": 6.5}


def test_the_service_tells_how_it_does(served: Served) -> None:
    served.ask("GET", "/api/v1/producers/nothing")
    served.ask("GET", "/no/such/page")
    samples = _scraped(served)

    def one(name: str, **labels: str) -> float:
        return samples[name, frozenset(labels.items())]

    missing = {"method": "GET", "endpoint": "/api/v1/producers/<data_name>"}
    assert one("nodewise_calls_total", **missing, status="404") == 1
    assert one("nodewise_call_seconds_count", **missing) == 1
    assert one("nodewise_calls_total", method="GET", endpoint="unknown", status="404") == 1
    assert one("nodewise_calls_total", method="PUT", endpoint="/api/v1/nodes/<node_name>", status="201") == 1
    assert one("nodewise_commits_total") >= 6
    assert one("nodewise_commit_seconds_total") >= 0
    assert one("nodewise_values_stored") == 4
    assert one("nodewise_producers") == 4
    assert one("nodewise_nodes", state="ready") == 1
    assert one("nodewise_nodes", state="lost") == 0
    assert one("nodewise_runs_dropped_total", node_name="n1") == 7
    assert one("nodewise_audit_entries_total") >= 5
    assert one("nodewise_watchers") == 0
    assert one("process_resident_memory_bytes") > 1e6
    assert one("process_cpu_seconds_total") > 0


def test_odd_methods_and_paths_make_no_series_of_their_own(served: Served) -> None:
    for number in range(3):
        served.ask(f"BREW{number}", f"/pot/{number}")
    named = {dict(labels).get("endpoint") for name, labels in _scraped(served) if name == "nodewise_calls_total"}
    assert not [endpoint for endpoint in named if endpoint and "pot" in endpoint]
    methods = {dict(labels).get("method") for name, labels in _scraped(served) if name == "nodewise_calls_total"}
    assert not [method for method in methods if method and "BREW" in method]


def test_refused_calls_are_counted(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, open_reading=False) as served:
        assert served.ask("GET", "/metrics", token=None).status == 401
        text = served.ask("GET", "/metrics").text
    assert 'nodewise_calls_total{endpoint="/metrics",method="GET",status="401"} 1.0' in text


def test_durations_are_counted_in_cumulated_buckets() -> None:
    calls = Calls()
    for seconds in (0.0001, 0.0005, 0.02, 99.0):
        calls.count("GET /a", 200, seconds)
    counted, durations = calls.families()
    assert [(sample.labels["status"], sample.value) for sample in counted.samples] == [("200", 4)]
    buckets = {sample.labels["le"]: sample.value for sample in durations.samples if sample.name.endswith("_bucket")}
    assert len(buckets) == len(BUCKETS) + 1
    assert (buckets["0.0005"], buckets["0.01"], buckets["0.025"], buckets["10.0"], buckets["+Inf"]) == (2, 2, 3, 3, 4)
    assert [sample.value for sample in durations.samples if sample.name.endswith("_sum")] == [pytest.approx(99.0206)]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's prometheus is not installed")
def test_promtool_finds_nothing_to_complain_of(served: Served) -> None:
    page = served.ask("GET", "/metrics").text
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
