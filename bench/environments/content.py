"""What all ways bring to nodes: the same packages, from the worker's lock or from Debian."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from environments import locking
from environments.debian import apt
from environments.debian import lock as debian_lock
from environments.errors import EnvError
from environments.locking import Target

WORKER_LOCK = ROOT / "requirements" / "worker.txt"


@dataclass(frozen=True)
class Content:
    """`module` is what a program imports; of the worker's packages only these are taken, or all.

    Packages of Debian, with all that they need, are taken in place of the worker's, as a system of their own.
    """

    module: str
    packages: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        """The folder at which programs see it."""
        return "/" if self.debian else "/opt/env"

    @property
    def python(self) -> str:
        """What programs are run by, as they see it."""
        return "/usr/bin/python3" if self.debian else f"{self.at}/bin/python"


MXNET = Content("mxnet")
NUMPY = Content("numpy", ("numpy",))
TORCH = Content("torch", debian=("python3-torch",))
SIX = Content("six", debian=("python3-six",))
QUICK = {MXNET: NUMPY, TORCH: SIX}
"""What takes the place of each where it only has to be shown that all works."""


def fetch(content: Content, folder: Path) -> list[Path]:
    """The packages' files, out of a registry or as apt finds them; BenchError when there is none."""
    folder.mkdir()
    try:
        if content.debian:
            return apt.fetch_with_dependencies(content.debian, folder)
        return locking.fetch(worker_lock(content), Target(), folder)
    except EnvError as error:
        raise BenchError(str(error)) from None


def lay_index(wheels: Sequence[Path], folder: Path) -> None:
    """Folders whose listings are pages of a package index: https://peps.python.org/pep-0503/."""
    for wheel, package in ((one, locking.packages_of([one])[0]) for one in wheels):
        place = folder / "simple" / package.name
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wheel, place / wheel.name)


def write_lock(content: Content, files: Sequence[Path], lock: Path) -> None:
    """Of exactly these."""
    if content.debian:
        lock.write_text(debian_lock.write([debian_lock.package_of(one) for one in files]))
    else:
        lock.write_text(locking.write(locking.packages_of(files)))


def worker_lock(content: Content) -> str:
    """The lines of the worker's lock that name these packages.

    >>> worker_lock(NUMPY).split("==")[0]
    'numpy'
    """
    entries = re.sub(r"\\\n\s*", " ", WORKER_LOCK.read_text()).splitlines()
    wanted = [one for one in entries if not content.packages or one.partition("==")[0] in content.packages]
    return "".join(f"{one}\n" for one in wanted)
