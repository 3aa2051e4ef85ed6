"""Brings Hadoop's jars: links to those of a Hadoop that is here, or those of the lock or of a version, by Maven."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hadoop.client.jars import check_jars
from hadoop.errors import HadoopError

_PLACES = (
    "common/*.jar",
    "common/lib/*.jar",
    "hdfs/*.jar",
    "hdfs/lib/*.jar",
    "yarn/*.jar",
    "yarn/lib/*.jar",
    "yarn/timelineservice/hadoop-yarn-server-timelineservice-[0-9]*.jar",
    "mapreduce/*.jar",
)
"""Below share/hadoop, in the order of Hadoop's own class path."""
_WITHOUT_OLD_LOG4J = "-DexcludeArtifactIds=log4j,slf4j-log4j12"
"""Hadoop 3.3 leaves them out of its distribution, and its poms do not; it logs by reload4j."""
_MARKED = re.compile(r"\[ERROR\] (\S.*?)(?: -> \[Help \d+\])?$", re.MULTILINE)
_MISSING = re.compile(r"Could not find artifact org\.apache\.hadoop:([\w-]+):\S*:(\S+) in \S+ \((.+?)\)")
_NOT_FETCHED = re.compile(r"Could not transfer artifact \S+ from/to \S+ \((.+?)\): (?:transfer failed for \S+: )?(.+)")
_TOLD = 600
"""Characters of what Maven has said."""


def link(hadoop_home: Path, folder: Path) -> None:
    """Make `folder`/lib of links to the jars of a Hadoop; HadoopError when that is not a whole one."""
    shared = hadoop_home.absolute() / "share" / "hadoop"
    found: dict[str, Path] = {}
    for place in _PLACES:
        for jar in sorted(shared.glob(place)):
            found.setdefault(jar.name, jar)
    if not found:
        raise HadoopError(f"{hadoop_home} has no jars in share/hadoop", remedy="name another folder with --hadoop-home")
    with _draft(folder) as draft:
        lib = draft / "lib"
        lib.mkdir()
        for name, jar in found.items():
            (lib / name).symlink_to(jar)
        check_jars(lib)
        _put(lib, folder)


def fetch(folder: Path, root: Path) -> None:
    """Make `folder`/lib of the jars that `root`/hadoop/pom.xml names; HadoopError says what Maven said."""
    with _draft(folder) as draft:
        lib = _run_maven(draft, root)
        if wrong := list(_unlike(lib, _lock(root))):
            raise HadoopError(f"these jars are not those that nodewise is tested with: {', '.join(wrong)}")
        _put(lib, folder)


def fetch_version(version: str, folder: Path, root: Path) -> None:
    """Make `folder`/lib of the same jars of another Hadoop, whose hashes no lock has.

    HadoopError says why it cannot be had, or that `lib` is there already and is something else.
    """
    if (folder / "lib").exists():
        raise HadoopError(f"{folder / 'lib'} is not Hadoop {version}", remedy="name another folder with --into")
    with _draft(folder) as draft:
        lib = _run_maven(draft, root, f"-Dhadoop.version={version}", _WITHOUT_OLD_LOG4J)
        check_jars(lib)
        lib.rename(folder / "lib")


def is_whole(folder: Path, root: Path) -> bool:
    """Whether the jars of the lock are there, and no others."""
    return (folder / "lib").is_dir() and not list(_unlike(folder / "lib", _lock(root)))


def has_version(folder: Path, version: str) -> bool:
    """Whether the jars of this Hadoop are there; a folder is put there whole, or not at all."""
    return (folder / "lib" / f"hadoop-common-{version}.jar").is_file()


def _run_maven(draft: Path, root: Path, *settings: str) -> Path:
    """The folder of the jars, within the draft."""
    shutil.copy(root / "hadoop" / "pom.xml", draft)
    # -C: what does not have the checksum that the registry names is refused. -U: what was missing may be there now.
    argv = ["mvn", "-q", "-B", "-C", "-U", "-Dstyle.color=never", *settings, "-f", str(draft / "pom.xml"), "package"]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise _error_of(done.stdout + done.stderr)
    return draft / "target" / "lib"


def _error_of(said: str) -> HadoopError:
    """What went wrong, by the first line that is marked as an error; those after it tell how to ask Maven for more."""
    marked = _MARKED.search(said)
    line = marked[1] if marked else " ".join(said.split())
    if found := _MISSING.search(line):
        name, version, registry = found.groups()
        mend = "name a version that is there with --version, such as 3.4.2, or another registry in ~/.m2/settings.xml"
        return HadoopError(f"Maven finds no Hadoop {version} at {registry} ({name} is missing)", remedy=mend)
    if found := _NOT_FETCHED.search(line):
        registry, reason = found.groups()
        mend = "try again when that registry answers, or name another in ~/.m2/settings.xml"
        return HadoopError(f"Maven cannot fetch Hadoop's jars from {registry} ({reason})", remedy=mend)
    return HadoopError(f"Maven cannot fetch Hadoop's jars ({line[-_TOLD:]})")


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A folder within another one, which goes when the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
        yield Path(draft)


def _put(lib: Path, folder: Path) -> None:
    """Take a finished folder of a draft in the place of the one before, or of a link, which goes with the draft."""
    place = folder / "lib"
    if place.is_symlink() or place.exists():
        place.rename(lib.with_name("before"))
    lib.rename(place)


def _lock(root: Path) -> dict[str, str]:
    """The SHA-256 of each jar, by its name."""
    lines = (root / "requirements" / "hadoop.sha256").read_text(encoding="ascii").splitlines()
    return {name: sha256 for sha256, name in (line.split() for line in lines)}


def _unlike(lib: Path, lock: dict[str, str]) -> Iterator[str]:
    """The names of jars that are missing, not wanted, or have another content."""
    found = {jar.name for jar in lib.glob("*.jar")}
    yield from sorted(found ^ lock.keys())
    for name in sorted(found & lock.keys()):
        with (lib / name).open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != lock[name]:
                yield name
