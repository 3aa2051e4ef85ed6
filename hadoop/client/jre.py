"""Finds the Java for the daemons and for the JVM in our own process, and says what Hadoop needs of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from hadoop.errors import HadoopError

JVMS = Path("/usr/lib/jvm")
JAVA_VERSIONS = (17, 21)
"""What Hadoop runs on, the one it is tested with most first."""
# Hadoop and its libraries reach into the JDK, which Java allows only where it is named.
OPENS = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.io", "java.lang", "java.lang.reflect", "java.math", "java.net", "java.text", "java.util",
        "java.util.concurrent", "java.util.zip", "sun.security.util", "sun.security.x509",
    )
)  # fmt: skip

_NEEDED = " or ".join(map(str, JAVA_VERSIONS))
_INSTALL = " or ".join(f"`apt-get install openjdk-{version}-jre-headless`" for version in JAVA_VERSIONS)
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


def find_java(java_home: str | None, jvms: Path = JVMS) -> Path:
    """Find the java program: that of JAVA_HOME if it is set, else the first version of PATH or of Debian's place.

    HadoopError says what is missing, or which version was found instead.
    """
    if java_home:
        return _check_version(Path(java_home) / "bin" / "java", f"JAVA_HOME={java_home}")
    on_path = shutil.which("java")
    found = read_version(Path(on_path)) if on_path else None
    for version in JAVA_VERSIONS:
        if on_path and found == version:
            return Path(on_path).resolve()
        if debian := sorted(jvms.glob(f"java-{version}-openjdk*/bin/java")):
            return _check_version(debian[0], str(debian[0]))
    if on_path:
        return _check_version(Path(on_path), on_path)
    raise HadoopError("Java is missing", remedy=f"Hadoop needs Java {_NEEDED}, install it with {_INSTALL}")


def _check_version(java: Path, origin: str) -> Path:
    if not os.access(java, os.X_OK):
        raise HadoopError(
            f"{origin} has no bin/java", remedy=f"point JAVA_HOME at Java {_NEEDED}, or unset it after {_INSTALL}"
        )
    version = read_version(java)
    if version not in JAVA_VERSIONS:
        raise HadoopError(
            f"{origin} is Java {version or 'of no known version'}, and Hadoop needs Java {_NEEDED}",
            remedy=f"install it with {_INSTALL} and point JAVA_HOME at it",
        )
    return java


def read_version(java: Path) -> int | None:
    """The major version of a java program; None when it is not known."""
    with suppress(OSError):  # most installations have this file, which is read sooner than Java starts
        if found := _RELEASE.search((java.resolve().parent.parent / "release").read_text(errors="replace")):
            return int(found[1])
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def parse_version(text: str) -> int | None:
    """Read the major version out of what `java -version` prints, such as `openjdk version "17.0.15" 2025-04-15`."""
    match = _VERSION.search(text)
    return int(match[1]) if match else None
