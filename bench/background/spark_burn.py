"""Run in Spark's environment: a task of the same work in each executor, by Spark on YARN.

`python -m bench.background.spark_burn SETTINGS.json`; the nodes of the tasks as JSON on the last line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path


def main(settings_file: str) -> None:
    """As many tasks as executors."""
    settings = json.loads(Path(settings_file).read_text())
    # Only Spark's environment has it.
    builder = import_module("pyspark.sql").SparkSession.builder.appName("background").master("yarn")
    for key, value in settings["spark"].items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    steps = settings["steps"]
    tasks = session.sparkContext.parallelize(range(settings["executors"]), settings["executors"])
    nodes = tasks.mapPartitions(lambda _: work(steps)).collect()
    session.stop()
    print(json.dumps({"nodes": nodes}))


def work(steps: int) -> Iterator[str]:
    """The node that did it, once it is done."""
    import os

    total = 0
    for number in range(steps):
        total += number
    yield os.environ["NM_HOST"]


if __name__ == "__main__":
    main(sys.argv[1])
