"""Checks this machine: its Python, its Java, Hadoop's jars, its disk."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from xml.etree import ElementTree

from hadoop.client.jars import JARS, check_jars
from hadoop.client.jre import find_java, read_version
from hadoop.errors import HadoopError
from hadoop.installation import ROOT, Part, remedy
from hadoop.local.lifecycle import MIN_FREE_BYTES
from hadoop.local.preflight import STUCK_BYTES
from jobs.application.package import NO_PYTHON
from nodewise.doctor.finding import PATIENCE_SECONDS, Finding, Problem, fail, ok, skip, warn
from nodewise.setup.workers_python import PYTHONS

OLDEST_PYTHON = (3, 11)

_POM = ROOT / "hadoop" / "pom.xml"
_JAR = re.compile(r"hadoop-(?:common|hdfs|hdfs-client|yarn-(?:api|client|common|server-[a-z]+))-(\d+(?:\.\d+)+)\.jar")
_PYTHON = re.compile(r"Python (\d+)\.(\d+)")


@dataclass(frozen=True)
class Jars:
    """Hadoop's jars in a folder: which versions there are, which files are not jars, and which version is expected."""

    folder: Path
    versions: tuple[str, ...]
    broken: tuple[str, ...]
    expected: str | None = None


@dataclass(frozen=True)
class Disk:
    """The file system that holds, or would hold, nodewise's home."""

    directory: Path
    free_bytes: int
    writable: bool


def read_release() -> str:
    """The version of nodewise, empty when it was not installed as a package."""
    try:
        return version("nodewise")
    except PackageNotFoundError:
        return ""


def python(found: tuple[int, int], release: str) -> Finding:
    """Whether this Python is one that nodewise runs on."""
    what = f"Python {_join_dots(found)}, nodewise {release or 'of no known version'}"
    if found < OLDEST_PYTHON:
        return fail("python", what, f"install Python {_join_dots(OLDEST_PYTHON)}, and nodewise with it")
    return ok("python", f"{what} ({sys.executable})")


def read_worker(program: Path) -> tuple[int, int] | None:
    """The version of the Python that containers start, None when it is not here."""
    if not program.exists():
        return None
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HadoopError(f"{program} does not run ({error})", remedy=remedy(Part.WORKER)) from None
    return parse_python(answer.stdout + answer.stderr)


def parse_python(text: str) -> tuple[int, int]:
    """Read what `python --version` prints, such as `Python 3.11.7`; (0, 0) when it is something else."""
    found = _PYTHON.match(text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def worker_python(program: Path, found: tuple[int, int] | Problem | None, elsewhere: bool) -> Finding:
    """Whether containers find a Python that their engines run on; `elsewhere` when the nodes are other machines."""
    name = "worker python"
    if str(program) == NO_PYTHON:
        return skip(name, "nodes have none of their own for jobs, which name an environment with --env NAME@VERSION")
    if isinstance(found, Problem):
        return found.as_finding(name)
    if found is None and elsewhere:
        return skip(name, f"this machine has no {program}, which jobs start on the nodes only")
    if found is None:
        mend = f"{remedy(Part.WORKER)}, or name one with --worker-python (NODEWISE_WORKER_PYTHON)"
        return fail(name, f"there is no {program}, which jobs start in containers", mend)
    with_mxnet = PYTHONS[0]
    if found not in PYTHONS:
        mend = f"{remedy(Part.WORKER)}, or name one of Python {_join_dots(with_mxnet)} with --worker-python"
        return fail(name, f"{program} is Python {_join_dots(found)}, which the engines do not run on", mend)
    told = "" if found == with_mxnet else f", for the engine onnx: mxnet needs Python {_join_dots(with_mxnet)}"
    return ok(name, f"Python {_join_dots(found)} ({program}){told}")


def read_java() -> Path:
    """The java program that nodewise would take; HadoopError says why there is none."""
    return find_java(os.environ.get("JAVA_HOME"))


def java(found: Path | Problem) -> Finding:
    """Whether there is the Java that Hadoop needs."""
    if isinstance(found, Problem):
        return found.as_finding("java")
    return ok("java", f"Java {read_version(found) or 'of no known version'} ({found})")


def read_jars(folder: Path) -> Jars:
    """Look at every jar of a folder; HadoopError when one that is needed is missing."""
    check_jars(folder)
    files = sorted(folder.glob("*.jar"))
    versions = {found[1] for file in files if (found := _JAR.fullmatch(file.name))}
    # A download that was cut off lacks the directory at its end.
    broken = [file.name for file in files if not zipfile.is_zipfile(file)]
    # Links lead to a Hadoop of this machine. Its version is the one that is wanted here, as that of a named folder is.
    is_own = folder == JARS and not any(file.is_symlink() for file in files)
    expected = _expected_version() if is_own else None
    return Jars(folder, tuple(sorted(versions)), tuple(broken), expected)


def jars(found: Jars | Problem) -> Finding:
    """Whether Hadoop's jars are whole and have the one version that this nodewise was made for."""
    name, mend = "jars", f"delete that folder, then {remedy(Part.HADOOP)}"
    if isinstance(found, Problem):
        return found.as_finding(name)
    if found.broken:
        return fail(name, f"{_join_some(found.broken)} in {found.folder} cannot be read as a jar", mend)
    if len(found.versions) != 1:
        return fail(name, f"{found.folder} mixes Hadoop {' and '.join(found.versions) or 'of no known version'}", mend)
    if found.expected not in (None, found.versions[0]):
        return warn(name, f"{found.folder} is Hadoop {found.versions[0]}, and {found.expected} is expected", mend)
    return ok(name, f"Hadoop {found.versions[0]} ({found.folder})")


def read_disk(home: Path) -> Disk:
    """Look at the file system of the home, or of the folder in which it would be made."""
    there = next(folder for folder in (home, *home.parents) if folder.is_dir())
    return Disk(there, shutil.disk_usage(there).free, os.access(there, os.W_OK | os.X_OK))


def disk(found: Disk | Problem) -> Finding:
    """Whether nodewise can write what it keeps, and a local cluster would start."""
    if isinstance(found, Problem):
        return found.as_finding("disk")
    free = f"{found.free_bytes / 1e9:,.1f} GB are free under {found.directory}"
    mend = "free some space, or use another --home (NODEWISE_HOME)"
    if not found.writable:
        mend = "use another --home (NODEWISE_HOME), or run this as its owner"
        return fail("disk", f"{found.directory} cannot be written by this user", mend)
    if found.free_bytes < STUCK_BYTES:
        return fail("disk", free, mend)
    if found.free_bytes < MIN_FREE_BYTES:
        return warn("disk", f"{free}, and `nodewise cluster up` needs {MIN_FREE_BYTES / 1e9:.1f} GB", mend)
    return ok("disk", free)


def _expected_version() -> str | None:
    """The version that setting up would fetch; None where nodewise was installed without Hadoop's pom.xml."""
    if not _POM.is_file():
        return None
    return ElementTree.parse(_POM).findtext(".//{*}hadoop.version")  # noqa: S314 - it came with nodewise


def _join_some(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _join_dots(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
