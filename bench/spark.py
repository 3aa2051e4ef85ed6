"""Spark on YARN, from its own environment, and whatever else runs in an environment that is not this one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.info.processes import ROOT
from bench.programs import output
from hadoop.local.lifecycle import Cluster

WORKER_PYTHON = ROOT / ".venv-worker" / "bin" / "python"
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
# As much as nodewise's own containers.
EXECUTOR_MB, EXECUTOR_OVERHEAD_MB, MASTER_MB, MASTER_OVERHEAD_MB = 512, 1536, 256, 192


def settings(cluster: Cluster, executors: int) -> dict[str, str]:
    """Executors of one core each, all of them there before the first task starts."""
    return {
        "spark.submit.deployMode": "client",
        "spark.driver.host": cluster.master,
        "spark.driver.bindAddress": cluster.master,
        "spark.ui.enabled": "false",
        "spark.executor.instances": str(executors),
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


def version() -> dict[str, str]:
    """That of Spark, where it is installed."""
    found = next(SPARK_PYTHON.parents[1].glob("lib/python3*/site-packages/pyspark-*.dist-info"), None)
    return {"Spark": found.stem.removeprefix("pyspark-")} if found else {}


def keep_engines() -> dict[str, str]:
    """Settings with which executors keep the Python that a task has run in, and what it has loaded, for the next one.

    They are Spark's own. It ends such a Python all the same when no task has ended on its executor for a minute.
    """
    return {"spark.python.worker.reuse": "true"}


def allocate_dynamically(executors: int) -> dict[str, str]:
    """Settings with which Spark gives back executors that do nothing, and takes new ones; it begins with all of them.

    What an executor may keep for others is followed by the driver, as YARN has no shuffle service here.
    """
    name = "spark.dynamicAllocation"
    return {
        f"{name}.enabled": "true",
        f"{name}.shuffleTracking.enabled": "true",
        f"{name}.minExecutors": "1",
        f"{name}.initialExecutors": str(executors),
        f"{name}.maxExecutors": str(executors),
    }


def environment_of_driver(cluster: Cluster) -> dict[str, str]:
    """The variables of a driver on this machine, or of another program that speaks to the cluster."""
    return os.environ | {
        "HADOOP_CONF_DIR": str(cluster.conf_dir),
        "HADOOP_USER_NAME": cluster.user,
        "YARN_CONF_DIR": str(cluster.conf_dir),
        "JAVA_HOME": str(cluster.java_home),
        "PYSPARK_PYTHON": str(WORKER_PYTHON),
        "PYTHONWARNINGS": "ignore",
    }


def run(
    cluster: Cluster, python: Path, module: str, argv: Sequence[str], more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON on the last line that a program prints; BenchError when it fails."""
    environment = environment_of_driver(cluster) | dict(more or {})
    printed = output([str(python), "-m", module, *argv], module, environment, seconds=900)
    found: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return found
