"""From what somebody asks for to a lock: one file of each package by its name, version and SHA-256, as pip reads it.

    numpy==2.4.6 --hash=sha256:...
    onnxruntime==1.32.0 --hash=sha256:...

uv finds the versions, and pip fetches the files, as uv cannot: https://docs.astral.sh/uv/pip/compile/.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environments.errors import EnvError
from environments.file_hash import hash_file
from environments.manifest import Package
from environments.tools import call, uv

_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+) --hash=sha256:([0-9a-f]{64})")
_NO_WHEEL = re.compile(r"(\S+) ha(?:s|ve) no (?:usable wheels|wheels with a matching)")
_CONFLICT = "these packages do not go together"


@dataclass(frozen=True)
class Target:
    """What packages are for: `python` as 3.11, `libc` the newest version of glibc that they may need."""

    python: str = "3.11"
    architecture: str = "x86_64"
    libc: str = "2.36"

    @property
    def uv_platform(self) -> str:
        """As uv calls it.

        >>> Target().uv_platform
        'x86_64-manylinux_2_36'
        """
        return f"{self.architecture}-manylinux_{self.libc.replace('.', '_')}"

    def pip_platforms(self) -> list[str]:
        """All that pip has to be told, as it takes none by itself that is older.

        >>> Target(libc="2.18").pip_platforms()[:3]
        ['manylinux_2_18_x86_64', 'manylinux_2_17_x86_64', 'manylinux2014_x86_64']
        """
        newest = int(self.libc.partition(".")[2])
        numbered = [f"manylinux_2_{minor}" for minor in range(newest, 4, -1)]
        older = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
        names = [name for one in numbered for name in (one, older.get(int(one.rpartition("_")[2]), ""))]
        return [f"{name}_{self.architecture}" for name in names if name]


def solve(requirements: str, target: Target, folder: Path) -> str:
    """Requirements with every package that they need in one version; EnvError with uv's words where there is none."""
    asked, solved = folder / "asked.txt", folder / "solved.txt"
    asked.write_text(requirements)
    options = ["--generate-hashes", "--only-binary", ":all:", "--no-header", "--no-annotate", "--quiet"]
    where = ["--python-version", target.python, "--python-platform", target.uv_platform]
    try:
        call([uv(), "pip", "compile", asked, *options, *where, "--output-file", solved], _CONFLICT)
    except EnvError as error:
        raise _explain(error, target) from None
    return solved.read_text()


def _explain(error: EnvError, target: Target) -> EnvError:
    """What stands in the way, in one sentence, and uv's own words."""
    why = error.remedy.partition(" cause: ")[2] or error.remedy
    if match := _NO_WHEEL.search(why):
        what = f"{match[1]} has no wheel for Python {target.python} on {target.architecture} with glibc {target.libc}"
        return EnvError(what, remedy=f"ask for a version that has one; uv says: {why}")
    return EnvError(error.message, remedy=why)


def fetch(solved: str, target: Target, folder: Path) -> list[Path]:
    """The files of all packages of solved requirements or a lock; EnvError when one is missing or has another hash."""
    wheels, listed = folder / "wheels", folder / "solved.txt"
    listed.write_text(solved)
    wheels.mkdir()
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", target.python]
    options += [word for one in (*target.pip_platforms(), "any") for word in ("--platform", one)]
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", *options]
    call([*argv, "-r", listed, "-d", wheels], "the packages cannot be fetched")
    return sorted(wheels.iterdir())


def packages_of(wheels: Sequence[Path]) -> list[Package]:
    """What files hold, by their names: https://packaging.python.org/specifications/binary-distribution-format/."""
    return sorted((_package_of(one) for one in wheels), key=lambda one: one.name)


def write(packages: Sequence[Package]) -> str:
    """The lock."""
    return "".join(f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in packages)


def read(lock: str, where: str) -> dict[str, tuple[str, str]]:
    """Version and hash by name; EnvError names the first line that is not of a lock."""
    found = {}
    for number, line in enumerate(lock.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not (match := _LINE.fullmatch(line.strip())):
            raise EnvError(f"line {number} of {where} is not of a lock", remedy="give it as --requirements")
        found[match[1]] = (match[2], match[3])
    return found


def _package_of(wheel: Path) -> Package:
    name, version, *_ = wheel.name.split("-")
    return Package(re.sub(r"[-_.]+", "-", name).lower(), version, wheel.name, hash_file(wheel))
