"""The record of every decision, on a real cluster: stored, kept when the job fails, explained, replayed elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infosvc.wire.records import Kind, Producer
from jobs.division.decision import Decision
from jobs.division.replay import attempts
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import BROKEN, PICTURES, Site, nodewise, succeed, until

pytestmark = pytest.mark.cluster

IMAGES = PICTURES + len(BROKEN)
OUTPUT = "/out/Decided"
TOO_LONG_FOR_A_TAG = f"/out/undecided/{100 * 'x'}"


def write_weights(site: Site, *weights: float) -> None:
    """A capability of our own, written as any program would."""
    client = site.client()
    client.put_producer(Producer("weight", cmd="", time_max=3600, kind=Kind.PROGRAM, unit="kg", help="What we think"))
    for node, weight in zip(site.cluster.nodes, weights, strict=True):
        client.put_value("weight", node, weight)


def submit(site: Site, output: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A job by weights; its batch is no other test's, so that it leaves no speeds to them."""
    return site.submit(f"hdfs://{output}", *words, "--batch", "5", capability="weight")


@pytest.fixture(scope="module")
def report(site: Site) -> dict[str, Any]:
    """One job by weights, of which the first node has none; what agents say of each node is known by then."""
    nodes = set(site.cluster.nodes)
    until(lambda: site.fresh_on("perf_even") == site.fresh_on("perf_even.confidence") == nodes)
    write_weights(site, 0, 1, 2, 3)
    found: dict[str, Any] = json.loads(succeed(submit(site, OUTPUT, "--policy", "maxflow")))
    return found


def kept_path(site: Site, job_id: str) -> str:
    return f"/user/{site.cluster.user}/.nodewise/decisions/{job_id}.json"


def read(site: Site, path: str) -> bytes:
    with site.hdfs().read(path) as stream:
        content: bytes = stream.read()
    return content


@pytest.fixture
def stored(site: Site, report: dict[str, Any]) -> Decision:
    return Decision.from_bytes(read(site, f"{OUTPUT}/decision.json"), "decision.json")


