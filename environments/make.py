"""Makes an environment from requirements or a lock, and puts it into HDFS; what is there already is not made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from environments import locking
from environments.locking import Target
from environments.manifest import Manifest, Package, Part, Requires
from environments.squash import compile_all, squash
from environments.store import PART, WHEEL, Store
from environments.tools import call, uv

RECIPE = 1
"""Part of what decides whether an environment is there already; raise it when the same packages shall make another."""
AT = "/opt/env"
"""Where a program finds the packages of its environment."""
PYTHON = "/usr/bin/python{version}"
"""The interpreter of a node, or of the part below; packages alone are ours."""
REFUSAL = "the packages cannot be installed"

Say = Callable[[str], None]


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


@dataclass(frozen=True)
class Made:
    """`is_new` is false when it was there already."""

    manifest: Manifest
    is_new: bool


def make(store: Store, asked: Asked, say: Say) -> Made:
    """EnvError when it cannot be made; then nothing of it is known by its name."""
    if known := store.find_asked(asked.name, asked.digest):
        store.point(known)
        return Made(known, is_new=False)
    with TemporaryDirectory(prefix="nodewise-env-") as folder:
        return Made(_make(store, asked, Path(folder), say), is_new=True)


def _make(store: Store, asked: Asked, folder: Path, say: Say) -> Manifest:
    wheels = _wheels(store, asked, folder, say)
    packages = locking.packages_of(wheels)
    say(f"installing {len(packages)} packages")
    tree = folder / "tree"
    _install(tree, wheels, packages, asked.target)
    say("compressing")
    part = folder / "part.sqfs"
    squash(tree, part)
    say(f"storing {part.stat().st_size:,} bytes")
    for wheel in wheels:
        store.put(wheel, WHEEL)
    manifest = Manifest(
        asked.name,
        asked.version,
        asked.target.python,
        [Part(AT, store.put(part, PART), part.stat().st_size)],
        replace(asked.requires, architecture=asked.target.architecture),
        packages,
    )
    store.add(manifest, asked.digest)
    return manifest


def _wheels(store: Store, asked: Asked, folder: Path, say: Say) -> Sequence[Path]:
    """Of a lock, out of HDFS as far as they are there, so that it can be made again without any registry."""
    if not asked.is_lock:
        say("looking for versions that go together")
        solved = locking.solve(asked.requirements, asked.target, folder)
        say("fetching packages")
        return locking.fetch(solved, asked.target, folder)
    return _kept(store, asked, folder) or locking.fetch(asked.requirements, asked.target, folder)


def _kept(store: Store, asked: Asked, folder: Path) -> Sequence[Path]:
    wanted = {sha256 for _, sha256 in locking.read(asked.requirements, "the lock").values()}
    names = {one.sha256: one.file for known in store.known() for one in known.manifest.packages if one.sha256 in wanted}
    if names.keys() != wanted:
        return ()
    kept = folder / "kept"
    kept.mkdir()
    for sha256, name in names.items():
        store.get(sha256, WHEEL, kept / name)
    return sorted(kept.iterdir())


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
