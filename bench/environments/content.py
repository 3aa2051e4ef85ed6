"""What all ways bring to nodes: the same packages, from the worker's lock."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from environments import locking
from environments.errors import EnvError
from environments.locking import Target

WORKER_LOCK = ROOT / "requirements" / "worker.txt"


@dataclass(frozen=True)
class Content:
    """`module` is what a program imports; of the worker's packages only these are taken, or all."""

    module: str
    packages: Sequence[str] = ()


MXNET = Content("mxnet")
NUMPY = Content("numpy", ("numpy",))


def fetch(content: Content, folder: Path) -> list[Path]:
    """The packages' files, out of a registry; BenchError when there is none."""
    folder.mkdir()
    try:
        return locking.fetch(worker_lock(content), Target(), folder)
    except EnvError as error:
        raise BenchError(str(error)) from None


def lay_index(wheels: Sequence[Path], folder: Path) -> None:
    """Folders whose listings are pages of a package index: https://peps.python.org/pep-0503/."""
    for wheel, package in ((one, locking.packages_of([one])[0]) for one in wheels):
        place = folder / "simple" / package.name
        place.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wheel, place / wheel.name)


def write_lock(wheels: Sequence[Path], file: Path) -> None:
    """Of exactly these."""
    file.write_text(locking.write(locking.packages_of(wheels)))


def worker_lock(content: Content) -> str:
    """The lines of the worker's lock that name these packages.

    >>> worker_lock(NUMPY).split("==")[0]
    'numpy'
    """
    entries = re.sub(r"\\\n\s*", " ", WORKER_LOCK.read_text()).splitlines()
    wanted = [one for one in entries if not content.packages or one.partition("==")[0] in content.packages]
    return "".join(f"{one}\n" for one in wanted)
