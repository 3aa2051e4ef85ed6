"""The main job on a real cluster: images in HDFS, values from real agents, containers of YARN, rows in Parquet."""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from hadoop.local import daemons
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Kind, Producer, Role
from jobs.application.package import WORKER_PYTHON
from jobs.division import speed_history
from jobs.division.decision_store import tags
from jobs.division.readings import Program
from tests.cluster.many_pictures import FOLDER, load_pictures
from tests.cluster.site import BROKEN, EXAMPLES, PICTURES, Site, applications, job_files, succeed, until
from tests.recipes.pages import block

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("kept_commands")]

UNHURRIED = ("--lease-seconds", "120", "--container-wait", "300")
"""With these each node does what was planned for it, however long it pauses."""
REPORT_KEYS = {
    *("job_id", "application_id", "engine", "policy", "capability", "images", "errors", "started_at"),
    *("makespan_seconds", "lower_bound_seconds", "makespan_over_bound", "bytes_read", "bytes_moved"),
    *("bytes_moved_optimal", "locality_ratio", "nodes", "inputs"),
}
NODE_KEYS = {
    *("node_name", "capability", "planned_images", "images", "local_images", "seconds", "images_per_second"),
}


def rows(site: Site, output: str) -> list[dict[str, Any]]:
    """All rows of a result, read without Java as a user would."""
    found: list[dict[str, Any]] = []
    for name in site.hdfs().list(output):
        if name.endswith(".parquet"):
            with site.hdfs().read(f"{output}/{name}") as stream:
                found += pq.read_table(io.BytesIO(stream.read())).to_pylist()
    return found


def left_behind(site: Site, output: str, before: set[str]) -> list[str]:
    """What there is of a failed job beside the record of its plan: its output, and what was not there `before`."""
    output_left = [output] if site.hdfs().status(output, strict=False) else []
    return output_left + sorted(job_files(site.cluster) - before)


def numbers(client: InfoClient, data_name: str) -> dict[str, float]:
    return {datum.node_name: datum.number() for datum in client.data(data_name) if datum.data_value is not None}


@pytest.fixture(scope="module")
def first(site: Site) -> dict[str, Any]:
    """The report of one job by equal weights, of which every node does its part and no more."""
    words = ("--engine", "mxnet", "--no-steal", *UNHURRIED)
    report: dict[str, Any] = json.loads(succeed(site.submit("hdfs:///out/even", *words)))
    return report


def test_every_picture_has_exactly_one_row(site: Site, first: dict[str, Any]) -> None:
    stored = {f"/data/images/{name}" for name in site.hdfs().list("/data/images")}
    paths = [row["path"] for row in rows(site, "/out/even")]

    assert len(paths) == len(set(paths)) == PICTURES + len(BROKEN) == first["images"]
    assert set(paths) == stored


def test_a_broken_picture_has_a_row_with_the_reason(site: Site, first: dict[str, Any]) -> None:
    errors = {row["path"].rpartition("/")[2]: row["error"] for row in rows(site, "/out/even") if row["error"]}

    assert set(errors) == set(BROKEN)
    assert "not an image" in errors["zz_text.jpg"]
    assert first["errors"] == len(BROKEN)


def test_the_line_of_the_readme_opens_the_results(site: Site, first: dict[str, Any]) -> None:
    line = (
        block("read-results")
        .strip()
        .replace("127.0.2.1:9870/out/run1", f"{site.cluster.namenode_http.removeprefix('http://')}/out/even")
    )
    # Threads of pyarrow may still read when the interpreter ends, which aborts it on a busy machine once in a while.
    program = f"import os, pyarrow.parquet; print({line}.num_rows, flush=True); os._exit(0)"

    printed = succeed(subprocess.run([WORKER_PYTHON, "-c", program], capture_output=True, text=True, timeout=300))

    assert int(printed) == first["images"]


