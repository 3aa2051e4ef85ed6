"""Run in Spark's environment: the same pictures with the same engine, in a mapPartitions of Spark on YARN.

`python -m bench.inference.spark_job SETTINGS.json`; the executors' Python is the worker's. With `slices` in the
settings, each of these is a round, after a job of the first `warm` pictures, and JSON comes on the last line. Without,
the session is kept: each line of the input is a job, {"folder": one of `folders`, "slices": 32, "output": PATH}, and a
line of JSON answers it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

CHOSEN = ("engine", "weights", "batch")


def main(settings_file: str) -> None:
    """Do the rounds of the settings, or what is asked for until the input ends."""
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
    if "slices" in settings:
        if warm := settings.get("warm"):
            collect(context, settings, settings["paths"][:warm], settings["slices"][0])
        rounds = [do_round(context, settings, slices) for slices in settings["slices"]]
        session.stop()
        print(json.dumps({"session_seconds": up, "rounds": rounds}))
        return
    print(json.dumps({"session_seconds": up}), flush=True)
    for line in sys.stdin:
        print(json.dumps(do_job(context, settings, json.loads(line))), flush=True)
    session.stop()


def do_round(context: Any, settings: Mapping[str, Any], slices: int) -> dict[str, Any]:
    """Seconds from the first read to the last result, and of the whole action, whose rows come to the driver."""
    started = time.time()
    found = collect(context, settings, settings["paths"], slices)
    ended = time.time()
    return {
        "slices": slices,
        "images": sum(len(piece["rows"]) for piece in found),
        "action_seconds": ended - started,
        "seconds": max(piece["ended"] for piece in found) - min(piece["started"] for piece in found),
        "first_result_seconds": min(piece["first"] for piece in found if piece["rows"]) - started,
        "nodes": sorted({piece["node"] for piece in found}),
        "pieces": [
            [piece["node"], piece["started"] - started, piece["ended"] - started, len(piece["rows"])] for piece in found
        ],
    }


def do_job(context: Any, settings: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """Classify a folder and put the rows in place; moments are seconds since the epoch."""
    found = collect(context, settings, settings["folders"][job["folder"]], job["slices"])
    rows = [row for piece in found for row in piece["rows"]]
    store(context, rows, job["output"])
    committed = time.time()
    pieces = [
        {name: piece[name] for name in ("node", "started", "first", "ended")} | {"images": len(piece["rows"])}
        for piece in found
        if piece["rows"]
    ]
    return {"images": len({path for path, *_ in rows}), "rows": len(rows), "committed": committed, "pieces": pieces}


def collect(context: Any, settings: Mapping[str, Any], paths: Sequence[str], slices: int) -> list[dict[str, Any]]:
    """What each partition made of its pictures, here in the driver."""
    chosen = {name: settings[name] for name in CHOSEN}
    # Of single paths Spark makes batches, which it cannot divide evenly.
    groups = context.parallelize(divide(paths, slices), slices)
    pieces = groups.mapPartitions(lambda some: classify((path for group in some for path in group), chosen))
    found: list[dict[str, Any]] = pieces.collect()
    return found


def divide(paths: Sequence[str], slices: int) -> list[Sequence[str]]:
    """The paths in so many groups that are as large as one another, or one larger.

    >>> divide("abcdefg", 3)
    ['ab', 'cd', 'efg']
    """
    return [paths[len(paths) * at // slices : len(paths) * (at + 1) // slices] for at in range(slices)]


def store(context: Any, rows: Sequence[Sequence[Any]], output: str) -> None:
    """Write the rows to one file in HDFS, which has its name only when it is whole.

    The driver has the rows already, so nothing that Spark could do to write them is quicker.
    """
    hadoop = context._jvm.org.apache.hadoop.fs  # the way to Java that Spark itself takes
    whole, half = hadoop.Path(output), hadoop.Path(f"{output}.half")
    files = half.getFileSystem(context._jsc.hadoopConfiguration())
    stream = files.create(half, True)
    stream.write(bytearray("".join(f"{path}\t{best}\t{score:.6f}\n" for path, best, score in rows), "utf-8"))
    stream.close()
    if not files.rename(half, whole):
        raise OSError(f"{output} is there already")


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
