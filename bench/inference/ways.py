"""The ways to classify the same pictures on the same cores; each gives what it measured as a flat record."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError
from bench.spark import SPARK_PYTHON, WORKER_PYTHON, run, settings
from bench.stage import CAPABILITY, Stage
from jobs.code_archive import code_zip

FOLDER, PACKED = "/bench/pictures", "/bench/packed"

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
    found = run(stage.cluster, WORKER_PYTHON, "bench.inference.plain", argv, {"OMP_NUM_THREADS": threads})
    return {"images_per_second": found["images_per_second"], "seconds": found["seconds"]}


def pack(stage: Stage, work: Work) -> None:
    """As many pictures of the same kind once more, packed; nothing where they are already."""
    if stage.hdfs().status(PACKED, strict=False):
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        stage.nodewise("images", "make", directory, "-n", str(work.pictures))
        stage.nodewise("images", "pack", directory, PACKED)


def words_of_network(work: Work) -> list[str]:
    """What a job, or a pool, is told of what it infers with."""
    words = ["--engine", work.engine, "--batch", str(work.batch)]
    return [*words, "--weights", str(work.weights)] if work.weights else words


def submit(
    stage: Stage, folder: str, output: str, pictures: int, *more: str, timeout: float = 600
) -> tuple[dict[str, Any], float]:
    """The report of one job, and the seconds of its command; BenchError when a picture has no row."""
    words = ["--input", folder, "--output", output, "--capability", CAPABILITY, "--policy", "maxflow", *more]
    begun = time.monotonic()
    report: dict[str, Any] = json.loads(stage.nodewise("job", "submit", *words, "--wait", "--json", timeout=timeout))
    seconds = time.monotonic() - begun
    if report["images"] != pictures or report["errors"]:
        raise BenchError(f"{report['images']} of {pictures} pictures, {report['errors']} errors")
    return report, seconds


def speeds_of(report: Mapping[str, Any]) -> list[float]:
    """Images a second of each node, in the order of the nodes."""
    return [node["images_per_second"] for node in sorted(report["nodes"], key=lambda one: one["node_name"])]


def nodewise(stage: Stage, work: Work, number: int, folder: str = FOLDER) -> tuple[Found, list[float]]:
    """One job; also the speed at which each node worked, in the order of the nodes."""
    output = f"/bench/out/inference-{number}"
    stage.hdfs().delete(output, recursive=True)
    report, wall_seconds = submit(stage, folder, output, work.pictures, *words_of_network(work))
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
        speeds_of(report),
    )


def spark(stage: Stage, work: Work, slices: Mapping[str, int]) -> dict[str, Found]:
    """The same pictures in a mapPartitions, by name of the number of partitions, one after the other in one session.

    The first, like a nodewise job, loads the engine; the others find it loaded. Seconds run from the first read on any
    node to the last result, as nodewise's makespan does.
    """
    with tempfile.TemporaryDirectory() as directory:
        code = Path(directory) / "code.zip"
        code.write_bytes(code_zip())
        file = Path(directory) / "settings.json"
        file.write_text(
            json.dumps(
                {
                    "engine": work.engine,
                    "weights": str(work.weights) if work.weights else None,
                    "batch": work.batch,
                    "code": str(code),
                    "paths": [f"{FOLDER}/{name}" for name in sorted(stage.hdfs().list(FOLDER))],
                    "slices": list(slices.values()),
                    "spark": settings(stage.cluster, stage.cluster.size),
                }
            )
        )
        found = run(stage.cluster, SPARK_PYTHON, "bench.inference.spark_job", [str(file)])
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
