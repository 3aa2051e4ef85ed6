"""What a container gets of an environment: the archive of a published one, or the parts of one that `env make` made.

A box that shows no node gets an image that has its files.

Parts are paths of squashfs files in HDFS, by the folders that they become. YARN lays the files beside the program of a
container, each by the last word of its path.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from boxes.gpus.cards import Wanted
from boxes.own_root import AT
from environments.errors import EnvError
from environments.manifest import Manifest, Requires
from environments.reference import Reference
from environments.store import PART, Store
from hadoop.client.filesystem import FileSystem
from jobs.application.environments import store
from jobs.errors import JobError

NODE_PYTHON = "/usr/bin/python3"
"""What mounts parts on a node: it needs no package."""

NO_GPUS = Wanted()

Parts = Mapping[str, str]


@dataclass(frozen=True)
class Laid:
    """`archive` is a path of HDFS that is unpacked, `image` the id of an image, each "" for none.

    `requires` is what nodes must have. `manifest` is that of an environment that `env make` made.
    """

    archive: str = ""
    image: str = ""
    parts: Parts = field(default_factory=dict)
    requires: Requires = field(default_factory=Requires)
    manifest: Manifest | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """Of the environment of programs."""
        return self.manifest.variables if self.manifest else {}


def find(filesystem: FileSystem, env: str, needs: Collection[str] = ()) -> Laid:
    """What `env` means: a path, `latest` for what was published last, or NAME@VERSION; JobError as of `find_made`."""
    if store.is_published(env):
        return Laid(archive=store.resolve(filesystem, env))
    return find_made(filesystem, env, needs)


def find_made(filesystem: FileSystem, env: str, needs: Collection[str] = ()) -> Laid:
    """What NAME or NAME@VERSION means now; JobError when there is none, or it lacks what our own code needs."""
    made = Store(filesystem)
    try:
        manifest = made.find(Reference.parse(env))
    except EnvError as error:
        raise JobError(error.message, error.remedy) from error
    if lacking := sorted(set(needs) - {package.name for package in manifest.packages}):
        raise JobError(
            f"{manifest.name}@{manifest.version} lacks {', '.join(lacking)}, which nodewise needs there",
            remedy="make it anew with `nodewise env make`, and name that, too",
        )
    parts = {part.at: made.blob(part.sha256, PART) for part in manifest.parts}
    return Laid(parts=parts, requires=manifest.requires, manifest=manifest)


def shared(parts: Parts) -> dict[str, str]:
    """The paths in HDFS by the names that a container finds the files by."""
    return {_file_name(path): path for path in parts.values()}


def beside(parts: Parts, folder: Path) -> dict[str, Path]:
    """The files that a container in this folder found, by the folders that they become."""
    return {at: folder / _file_name(path) for at, path in parts.items()}


def python_argv(
    parts: Parts,
    otherwise: str,
    words: Sequence[str],
    devices: Sequence[str] = (),
    gpus: Wanted = NO_GPUS,
    seen: Iterable[str] = (),
) -> list[str]:
    """What starts Python with these words in a container: that of the environment, or `otherwise` without parts.

    It has these devices and takes such GPUs, for which it waits. Where a part takes the place of the node's files, it
    sees of them those in `seen`, such as what links in its folder lead to.
    """
    folders = [at for at in parts if at != AT]
    python = f"{folders[0]}/bin/python" if folders else otherwise
    if not (parts or devices or gpus.count):
        return [python, *words]
    begin = ["boxes.gpus", json.dumps(asdict(gpus))] if gpus.count else ["boxes.mounting"]
    given = [f"--device={one}" for one in devices]
    given += [f"--see={one}" for one in seen] if AT in parts else []
    given += [f"{at}={_file_name(path)}" for at, path in parts.items()]
    return [NODE_PYTHON, "-m", *begin, *given, "--", python, *words]


def _file_name(path: str) -> str:
    return PurePosixPath(path).name
