"""Run in Spark's environment: the same pictures with the same engine, in a mapPartitions of Spark on YARN.

`python -m bench.inference.spark_job SETTINGS.json`; JSON on the last line. The executors' Python is the worker's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any


def main(settings_file: str) -> None:
    """Each round in `slices` partitions; seconds from the first read to the last result, and of the whole action."""

    settings = json.loads(Path(settings_file).read_text())
    begun = time.time()
    # Only Spark's environment has it.
    builder = import_module("pyspark.sql").SparkSession.builder.appName("bench").master("yarn")
    for key, value in settings["spark"].items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    up = time.time() - begun
    context = session.sparkContext
    context.addPyFile(settings["code"])
    chosen = {name: settings[name] for name in ("engine", "weights", "batch")}
    rounds = []
    for slices in settings["slices"]:
        started = time.time()
        pieces = context.parallelize(settings["paths"], slices).mapPartitions(lambda paths: classify(paths, chosen))
        found = pieces.collect()
        ended = time.time()
        rows = [row for piece in found for row in piece["rows"]]
        rounds.append(
            {
                "slices": slices,
                "images": len(rows),
                "action_seconds": ended - started,
                "seconds": max(piece["ended"] for piece in found) - min(piece["started"] for piece in found),
                "first_result_seconds": min(piece["first"] for piece in found) - started,
                "nodes": sorted({piece["node"] for piece in found}),
                "pieces": [[piece["node"], piece["started"] - started, piece["ended"] - started] for piece in found],
            }
        )
    session.stop()
    print(json.dumps({"session_seconds": up, "rounds": rounds}))


def classify(paths: Iterator[str], chosen: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One partition: rows (path, class, score), and when it began and ended; the engine is loaded once a process."""
    import builtins
    import os

    import numpy as np
    from hdfs_native import Client

    from jobs.engines.loading import load
    from jobs.engines.network import choose

    kept: Any = builtins
    if not hasattr(kept, "bench_engine"):
        weights = Path(chosen["weights"]) if chosen["weights"] else None
        kept.bench_engine = load(choose(chosen["engine"], None, weights), chosen["batch"])
        kept.bench_client = Client()
    started = time.time()
    first, rows, waiting = 0.0, [], list(paths)
    for at in range(0, len(waiting), chosen["batch"]):
        group = waiting[at : at + chosen["batch"]]
        contents = []
        for path in group:
            with kept.bench_client.read(path) as stream:
                contents.append(stream.read())
        probabilities = kept.bench_engine.probabilities(kept.bench_engine.images(contents))
        for path, row in zip(group, probabilities, strict=True):
            best = int(np.argmax(row))
            rows.append((path, best, float(row[best])))
        first = first or time.time()
    yield {
        "node": os.environ.get("NM_HOST", "?"),
        "started": started,
        "ended": time.time(),
        "first": first,
        "rows": rows,
    }


if __name__ == "__main__":
    main(sys.argv[1])