def test_a_row_tells_five_classes_the_node_and_the_engine(site: Site, first: dict[str, Any]) -> None:
    row = next(row for row in rows(site, "/out/even") if not row["error"])

    assert len(row["top5"]) == 5
    assert row["class_id"] == row["top5"][0]["class_id"]
    assert row["node_name"] in site.cluster.nodes
    assert row["engine"] == "mxnet.alexnet"


def test_the_command_lists_what_became_of_each_picture(site: Site, first: dict[str, Any]) -> None:
    everything = json.loads(succeed(site.nodewise("job", "result", "hdfs:///out/even", "--json")))
    broken = json.loads(succeed(site.nodewise("job", "result", "hdfs:///out/even", "--errors", "--json")))

    assert [row["path"] for row in everything] == sorted(row["path"] for row in rows(site, "/out/even"))
    assert [row["path"].rpartition("/")[2] for row in broken] == sorted(BROKEN)


def test_the_report_is_what_the_contract_says(site: Site, first: dict[str, Any]) -> None:
    assert first.keys() >= REPORT_KEYS
    assert all(node.keys() >= NODE_KEYS for node in first["nodes"])
    assert {value["node_name"] for value in first["inputs"]} == set(site.cluster.nodes)
    assert first["makespan_over_bound"] >= 1
    assert first["bytes_moved"] >= first["bytes_moved_optimal"]
    assert "classes mean nothing" in first["weights"]["meaning"]
    with site.hdfs().read("/out/even/report.html", encoding="utf-8") as page:
        assert first["job_id"] in page.read()


def test_the_plan_is_what_the_nodes_did(first: dict[str, Any]) -> None:
    assert all(node["images"] == node["planned_images"] for node in first["nodes"])
    assert {node["images"] for node in first["nodes"]} <= {10, 11}


def test_speeds_are_written_back_and_become_the_next_judgement(site: Site, first: dict[str, Any]) -> None:
    client, name = site.client(), "images_per_second:mxnet.alexnet:8"
    speeds = numbers(client, name)
    assert speeds == pytest.approx({node["node_name"]: node["images_per_second"] for node in first["nodes"]})

    lent = [token for token in site.client().tokens() if token.name == f"job {first['job_id']}"]
    assert [(token.role, token.revoked_at is None) for token in lent] == [(Role.PROCESSOR, False)]

    judge = replace(client.producer("perf_history"), cmd=f"processors/perf_history.py {name}", inputs=(name,))
    client.put_producer(judge)
    words = ("--engine", "mxnet_alexnet", "--policy", "local_only", "--no-steal", *UNHURRIED)
    report = json.loads(succeed(site.submit("hdfs:///out/history", *words, capability="perf_history")))

    assert (report["engine"], report["policy"]) == ("mxnet.alexnet", "local_only"), "by the engine's former name, too"
    assert set(numbers(client, name)) == {node["node_name"] for node in report["nodes"] if node["images"]}
    judged = {node["node_name"]: node["capability"] for node in report["nodes"]}
    assert judged == pytest.approx(speeds, rel=1e-4)
    # The job before counts 0.7 of the last one.
    both = {node: (speed + 0.7 * speeds[node]) / 1.7 for node, speed in numbers(client, name).items()}
    until(lambda: set(numbers(client, "perf_history.count").values()) == {2})
    assert numbers(client, "perf_history") == pytest.approx(both, rel=1e-3)
    assert all(0.1 < confidence < 0.9 for confidence in numbers(client, "perf_history.confidence").values())


