"""Lays out an environment of Python packages, from requirements or a lock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from environments import locking
from environments.locking import Target
from environments.making import Content, Say, find_kept
from environments.manifest import Package, Requires
from environments.squash import compile_all
from environments.store import Store
from environments.tools import call, uv

RECIPE = 1
"""Part of what decides whether an environment is there already; raise it when the same packages shall make another."""
AT = "/opt/env"
"""Where a program finds the packages of its environment."""
PYTHON = "/usr/bin/python{version}"
"""The interpreter of a node, or of the part below; packages alone are ours."""
REFUSAL = "the packages cannot be installed"


@dataclass(frozen=True)
class Asked:
    """`requirements` as pip reads them; of a lock, exactly these files. Nodes must also have what it `requires`."""

    name: str
    version: str
    requirements: str
    is_lock: bool = False
    target: Target = field(default_factory=Target)
    requires: Requires = field(default_factory=Requires)

    @property
    def digest(self) -> str:
        """Equal for what makes equal environments."""
        return hashlib.sha256(json.dumps([RECIPE, asdict(self)], sort_keys=True).encode()).hexdigest()

    def lay_out(self, store: Store, folder: Path, say: Say) -> Sequence[Content]:
        """By uv, which runs nothing of the packages; EnvError with its words."""
        if self.is_lock:
            wheels = _kept_or_fetched(store, self, folder)
        else:
            say("looking for versions that go together")
            solved = locking.solve(self.requirements, self.target, folder)
            say("fetching packages")
            wheels = locking.fetch(solved, self.target, folder)
        packages = locking.packages_of(wheels)
        say(f"installing {len(packages)} packages")
        tree = folder / "tree"
        _install(tree, wheels, packages, self.target)
        return [Content(tree, AT, self.target.architecture, self.target.python, packages, wheels)]


def _kept_or_fetched(store: Store, asked: Asked, folder: Path) -> Sequence[Path]:
    """The files of a lock, out of HDFS if all are there, so that it can be made again without any registry."""
    wanted = {sha256 for _, sha256 in locking.read(asked.requirements, "the lock").values()}
    return find_kept(store, wanted, folder / "kept") or locking.fetch(asked.requirements, asked.target, folder)


def _install(tree: Path, wheels: Sequence[Path], packages: Sequence[Package], target: Target) -> None:
    """A virtual environment of nothing but these, which may stand in any folder."""
    python = PYTHON.format(version=target.python)
    call([uv(), "venv", "--quiet", "--relocatable", "--no-project", "--python", python, tree], REFUSAL)
    lock = tree.with_name("lock.txt")
    lock.write_text(locking.write(packages))
    options = ["--quiet", "--no-cache", "--no-index", "--no-deps", "--require-hashes", "--link-mode", "copy"]
    where: list[str | Path] = ["--python", tree / "bin/python", "--find-links", wheels[0].parent, "-r", lock]
    call([uv(), "pip", "install", *options, *where], REFUSAL)
    _forget_when(tree)
    for name in (".gitignore", ".lock", "CACHEDIR.TAG"):
        (tree / name).unlink(missing_ok=True)
    (tree / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {target.python}\n"
    )
    compile_all(tree / "lib", f"{AT}/lib", python)


def _forget_when(tree: Path) -> None:
    """Take out when each package was fetched: uv notes it, and the same packages would be other bytes."""
    for note in tree.glob("lib/python*/site-packages/*.dist-info/uv_cache.json"):
        record = note.with_name("RECORD")
        own = f"{note.parent.name}/{note.name},"
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith(own)))
        note.unlink()
