"""Makes an environment of an image's files, and puts it into HDFS; what is there already is not made again."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from environments.image import unpack
from environments.make import Made, Say
from environments.manifest import Manifest, Part, Requires
from environments.squash import squash
from environments.store import PART, Store

AT = "/"
RECIPE = 2
"""Raise it when the same image shall make another environment."""


@dataclass(frozen=True)
class AskedImage:
    """`archive` as `docker save` writes it; nodes must also have what it `requires`."""

    name: str
    version: str
    archive: Path
    requires: Requires = field(default_factory=Requires)

    @property
    def digest(self) -> str:
        """Equal for what makes equal environments."""
        with self.archive.open("rb") as content:
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        what = ["image", RECIPE, self.name, self.version, sha256, asdict(self.requires)]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def make_image(store: Store, asked: AskedImage, say: Say) -> Made:
    """EnvError when it cannot be made; then nothing of it is known by its name."""
    digest = asked.digest
    if known := store.find_asked(asked.name, digest):
        store.point(known)
        return Made(known, is_new=False)
    with TemporaryDirectory(prefix="nodewise-env-") as name:
        folder = Path(name)
        say("unpacking layers")
        variables = unpack(asked.archive, folder / "tree")
        say("compressing")
        part = folder / "part.sqfs"
        squash(folder / "tree", part)
        say(f"storing {part.stat().st_size:,} bytes")
        parts = [Part(AT, store.put(part, PART), part.stat().st_size)]
    requires = replace(asked.requires, architecture=platform.machine())
    manifest = Manifest(asked.name, asked.version, "", parts, requires, variables=variables)
    store.add(manifest, digest)
    return Made(manifest, is_new=True)
