"""What must be there before a cluster can start: Java 17, the jars, sshd, room on the disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from hadoop import sshd
from hadoop.errors import HadoopError

JARS = Path(__file__).resolve().parent / "target" / "lib"
JVMS = Path("/usr/lib/jvm")
JAVA_VERSION = 17
# With less room than this, daemons that start neither work nor end.
STUCK_BYTES = 1_000_000

_INSTALL = "`apt-get install openjdk-17-jre-headless`"
_NEEDED_JARS = (
    "hadoop-common-*.jar",
    "hadoop-hdfs-3*-tests.jar",
    "hadoop-yarn-server-nodemanager-*.jar",
    "hadoop-yarn-server-resourcemanager-*.jar",
    "hadoop-yarn-server-timelineservice-*.jar",
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


def find_java(java_home: str | None, jvms: Path = JVMS) -> Path:
    """Find the java program of version 17: that of JAVA_HOME if it is set, else of PATH, else of Debian's place.

    HadoopError says what is missing, or which version was found instead.
    """
    if java_home:
        return _accepted(Path(java_home) / "bin" / "java", f"JAVA_HOME={java_home}")
    debian = sorted(jvms.glob(f"java-{JAVA_VERSION}-openjdk*/bin/java"))
    on_path = shutil.which("java")
    if on_path and (not debian or _version(Path(on_path)) == JAVA_VERSION):
        return _accepted(Path(on_path).resolve(), on_path)
    if not debian:
        raise HadoopError(f"Java is missing: Hadoop needs Java {JAVA_VERSION}, install it with {_INSTALL}")
    return _accepted(debian[0], str(debian[0]))


def _accepted(java: Path, origin: str) -> Path:
    if not os.access(java, os.X_OK):
        raise HadoopError(
            f"{origin} has no bin/java: point JAVA_HOME at Java {JAVA_VERSION}, or unset it after {_INSTALL}"
        )
    found = _version(java)
    if found != JAVA_VERSION:
        raise HadoopError(
            f"{origin} is Java {found or 'of no known version'}, and Hadoop needs Java {JAVA_VERSION}: "
            f"install it with {_INSTALL} and point JAVA_HOME at it"
        )
    return java


def _version(java: Path) -> int | None:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def parse_version(text: str) -> int | None:
    """Read the major version out of what `java -version` prints, such as `openjdk version "17.0.15" 2025-04-15`."""
    found = _VERSION.search(text)
    return int(found[1]) if found else None


def check_jars(jars: Path) -> None:
    """Raise HadoopError unless this directory holds Hadoop's jars."""
    for pattern in _NEEDED_JARS:
        if not any(jars.glob(pattern)):
            raise HadoopError(f"{jars} has no {pattern}: run scripts/setup, or name the jars' directory with --jars")


def check_disk(directory: Path, min_free_bytes: int) -> None:
    """Raise HadoopError when the file system under this directory has less room than that."""
    free = shutil.disk_usage(directory).free
    if free < min_free_bytes:
        raise HadoopError(
            f"the disk under {directory} is full: {free / 1e6:,.0f} MB are free, "
            f"and a cluster needs {min_free_bytes / 1e6:,.0f} MB: "
            "free some space or use another --home"
        )


def check_sshd() -> None:
    """Raise HadoopError when sshd is missing."""
    sshd.program()
