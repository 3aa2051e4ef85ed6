"""Processes that read pictures in the worker's environment, and begin together."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import IO, Any, cast

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.reading.table import Found, key
from hadoop.local.lifecycle import Cluster

WORKER = ROOT / ".venv-worker" / "bin" / "python"


def read(cluster: Cluster, pictures: Path, processes: int) -> Found:
    """Every picture of a list is read once, by so many processes at the same time; BenchError when one does not."""
    readers = [_Reader(cluster, [str(pictures), str(first), str(processes)]) for first in range(processes)]
    try:
        for reader in readers:
            reader.hear()
        begun = time.monotonic()
        for reader in readers:
            reader.go()
        parts = [json.loads(reader.hear()) for reader in readers]
        seconds = time.monotonic() - begun
    finally:
        for reader in readers:
            reader.end()
    count, size, used = (sum(part[what] for part in parts) for what in ("pictures", "bytes", "cpu_seconds"))
    return {
        "bytes": size,
        key(processes, "images_per_second"): count / seconds,
        key(processes, "bytes_per_second"): size / seconds,
        key(processes, "cpu_seconds_per_image"): used / count,
    }


class _Reader:
    """One process of bench.reading.read."""

    def __init__(self, cluster: Cluster, words: list[str]) -> None:
        environment = os.environ | {"HADOOP_CONF_DIR": str(cluster.conf_dir), "HADOOP_USER_NAME": cluster.user}
        piped: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        argv = [str(WORKER), "-m", "bench.reading.read", *words]
        self._process = subprocess.Popen(argv, text=True, cwd=ROOT, env=environment, **piped)

    def go(self) -> None:
        stdin = cast(IO[str], self._process.stdin)
        stdin.write("go\n")
        stdin.flush()

    def hear(self) -> str:
        """The next line that it says."""
        line: str = cast(IO[str], self._process.stdout).readline()
        if not line:
            said = cast(IO[str], self._process.stderr).read().strip()
            raise BenchError(f"a reader ended with status {self._process.wait()}: {said[-1500:]}")
        return line

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
