"""Lays out an environment of an image's files."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from environments.file_hash import hash_file
from environments.image import unpack
from environments.making import Content, Say
from environments.manifest import Requires
from environments.store import Store

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
        what = ["image", RECIPE, self.name, self.version, hash_file(self.archive), asdict(self.requires)]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def lay_out(self, _: Store, folder: Path, say: Say) -> Sequence[Content]:
        """Its layers; EnvError for what programs may not be shown."""
        say("unpacking layers")
        tree = folder / "tree"
        variables = unpack(self.archive, tree)
        return [Content(tree, AT, platform.machine(), variables=variables)]
