"""The ways to classify the same pictures on the same cores; each gives what it measured as a flat record."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.stage import CAPABILITY, Stage
from jobs.package import code_zip

FOLDER, PACKED = "/bench/pictures", "/bench/packed"
WORKER_PYTHON = ROOT / ".venv-worker" / "bin" / "python"
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
# As much as nodewise's own containers.
EXECUTOR_MB, EXECUTOR_OVERHEAD_MB, MASTER_MB, MASTER_OVERHEAD_MB = 512, 1536, 256, 192

Found = dict[str, float]


@dataclass(frozen=True)
class Work:
    """What all ways do: engine, weights (None: seeded) and pictures per inference, on the CPUs of the nodes."""

    engine: str
    weights: Path | None
    batch: int
    pictures: int
    cpus: tuple[int, ...]


def plain(stage: Stage, work: Work, source: str, processes: int) -> Found:
    """The framework without YARN, in `processes` processes that share the cores, from memory or from HDFS."""
    cpus = ",".join(map(str, work.cpus))
    argv = [work.engine, str(work.weights or "-"), str(work.batch), str(processes), FOLDER, source, cpus]
    threads = str(max(1, len(work.cpus) // processes))
    found = _run(stage, WORKER_PYTHON, "bench.inference.plain", argv, {"OMP_NUM_THREADS": threads})
    return {"images_per_second": found["images_per_second"], "seconds": found["seconds"]}


def pack(stage: Stage, work: Work) -> None:
    """As many pictures of the same kind once more, packed; nothing where they are already."""
    if stage.hdfs().status(PACKED, strict=False):
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        stage.nodewise("images", "make", directory, "-n", str(work.pictures))
        stage.nodewise("images", "pack", directory, PACKED)


def nodewise(stage: Stage, work: Work, number: int, folder: str = FOLDER) -> tuple[Found, list[float]]:
    """One job; also the speed at which each node worked, in the order of the nodes."""
    output = f"/bench/out/inference-{number}"
    stage.hdfs().delete(output, recursive=True)
    words = ["--input", folder, "--output", output, "--capability", CAPABILITY, "--policy", "maxflow"]
    words += ["--engine", work.engine, "--batch", str(work.batch), "--wait", "--json"]
    if work.weights:
        words += ["--weights", str(work.weights)]
    begun = time.monotonic()
    report = json.loads(stage.nodewise("job", "submit", *words))
    wall_seconds = time.monotonic() - begun
    if report["images"] != work.pictures or report["errors"]:
        raise BenchError(f"{report['images']} of {work.pictures} pictures, {report['errors']} errors")
    counted = [lease for lease in report["leases"] if lease["outcome"] == "accepted"]
    seconds = max(lease["end"] for lease in counted) - min(lease["begin"] for lease in counted)
    return (
        {
            "images_per_second": report["images"] / seconds,
            "seconds": seconds,
            "over_bound": report["makespan_over_bound"],
            "bytes_moved": report["bytes_moved"],
            # The report counts from the application master's start; before it lies what the client and YARN take.
            "first_result_seconds": wall_seconds - report["wall_seconds"] + report["first_result_seconds"],
            "wall_seconds": wall_seconds,
        },
        [node["images_per_second"] for node in sorted(report["nodes"], key=lambda one: one["node_name"])],
    )


def spark(stage: Stage, work: Work, slices: Mapping[str, int]) -> dict[str, Found]:
    """The same pictures in a mapPartitions, by name of the number of partitions, one after the other in one session.

    The first, like a nodewise job, loads the engine; the others find it loaded. Seconds run from the first read on any
    node to the last result, as nodewise's makespan does.
    """
    with tempfile.TemporaryDirectory() as directory:
        code = Path(directory) / "code.zip"
        code.write_bytes(code_zip())
        settings = Path(directory) / "settings.json"
        settings.write_text(
            json.dumps(
                {
                    "engine": work.engine,
                    "weights": str(work.weights) if work.weights else None,
                    "batch": work.batch,
                    "code": str(code),
                    "paths": [f"{FOLDER}/{name}" for name in sorted(stage.hdfs().list(FOLDER))],
                    "slices": list(slices.values()),
                    "spark": _spark_settings(stage),
                }
            )
        )
        found = _run(stage, SPARK_PYTHON, "bench.inference.spark_job", [str(settings)], {})
    cold = found["rounds"][0]
    measured = {
        name: {"images_per_second": one["images"] / one["seconds"], "seconds": one["seconds"]}
        for name, one in zip(slices, found["rounds"], strict=True)
    }
    measured[next(iter(slices))] |= {
        "first_result_seconds": found["session_seconds"] + cold["first_result_seconds"],
        "wall_seconds": found["session_seconds"] + cold["action_seconds"],
    }
    return measured


def _spark_settings(stage: Stage) -> dict[str, str]:
    cluster = stage.cluster
    return {
        "spark.submit.deployMode": "client",
        "spark.driver.host": cluster.master,
        "spark.driver.bindAddress": cluster.master,
        "spark.ui.enabled": "false",
        "spark.executor.instances": str(cluster.size),
        "spark.executor.cores": "1",
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.executor.memoryOverhead": f"{EXECUTOR_OVERHEAD_MB}m",
        "spark.yarn.am.memory": f"{MASTER_MB}m",
        "spark.yarn.am.memoryOverhead": f"{MASTER_OVERHEAD_MB}m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.executorEnv.HADOOP_CONF_DIR": str(cluster.conf_dir),
        "spark.executorEnv.HADOOP_USER_NAME": cluster.user,
        "spark.pyspark.python": str(WORKER_PYTHON),
        "spark.pyspark.driver.python": str(SPARK_PYTHON),
    }


def _run(stage: Stage, python: Path, module: str, argv: Sequence[str], more: Mapping[str, str]) -> dict[str, Any]:
    """The JSON on the last line that a program prints."""
    cluster = stage.cluster
    environment = os.environ | {
        "HADOOP_CONF_DIR": str(cluster.conf_dir),
        "HADOOP_USER_NAME": cluster.user,
        "YARN_CONF_DIR": str(cluster.conf_dir),
        "JAVA_HOME": str(cluster.java_home),
        "PYSPARK_PYTHON": str(WORKER_PYTHON),
        "PYTHONWARNINGS": "ignore",
        **more,
    }
    done = subprocess.run(
        [str(python), "-m", module, *argv], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=900
    )
    if done.returncode:
        raise BenchError(f"{module} failed: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
