"""What the figures were measured on: the machine, the versions, and how much of it others took meanwhile."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from bench.info import database


def describe(directory: Path) -> dict[str, str | int]:
    """Cores, CPU, memory, system, and the file system that holds what is stored."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu(Path("/proc/cpuinfo").read_text()),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "Linux"),
        "kernel": platform.release(),
        "file_system": _file_system(directory),
    }


def ours() -> dict[str, str]:
    """The versions of what every bench needs."""
    return {"nodewise": importlib.metadata.version("nodewise"), "Python": platform.python_version()}


def versions() -> dict[str, str]:
    """Those, and of what the information service stands on or beside; what is not installed is left out."""
    found = ours() | {
        "SQLite": sqlite3.sqlite_version,
        "MariaDB": _version_of(database.program(), r"Ver (\S+)"),
        "Prometheus": _version_of(shutil.which("prometheus"), r"version (\S+)"),
        "node exporter": _version_of(shutil.which("prometheus-node-exporter"), r"version (\S+)"),
    }
    return {name: version for name, version in found.items() if version}


def hadoop(jars: Path) -> dict[str, str]:
    """The version of the jars in a folder, one of them hadoop-common's."""
    (jar,) = jars.glob("hadoop-common-*.jar")
    return {"Hadoop": jar.stem.removeprefix("hadoop-common-")}


class Since:
    """What else the machine did: its load when this was made, and the CPU time its host gave to others since."""

    def __init__(self) -> None:
        self.load = os.getloadavg()[0]
        self._before = psutil.cpu_times()

    def heading(self, directory: Path, versions: Mapping[str, str]) -> dict[str, Any]:
        """What every record begins with; `directory` is where was stored what was measured."""
        return {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "machine": describe(directory),
            "versions": dict(versions),
            "steal_ratio": self.steal_ratio(),
            "load_before": self.load,
        }

    def steal_ratio(self) -> float:
        """From 0 to 1."""
        now = psutil.cpu_times()
        # Time of guests is counted in that of users already.
        whole = sum(now[:8]) - sum(self._before[:8])
        return float((now.steal - self._before.steal) / whole) if whole else 0.0


def _cpu(text: str) -> str:
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def _file_system(directory: Path) -> str:
    """The type of the file system that a directory is on."""
    holding = [part for part in psutil.disk_partitions(all=True) if directory.is_relative_to(part.mountpoint)]
    return max(holding, key=lambda part: len(part.mountpoint)).fstype if holding else "unknown"


def _version_of(program: str | None, pattern: str) -> str:
    if program is None:
        return ""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=120, check=False)
    found = re.search(pattern, said.stdout + said.stderr)
    return found[1] if found else ""