def explain(site: Site, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(succeed(site.nodewise("job", "explain", *words, "--json")))
    return found


def test_the_record_beside_the_report_tells_what_was_planned_and_from_what(
    site: Site, report: dict[str, Any], stored: Decision
) -> None:
    assert (stored.job_id, stored.policy, stored.capability) == (report["job_id"], "maxflow", "weight")
    assert {share.node_name: share.items for share in stored.shares()} == {
        node["node_name"]: node["planned_images"] for node in report["nodes"]
    }
    assert {block.name for block in stored.blocks} == {
        f"/data/images/{name}" for name in site.hdfs().list("/data/images")
    }
    assert all(set(block.replicas) <= set(site.cluster.nodes) for block in stored.blocks)
    assert stored.quality.bytes_moved == report["bytes_moved_planned"]
    assert stored.readings.numbers() == dict(zip(site.cluster.nodes, range(4), strict=True))
    assert (stored.readings.unit, stored.readings.kind, stored.readings.help) == ("kg", "program", "What we think")


def test_a_job_plans_with_the_racks_that_hdfs_tells(site: Site, stored: Decision) -> None:
    assert stored.terms.cost.racks == dict.fromkeys(site.cluster.nodes, "/default-rack")


def test_other_capabilities_of_these_nodes_are_recorded_with_age_and_confidence(site: Site, stored: Decision) -> None:
    judgements = {
        producer.data_name for producer in site.client().producers() if producer.kind in (Kind.PROCESSOR, Kind.PROGRAM)
    }

    assert set(stored.capabilities) <= judgements
    assert {"weight", "perf_even"} <= set(stored.capabilities)
    configured = stored.capabilities["perf_even"].nodes
    assert set(configured) == set(site.cluster.nodes)
    assert all(reading.confidence == 1 and reading.age_seconds >= 0 for reading in configured.values())
    assert all(reading.confidence is None for reading in stored.readings.nodes.values())


def test_the_record_is_kept_for_its_owner_alone(site: Site, report: dict[str, Any]) -> None:
    kept = kept_path(site, report["job_id"])

    assert read(site, kept) == read(site, f"{OUTPUT}/decision.json")
    assert site.hdfs().status(kept)["permission"] == "600"
    assert site.hdfs().status(kept.rpartition("/")[0])["permission"] == "700"


def test_a_share_is_explained_by_job_id_and_by_output(site: Site, report: dict[str, Any]) -> None:
    by_id = explain(site, report["job_id"])

    assert by_id == explain(site, f"hdfs://{OUTPUT}")
    assert sum(node["images"] for node in by_id["nodes"]) == IMAGES
    assert [node["target_images"] for node in by_id["nodes"]] == [0, 7, 14, 21]
    idle, *_, best = by_id["nodes"]
    assert "a node whose capability is 0 gets no work" in " ".join(idle["why"])
    assert f"{IMAGES} * 3 / 6 = 21.0 images by the formula" in " ".join(best["why"])


def test_one_node_can_be_asked_for_in_words(site: Site, report: dict[str, Any]) -> None:
    node, other = site.cluster.nodes[3], site.cluster.nodes[1]

    said = succeed(site.nodewise("job", "explain", report["job_id"], "--node", node))

    assert f"{node}: its weight was 3 kg" in said
    assert f"{other}: " not in said
    refused = site.nodewise("job", "explain", report["job_id"], "--node", "worker99")
    assert refused.returncode == 1
    assert "was not planned with worker99" in refused.stderr


def test_a_downloaded_record_makes_the_same_plan_again_without_a_cluster(
    site: Site, report: dict[str, Any], stored: Decision, tmp_path: Path
) -> None:
    recorded, again = attempts(stored, [stored.policy], {stored.capability: stored.readings.numbers()})
    assert again.plan == recorded.plan

    record = tmp_path / "decision.json"
    succeed(site.nodewise("job", "explain", report["job_id"], "--save", str(record)))
    assert record.read_bytes() == read(site, f"{OUTPUT}/decision.json")
    words = ["--policy", "maxflow", "--policy", "even", "--capability", "weight", "--capability", "perf_even"]
    body = json.loads(succeed(nodewise(tmp_path / "nothing", "locality", "replay", str(record), *words, "--json")))

    job, same, *others = body["plans"]
    assert same["images"] == job["images"] == {node["node_name"]: node["planned_images"] for node in report["nodes"]}
    assert same["bytes_moved"] == job["bytes_moved"]
    assert [(plan["policy"], plan["capability"]) for plan in others] == [
        ("even", "weight"),
        ("maxflow", "perf_even"),
        ("even", "perf_even"),
    ]
    assert max(others[1]["images"].values()) == 11, "a node may have fewer than 10 where that moves fewer bytes"


def test_a_record_that_is_no_longer_kept_is_found_at_the_job_s_output(site: Site, report: dict[str, Any]) -> None:
    site.hdfs().delete(kept_path(site, report["job_id"]))

    assert explain(site, report["job_id"])["job_id"] == report["job_id"]


def test_a_job_that_failed_can_still_be_explained(site: Site, report: dict[str, Any]) -> None:
    failed = submit(site, TOO_LONG_FOR_A_TAG, "--engine", "onnx", "--worker-python", "/bin/false")

    assert failed.returncode == 1
    job_id = named_job(failed.stderr)
    assert not site.hdfs().status(TOO_LONG_FOR_A_TAG, strict=False)
    assert [node["images"] for node in explain(site, job_id)["nodes"]] == [0, 7, 14, 21]


def test_a_job_that_never_planned_says_why(site: Site, report: dict[str, Any]) -> None:
    write_weights(site, 0, 0, 0, 0)
    try:
        failed = submit(site, "/out/unplanned")
    finally:
        write_weights(site, 0, 1, 2, 3)

    refused = site.nodewise("job", "explain", named_job(failed.stderr))

    assert refused.returncode == 1
    assert "has no plan to explain: the capability of every node is 0" in refused.stderr


KEEPING = """
import sys
from pathlib import Path
from hadoop.client import jvm
from hadoop.client.filesystem import FileSystem
from jobs.division import decision_store

jvm.start(jvm.HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
decision_store.MOST_KEPT, decision_store.MOST_KEPT_BYTES = most, most_bytes
for job_id in job_ids:
    decision_store.keep(FileSystem(), "/kept", job_id, b"0123456789")
found = None
"""


@pytest.mark.parametrize(
    ("most", "most_bytes", "left"),
    [(2, 1000, ["8_9999", "8_10000"]), (9, 25, ["8_9999", "8_10000"]), (9, 1, ["8_10000"]), (9, 1000, None)],
    ids=["too many", "too large", "the newest is never too large", "room for all"],
)
def test_the_newest_records_are_kept(
    site: Site, scripts: Scripts, most: int, most_bytes: int, left: list[str] | None
) -> None:
    ids = ["7_20000", "8_9999", "8_10000"]
    job_ids = [f"application_{id_}" for id_ in ids]
    try:
        scripts.find(KEEPING, most=most, most_bytes=most_bytes, job_ids=job_ids)
        found = site.hdfs().list("/kept/decisions")
    finally:
        site.hdfs().delete("/kept", recursive=True)

    assert set(found) == {f"application_{id_}.json" for id_ in left or ids}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("application_1_0001", "YARN does not know it"),
        ("hdfs:///data/images", "/data/images/decision.json is not in HDFS"),
        ("yesterday", "a job id"),
        ("hdfs://OUTPUT/report.json", "not a decision record"),
    ],
)
def test_what_has_no_record_is_refused_in_one_sentence(
    site: Site, report: dict[str, Any], name: str, said: str
) -> None:
    for command in (["job", "explain"], ["locality", "replay"]):
        done = site.nodewise(*command, name.replace("OUTPUT", OUTPUT))

        assert done.returncode == 1
        assert said in done.stderr.strip().splitlines()[-1]
        assert "Traceback" not in done.stderr


def named_job(text: str) -> str:
    found = re.search(r"application_\d+_\d+", text)
    assert found, text
    return found.group()
