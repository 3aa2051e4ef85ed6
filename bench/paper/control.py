"""Programs that run on this machine and speak to the cluster: Hadoop's own clients and Spark's driver."""

from __future__ import annotations

import os
import shlex
import socket
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.programs import output
from bench.spark import SPARK_PYTHON
from hadoop.client.jars import JARS, check_jars
from hadoop.client.jre import find_java

HOSTS = "jdk.net.hosts.file"
"""The property of a JVM that names the only file in which it looks names up."""
SHELL = "org.apache.hadoop.fs.FsShell"
DISTRIBUTED = "org.apache.hadoop.yarn.applications.distributedshell.Client"
CLIENT_SECONDS = 900.0


class Control:
    """A folder with the cluster's site files and the names of its machines, which this machine does not know."""

    def __init__(self, scratch: Path, addresses: Mapping[str, str], user: str) -> None:
        self.scratch = scratch
        self.user = user
        self.conf = scratch / "conf"
        self.conf.mkdir()
        self.hosts = scratch / "hosts"
        self.address = _own_address(next(iter(addresses.values())))
        names = {"localhost": "127.0.0.1", socket.gethostname(): self.address, **addresses}
        self.hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()))
        check_jars(JARS)

    def add_site(self, name: str, text: str) -> None:
        """A site file of the cluster."""
        (self.conf / name).write_text(text)

    def environment(self, user: str | None = None) -> dict[str, str]:
        """What makes clients speak to this cluster, as its user or as another."""
        java = find_java(os.environ.get("JAVA_HOME"))
        own = {"HADOOP_CONF_DIR": str(self.conf), "YARN_CONF_DIR": str(self.conf)}
        return {**os.environ, **own, "HADOOP_USER_NAME": user or self.user, "JAVA_HOME": str(java.parent.parent)}

    def java(self, main: str, *words: str, user: str | None = None) -> str:
        """What a client of Hadoop prints."""
        environment = self.environment(user)
        java = f"{environment['JAVA_HOME']}/bin/java"
        argv = [java, f"-D{HOSTS}={self.hosts}", "-Xmx512m", "-cp", f"{self.conf}:{JARS}/*", main, *words]
        return output(argv, f"{main.rpartition('.')[2]} {' '.join(words)[:200]}", environment, CLIENT_SECONDS)

    def hdfs(self, *words: str, user: str | None = None) -> str:
        """What a command of `hdfs dfs` prints."""
        return self.java(SHELL, *words, user=user)

    def distributed_shell(self, argv: Sequence[str], count: int, memory_mb: int) -> None:
        """Run a program in so many containers wherever YARN puts them, until all have ended well.

        Its words must not hold what two shells, one inside double quotes, would not leave as it is.
        """
        jar = next(JARS.glob("hadoop-yarn-applications-distributedshell-*.jar"))
        words = {
            "-jar": str(jar),
            "-appname": "bench-shell",
            "-shell_command": shlex.join(argv),
            "-shell_env": f"HADOOP_USER_NAME={self.user}",
            "-num_containers": str(count),
            "-container_memory": str(memory_mb),
            "-container_vcores": "1",
            "-master_memory": "256",
            "-timeout": str(round(1000 * CLIENT_SECONDS)),
        }
        self.java(DISTRIBUTED, *(word for pair in words.items() for word in pair))

    def spark_jars(self) -> Path:
        """Spark's own jars in one archive, so that nodes fetch them once and not for every application."""
        archive = self.scratch / "spark-jars.zip"
        found = sorted(SPARK_PYTHON.parents[1].glob("lib/python3*/site-packages/pyspark/jars/*.jar"))
        if not found:
            raise BenchError(f"{SPARK_PYTHON.parents[1]} has no pyspark: run scripts/setup --bench")
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as zipped:
            for jar in found:
                zipped.write(jar, jar.name)
        return archive

    def spark(self, module: str, *words: str, python: str) -> str:
        """What a program prints whose driver is Spark's, here; `python` is that of the workers."""
        # The setting of this name counts for spark-submit alone.
        environment = self.environment() | {"PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": python}
        return output([str(SPARK_PYTHON), "-m", module, *words], module, environment, CLIENT_SECONDS)

    def spark_settings(self, archive: str, conf: str, executors: int, memory_mb: int) -> dict[str, Any]:
        """Executors of one core each, all of them there before the first task starts; the driver is here."""
        heap_mb = 512
        return {
            "spark.submit.deployMode": "client",
            "spark.driver.host": self.address,
            "spark.driver.bindAddress": self.address,
            "spark.driver.extraJavaOptions": f"-D{HOSTS}={self.hosts}",
            "spark.ui.enabled": "false",
            "spark.yarn.archive": archive,
            "spark.executor.instances": str(executors),
            "spark.executor.cores": "1",
            "spark.executor.memory": f"{heap_mb}m",
            "spark.executor.memoryOverhead": f"{memory_mb - heap_mb}m",
            "spark.yarn.am.memory": "256m",
            "spark.yarn.am.memoryOverhead": "192m",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",  # a JVM starts slowly on a busy node
            "spark.executorEnv.OMP_NUM_THREADS": "1",
            "spark.executorEnv.HADOOP_CONF_DIR": conf,
            "spark.executorEnv.HADOOP_USER_NAME": self.user,
        }


def slice_script() -> Path:
    """What the distributed shell runs."""
    return ROOT / "bench" / "paper" / "slice.py"


def _own_address(other: str) -> str:
    """The address under which another machine sees this one; nothing is sent for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((other, 9))
        return str(probe.getsockname()[0])
