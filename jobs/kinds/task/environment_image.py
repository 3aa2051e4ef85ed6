"""Makes an image of an environment, so that tasks in boxes of Docker have its files: a layer of each part.

A part at `/` is all that a program sees; without one, the layers lie over those of another image, the base.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from boxes.broker.manifest import digest_of, layers_of
from environments.errors import EnvError
from environments.file_hash import hash_file
from environments.image import ARCHITECTURES
from environments.layer import write_layer
from environments.making import ROOM
from environments.manifest import Manifest, Part
from environments.reference import Reference
from environments.store import PART, Store
from hadoop.client.filesystem import FileSystem
from jobs.application.environments.laid import Laid
from jobs.application.environments.store import is_published
from jobs.errors import JobError
from jobs.kinds.task import image_store
from jobs.kinds.task.image_store import Added, KeptImage
from jobs.kinds.task.images.layer_blobs import LayerBlobs
from jobs.kinds.task.images.part_layers import PartLayer

LABEL = "nodewise.environment"
"""Label of such an image, which holds the digest of its environment."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Docker's own, where an image names none."""


@dataclass(frozen=True)
class _Base:
    """What lies below the parts; nothing if it is left out."""

    configuration: Mapping[str, Any] = field(default_factory=dict)
    digests: Sequence[str] = ()
    sizes: Sequence[int] = ()


def add(filesystem: FileSystem, env: str, base: str = "", name: str = "") -> Added:
    """Keep an image of what `env` means now, on a base by its name or id; the same of both is the same image.

    JobError when there is no such environment or base, when they do not go together, or when a part is damaged.
    """
    manifest = _manifest(filesystem, env)
    parts = sorted(manifest.parts, key=lambda part: (len(PurePosixPath(part.at).parts), part.at))
    below = _find_base(filesystem, manifest, base)
    blobs = image_store.blobs_of(filesystem)
    new, digests, sizes = 0, list(below.digests), list(below.sizes)
    for part in parts:
        layer, is_new = _put(filesystem, blobs, part)
        new, digests, sizes = new + is_new, [*digests, layer.digest], [*sizes, layer.size_bytes]
    content = _configuration(manifest, [part.at for part in parts], below, digests)
    called = name or f"{manifest.name}:{manifest.version.replace('+', '-')}"
    kept = KeptImage(digest_of(content), called, blobs.kept_bytes(digests), len(digests), manifest.digest)
    return Added(image_store.keep(filesystem, kept, content, sizes), new)


def find(filesystem: FileSystem, env: str) -> Laid:
    """What a task in a box of Docker gets of an environment; JobError without exactly one image of it."""
    if is_published(env):
        raise JobError(
            "a box of Docker takes no packed environment", remedy="name one that `nodewise env make` has made"
        )
    manifest = _manifest(filesystem, env)
    found = image_store.find_made_of(filesystem, manifest.digest)
    if not found:
        raise JobError(
            f"there is no image of {manifest.name}@{manifest.version} as it is now",
            remedy=f"an operator makes one by `nodewise task image add --env {manifest.name}@{manifest.version}`",
        )
    if len(found) > 1:
        names = ", ".join(f"{one.name}@{one.id}" for one in image_store.kept_images(filesystem) if one.id in found)
        raise JobError(
            f"{manifest.name}@{manifest.version} has {len(found)} images", remedy=f"name one by --image: {names}"
        )
    return Laid(image=found[0], requires=manifest.requires)


def _manifest(filesystem: FileSystem, env: str) -> Manifest:
    try:
        return Store(filesystem).find(Reference.parse(env))
    except EnvError as error:
        raise JobError(error.message, error.remedy) from error


def _put(filesystem: FileSystem, blobs: LayerBlobs, part: Part) -> tuple[PartLayer, bool]:
    """A part's layer, which HDFS has then, and whether it is new there."""
    records = image_store.part_layers_of(filesystem)
    found = records.find(part)
    if found and blobs.has_layer(found.digest):
        return found, False
    with TemporaryDirectory(prefix="nodewise-layer-") as place:
        file, archive = Path(place) / "part.sqfs", Path(place) / "layer.tar"
        try:
            Store(filesystem).get(part.sha256, PART, file)
            write_layer(file, part.at, archive)
        except EnvError as error:
            raise JobError(error.message, error.remedy) from error
        except OSError as error:
            raise JobError(f"the layer of {part.at} cannot be made here ({error})", remedy=ROOM) from error
        digest = f"sha256:{hash_file(archive)}"
        is_new = not blobs.has_layer(digest)
        with archive.open("rb") as content:
            layer = PartLayer(digest, blobs.put_layer(digest, content))
    records.keep(part, layer)
    return layer, is_new


def _find_base(filesystem: FileSystem, manifest: Manifest, base: str) -> _Base:
    has_root = any(part.at == "/" for part in manifest.parts)
    called = f"{manifest.name}@{manifest.version}"
    if has_root and base:
        raise JobError(f"{called} has all files of its system, and needs no base", remedy="leave --base out")
    if has_root:
        return _Base()
    if not base:
        raise JobError(
            f"{called} has no files at /, such as those of Python {manifest.python}",
            remedy="name an image that has them by --base",
        )
    kept = image_store.find_named(filesystem, base)
    found = image_store.find(filesystem, image_store.owners_folder(filesystem), kept.id)
    if found is None:
        raise JobError(f"the image {base} is kept as an archive", remedy="add it again by `nodewise task image add`")
    configuration = json.loads(found.configuration)
    wanted = _architecture(manifest)
    if configuration.get("architecture") != wanted:
        raise JobError(
            f"{called} is for {wanted}, and {base} for {configuration.get('architecture')}",
            remedy="name an image of that architecture by --base",
        )
    return _Base(configuration, layers_of(found.configuration), found.sizes)


def _architecture(manifest: Manifest) -> str:
    return ARCHITECTURES.get(manifest.requires.architecture, manifest.requires.architecture)


def _configuration(manifest: Manifest, folders: Sequence[str], base: _Base, digests: Sequence[str]) -> bytes:
    """What Docker is told; equal bytes for equal environments and bases, as its hash is the id of the image."""
    of_base = base.configuration.get("config") or {}
    environment = [*(of_base.get("Env") or []), *(f"{name}={text}" for name, text in manifest.variables.items())]
    for folder in (one for one in folders if one != "/"):
        environment = _with_environment(environment, folder)
    config = {**of_base, "Env": environment, "Labels": {**(of_base.get("Labels") or {}), LABEL: manifest.digest}}
    body = {
        "architecture": _architecture(manifest),
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": list(digests)},
    }
    return json.dumps(body, sort_keys=True).encode()


def _with_environment(environment: Sequence[str], folder: str) -> list[str]:
    """What makes `python` and `python3` those of the folder, as tasks have it without Docker."""
    found = dict(one.partition("=")[::2] for one in environment)
    found |= {"PATH": f"{folder}/bin:{found.get('PATH', _PATH)}", "VIRTUAL_ENV": folder}
    return [f"{name}={text}" for name, text in found.items()]
