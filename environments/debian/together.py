"""Lays out an environment of Python packages in a system of Debian's packages, in two parts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from environments.debian.make import AskedDebian
from environments.errors import EnvError
from environments.make import PYTHON, Asked
from environments.making import Content, Say
from environments.manifest import Requires
from environments.store import Store

_OF_WHEELS = ("libstdc++6", "zlib1g")
"""What wheels may count on: https://peps.python.org/pep-0599/. They bring whatever else most of them need."""


@dataclass(frozen=True)
class AskedTogether:
    """`packages` of Python in a `system`, which gets what they need of any system, unless it is asked for by a lock."""

    system: AskedDebian
    packages: Asked

    @property
    def name(self) -> str:
        """Of the environment."""
        return self.packages.name

    @property
    def version(self) -> str:
        """What shall mean it."""
        return self.packages.version

    @property
    def requires(self) -> Requires:
        """The architecture is that of the content."""
        return self.packages.requires

    @property
    def digest(self) -> str:
        """Equal for what makes equal environments."""
        what = ["together", self._system().digest, self.packages.digest]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def lay_out(self, store: Store, folder: Path, say: Say) -> Sequence[Content]:
        """Each as it is laid out alone; EnvError also where the system does not have the Python of the packages."""
        places = [folder / "system", folder / "packages"]
        for place in places:
            place.mkdir()
        (below,) = self._system().lay_out(store, places[0], say)
        python = PYTHON.format(version=self.packages.target.python)
        if not (below.tree / python.removeprefix("/")).is_file():
            raise EnvError(f"the system has no {python}, which the packages need", remedy="make a new lock")
        return [below, *self.packages.lay_out(store, places[1], say)]

    def _system(self) -> AskedDebian:
        if self.system.locked:
            return self.system
        wanted = {f"python{self.packages.target.python}", *_OF_WHEELS}
        return replace(self.system, packages=sorted({*self.system.packages, *wanted}))
