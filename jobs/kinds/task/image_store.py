"""Images for boxes in HDFS, by their ids: an operator adds them, and nodes that do not have one take it from here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from boxes.broker.images import checked, image_of
from boxes.broker.order import Refusal
from hadoop.client.filesystem import FileSystem
from jobs.errors import JobError

FOLDER = "images"
"""In the owner's folder in HDFS: of each image its archive and what is known of it."""


@dataclass(frozen=True)
class KeptImage:
    """An image that tasks can name: by `id`, which is `sha256:` and the hash of its configuration."""

    id: str
    name: str
    size_bytes: int


def check_there(filesystem: FileSystem, image: str) -> None:
    """JobError when an image was not added."""
    if not filesystem.exists(_archive(owners_folder(filesystem), image)):
        raise JobError(f"there is no image {image}", remedy="`nodewise task image list` shows which there are")


def fetch(filesystem: FileSystem, folder: str, image: str, archive: Path) -> None:
    """Copy an image's archive to this machine; `folder` is the owner's. HadoopError when it is not there any more."""
    filesystem.download(_archive(folder, image), archive)


def add(filesystem: FileSystem, archive: Path, name: str) -> KeptImage:
    """Keep an image of which this is the archive; JobError for another file, or bytes that are not those of its id."""
    try:
        with archive.open("rb") as file:
            image = image_of(file)
            with checked(file, image):
                pass
    except (Refusal, OSError) as error:
        remedy = error.remedy if isinstance(error, Refusal) else ""
        raise JobError(f"{archive} cannot be added: {error}", remedy=remedy) from error
    kept = KeptImage(image, name, archive.stat().st_size)
    folder = owners_folder(filesystem)
    filesystem.make_folder(f"{folder}/{FOLDER}")
    part = f"{_archive(folder, image)}.part"
    filesystem.upload(archive.absolute(), part)
    filesystem.write(_about(folder, image), json.dumps(asdict(kept)).encode())
    filesystem.rename(part, _archive(folder, image), overwrite=True)
    return kept


def kept_images(filesystem: FileSystem) -> Sequence[KeptImage]:
    """All that were added, by name."""
    folder = f"{owners_folder(filesystem)}/{FOLDER}"
    names = [one.name for one in filesystem.entries(folder) if one.name.endswith(".json")]
    found = [KeptImage(**json.loads(filesystem.read(f"{folder}/{name}"))) for name in names]
    return sorted(found, key=lambda one: (one.name, one.id))


def remove(filesystem: FileSystem, image: str) -> None:
    """Forget an image; nodes that have it keep it. JobError when it was not added."""
    check_there(filesystem, image)
    folder = owners_folder(filesystem)
    filesystem.delete(_about(folder, image))
    filesystem.delete(_archive(folder, image))


def owners_folder(filesystem: FileSystem) -> str:
    """Where all that is kept of this user's work lies."""
    return f"{filesystem.home()}/.nodewise"


def _archive(folder: str, image: str) -> str:
    return f"{folder}/{FOLDER}/{image.removeprefix('sha256:')}.tar"


def _about(folder: str, image: str) -> str:
    return f"{folder}/{FOLDER}/{image.removeprefix('sha256:')}.json"