@pytest.fixture(scope="module")
def own(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a job that is judged by a value of one's own, with own labels and a former name of its engine."""
    client = site.client()
    client.put_producer(Producer("my_own_judgement", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for weight, node in enumerate(site.cluster.nodes):
        client.put_value("my_own_judgement", node, weight)
    labels = tmp_path_factory.mktemp("own") / "labels.txt"
    labels.write_text("\n".join(f"thing {number}" for number in range(1000)))
    words = ("--labels", str(labels), "--engine", "onnx_alexnet", "--batch", "7")
    report: dict[str, Any] = json.loads(succeed(site.submit("hdfs:///out/own", *words, capability="my_own_judgement")))
    return report


def test_another_capability_is_another_plan_and_no_other_code(site: Site, own: dict[str, Any]) -> None:
    assert [node["planned_images"] for node in own["nodes"]] == [0, 7, 14, 21]
    assert len(rows(site, "/out/own")) == PICTURES + len(BROKEN)


def test_own_labels_name_the_classes(site: Site, own: dict[str, Any]) -> None:
    named = [row for row in rows(site, "/out/own") if not row["error"]]
    assert named and all(row["class_name"] == f"thing {row['class_id']}" for row in named)


def test_the_former_name_of_an_engine_goes_on_working(site: Site, own: dict[str, Any]) -> None:
    assert own["engine"] == "onnx.alexnet"
    worked = {node["node_name"] for node in own["nodes"] if node["images"]}
    assert set(numbers(site.client(), "images_per_second:onnx.alexnet:7")) == worked


@pytest.fixture
def embedding(tmp_path: Path) -> Path:
    """A model with two outputs, as an ONNX file."""
    program = [str(WORKER_PYTHON), "-c", block("own-model")]
    succeed(subprocess.run(program, capture_output=True, text=True, timeout=300, cwd=tmp_path))
    return tmp_path / "colours.onnx"


def test_a_model_of_one_s_own_gives_tensors_and_has_speeds_of_its_own(site: Site, embedding: Path) -> None:
    embedding.with_suffix(".toml").write_text(block("own-model-preparation"))
    digits = hashlib.sha256(embedding.read_bytes()).hexdigest()[:12]

    words = shlex.split(block("own-model-submit").replace("colours.onnx", str(embedding)).replace("\\\n", " "))
    words = [word.replace("perf_even", "perf_history") for word in words]
    client = site.client()
    own, fast = Program(f"onnx.{digits}", 8), site.cluster.nodes[0]
    speed_history.prepare(client, own.name, own.batch)
    before = {node: 60.0 if node == fast else 20.0 for node in site.cluster.nodes}
    speed_history.record(client, own.name, own.batch, before)

    done = site.nodewise(*words[1:], "--batch", "8", "--json")

    report = json.loads(succeed(done))
    assert {node["node_name"]: node["planned_images"] for node in report["nodes"]}[fast] == (PICTURES + len(BROKEN)) / 2
    assert "by the speeds that they had with" in report["note"]
    assert report["note"] in " ".join(done.stderr.split())
    assert report["engine"] == f"onnx.{digits}"
    assert report["weights"]["source"] == "colours.onnx"
    assert "its batch is fixed at 1: it was changed to take any number of images" in " ".join(done.stderr.split())
    found = rows(site, "/out/own-model")
    assert len(found) == PICTURES + len(BROKEN)
    for row in found:
        assert (row["grid"] is None) == (row["colour"] is None) == bool(row["error"])
        if not row["error"]:
            assert (len(row["grid"]), len(row["colour"])) == (48, 3)
            assert all(0 <= number <= 1 for number in row["grid"])
    listed = json.loads(succeed(site.nodewise("job", "result", "hdfs:///out/own-model", "--json")))
    assert [row["colour"] for row in listed] == [row["colour"] for row in sorted(found, key=lambda row: row["path"])]
    speeds = numbers(site.client(), f"images_per_second:onnx.{digits}:8")
    worked = [node for node in report["nodes"] if node["images"]]
    assert speeds == pytest.approx(before | {node["node_name"]: node["images_per_second"] for node in worked})


def test_a_model_that_does_not_fit_is_refused_before_anything_is_submitted(site: Site, embedding: Path) -> None:
    before = len(applications(site.cluster))

    done = site.submit("hdfs:///out/unfit", "--engine", "onnx", "--model", str(embedding))

    assert done.returncode == 1
    assert 'has several outputs (grid, colour), and classes need exactly one: write output = "tensors"' in " ".join(
        done.stderr.split()
    )
    assert len(applications(site.cluster)) == before


def test_weights_that_do_not_fit_are_refused_by_name(site: Site, tmp_path: Path) -> None:
    weights = tmp_path / "cat.params"
    weights.write_bytes(b"no parameters")
    before = job_files(site.cluster)

    done = site.submit("hdfs:///out/weights", "--engine", "mxnet", "--weights", str(weights))

    assert done.returncode == 1
    assert "does not fit AlexNet" in done.stderr
    assert left_behind(site, "/out/weights", before) == []


def test_a_container_with_too_little_memory_is_told_apart(site: Site, tmp_path: Path) -> None:
    """The network alone takes twice as much, and YARN looks each three seconds: so there are images for longer."""
    load_pictures(site.cluster, tmp_path / "many", 480)
    client = site.client()
    client.put_producer(Producer("lone_judgement", cmd="", time_max=3600, kind=Kind.PROGRAM))
    for node in site.cluster.nodes:  # on one of them it is tried often enough
        client.put_value("lone_judgement", node, int(node == site.cluster.nodes[0]))

    words = ("--input", f"hdfs://{FOLDER}", "--engine", "mxnet", "--memory", "256")
    done = site.submit("hdfs:///out/cramped", *words, capability="lone_judgement")

    assert "memory kill" in done.stdout + done.stderr


def test_a_python_that_the_nodes_do_not_have_is_told_with_what_to_do(site: Site) -> None:
    done = site.submit("hdfs:///out/without", "--engine", "onnx", "--worker-python", "/no/such/python")

    assert done.returncode == 1
    assert (
        "its node has no /no/such/python: name a Python of the nodes with --worker-python, "
        "or an environment with --env NAME@VERSION" in done.stderr
    )


def test_an_operator_s_own_collector_runs_under_its_own_absolute_path(site: Site) -> None:
    script = EXAMPLES / "getCpuUsage.sh"
    put = ["producer", "put", "getCpuUsage", "--cmd", str(script), "--time-max", "1", "--ttl", "60", "--unit", "ratio"]
    succeed(site.nodewise(*put))
    succeed(site.nodewise("slot", "start", "getCpuUsage"))

    until(lambda: site.fresh_on("getCpuUsage") == set(site.cluster.nodes))
    assert all(0 <= datum.number() <= 1 for datum in site.client().data("getCpuUsage"))


def test_the_block_distribution_is_there_for_programs_without_java(site: Site) -> None:
    def is_whole() -> bool:
        """Whether each node says how many blocks it holds, and these are all."""
        succeed(site.nodewise("locality", "blocks", "hdfs:///data/images", "--publish"))
        data = [datum for datum in site.client().data("block_distribution") if datum.state == "fresh"]
        held = {datum.node_name: json.loads(str(datum.data_value))["/data/images"]["blocks"] for datum in data}
        return set(held) == set(site.cluster.nodes) and sum(held.values()) == 2 * (PICTURES + len(BROKEN))

    until(is_whole)  # HDFS may still make up for a DataNode that was silent a while ago


REFUSALS = {
    "data name": (["--capability", "perf_evne"], "perf_evne"),
    "policy": (["--policy", "best"], "best"),
    "engine": (["--engine", "vgg"], "vgg"),
    "path": (["--input", "hdfs:///no/such"], "/no/such"),
    "file system": (["--input", "s3://bucket/x"], "s3://bucket/x"),
    "service": (["--url", "http://127.0.0.1:9"], "http://127.0.0.1:9"),
    "value": (["--capability", "never_measured", "--capability-wait", "0"], "never_measured"),
    "site files": (["--hadoop-conf", "/no/conf"], "/no/conf"),
}


@pytest.mark.parametrize(("words", "named"), REFUSALS.values(), ids=REFUSALS)
def test_what_cannot_work_is_refused_in_one_sentence(site: Site, words: list[str], named: str) -> None:
    site.client().put_producer(Producer("never_measured", cmd="", time_max=3600, kind=Kind.PROGRAM))
    before = job_files(site.cluster)

    done = site.submit("hdfs:///out/refused", *words)

    assert done.returncode == 1
    sentence = done.stderr.strip().splitlines()[-1]
    assert sentence.startswith("Error: ")
    assert named in sentence
    assert "Traceback" not in done.stderr
    assert left_behind(site, "/out/refused", before) == []


def test_results_are_never_overwritten(site: Site, first: dict[str, Any]) -> None:
    done = site.submit("hdfs:///out/even")

    assert done.returncode == 1
    assert "/out/even exists already" in done.stderr
    assert len(rows(site, "/out/even")) == PICTURES + len(BROKEN)


def test_the_logs_of_a_job_are_kept_and_found(site: Site, first: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in succeed(site.nodewise("job", "logs", first["job_id"], "--json")).splitlines()]

    assert [line for line in lines if line["role"] == "master" and "plan: " in line["line"]]
    workers = {line["container_id"][-6:] for line in lines if line["role"] == "worker"}
    assert len(workers) == 4 and "000001" not in workers, "the master's container is 1"


def test_a_job_s_state_is_shown_to_programs(site: Site, first: dict[str, Any]) -> None:
    status = json.loads(succeed(site.nodewise("job", "status", first["job_id"], "--json")))
    listed = json.loads(succeed(site.nodewise("job", "list", "--json")))

    assert status["final"] == "SUCCEEDED"
    assert first["job_id"] in [job["application_id"] for job in listed]


def running(site: Site, output: str) -> dict[str, Any] | None:
    """What YARN says of the running application that will store its results there, once there is one."""
    with urlopen(f"{site.cluster.rm_http}/ws/v1/cluster/apps?states=RUNNING", timeout=60) as answer:
        under_way = (json.load(answer)["apps"] or {}).get("app", [])
    return next((job for job in under_way if set(tags(output)) & set(job["applicationTags"].split(","))), None)


def master_node(site: Site, output: str) -> str | None:
    """The node of a job's application master that has begun its work."""
    job = running(site, output) or {}
    return str(job.get("amHostHttpAddress", "")).partition(":")[0] or None


def lose_a_node(site: Site, output: str) -> tuple[int, int]:
    """What a node was to do and what it did in a job that began as it was frozen; no image of the job is lost.

    Frozen, it still counts as alive when the plan is made; then it misses its heartbeats and is lost.
    """
    before = job_files(site.cluster)
    with ThreadPoolExecutor(1) as background:
        submitted = background.submit(site.submit, f"hdfs://{output}")
        master = until(lambda: master_node(site, output) or submitted.done())
        node = next(name for name in site.cluster.nodes if name != master)
        victim = daemons.find_running(site.cluster)[daemons.Daemon(site.cluster, "nodemanager", node)]
        victim.send_signal(signal.SIGSTOP)
        try:
            report = json.loads(succeed(submitted.result()))
        finally:
            victim.send_signal(signal.SIGCONT)

    assert len(rows(site, output)) == report["images"] == PICTURES + len(BROKEN)
    assert left_behind(site, output, before) == [output]
    done = {one["node_name"]: (one["planned_images"], one["images"]) for one in report["nodes"]}
    return done.get(node, (0, 0))


def test_a_node_that_is_lost_before_its_container_starts_costs_no_picture(site: Site) -> None:
    # On a busy machine the node may be lost before the plan, or its container may start before it is frozen.
    outcomes = (lose_a_node(site, f"/out/lost{attempt}") for attempt in range(6))

    assert any(planned > 0 == done for planned, done in outcomes)


def test_no_job_here_that_succeeded_has_left_files(site: Site, first: dict[str, Any]) -> None:
    succeeded = {one["id"] for one in applications(site.cluster) if one["finalStatus"] == "SUCCEEDED"}

    assert first["job_id"] in succeeded
    assert not succeeded & job_files(site.cluster)
