"""Images for boxes in HDFS, by their ids: an operator adds them, and nodes that do not have one take it from here.

images/HEX.json          what people know of an image
images/HEX.manifest      what it is made of (boxes.broker.manifest); its layers are in images/blobs
images/HEX.DIGEST.env    it was made of the environment of this digest
images/HEX.tar           its archive, of an image that an earlier version of nodewise has added
images/parts/HEX         which layer a part of an environment has become

Whoever adds writes the manifest, looks whether all that it names is there, and writes what people know last; then it
looks whether the manifest is still there. Whoever removes deletes the manifest first (see LayerBlobs for the layers).
So of two at once, one sees the other, and no image is half there.
"""

from __future__ import annotations

import errno
import io
import json
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from boxes.box import BoxError, Served
from boxes.broker.manifest import digest_of, layers_of, manifest_of
from boxes.broker.order import Refusal
from environments.errors import EnvError
from environments.image_files import ImageFiles, read_image
from environments.zstd import Pieces
from hadoop.client.drafts import clear_old
from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.errors import JobError
from jobs.kinds.task.images import layer_blobs, part_layers
from jobs.kinds.task.images.layer_blobs import Damaged, LayerBlobs, Needed, read_there
from jobs.kinds.task.images.part_layers import PartLayers
from jobs.kinds.task.images.pull_server import PulledImage, PullServer

FOLDER = "images"
"""In the owner's folder in HDFS: of each image its manifest and what is known of it."""
_KNOWN, _MANIFEST, _ARCHIVE, _ENVIRONMENT = ".json", ".manifest", ".tar", ".env"
_MEND = "an operator takes the image out by `nodewise task image rm`, with all that share the layer, and adds it again"
_ADD_AGAIN = "an operator adds it again by `nodewise task image add`"


@dataclass(frozen=True)
class KeptImage:
    """An image that tasks can name: by `id`, which is `sha256:` and the hash of its configuration.

    size_bytes     in HDFS, which is what a node fetches that has none of its layers
    layers         0 for one that is kept as an archive
    environment    the digest of the environment that it was made of, "" for none
    """

    id: str
    name: str
    size_bytes: int
    layers: int = 0
    environment: str = ""


class Added(NamedTuple):
    """An image that was added, and how many of its layers HDFS did not have before."""

    image: KeptImage
    new_layers: int


def check_there(filesystem: FileSystem, image: str) -> None:
    """JobError when an image was not added."""
    if not _is_there(filesystem, owners_folder(filesystem), image):
        raise JobError(f"there is no image {image}", remedy="`nodewise task image list` shows which there are")


def fetch(filesystem: FileSystem, folder: str, image: str, archive: Path) -> None:
    """Bring an image's archive to this machine; `folder` is the owner's. BoxError when it is not there any more."""
    try:
        kept = find(filesystem, folder, image)
        if kept is None:
            filesystem.download(_archive(folder, image), archive)
        else:
            _write_archive(kept, archive)
    except HadoopError as error:
        _refuse_gone(filesystem, folder, image, error)
        raise


def find(filesystem: FileSystem, folder: str, image: str) -> PulledImage | None:
    """What is served of an image; None when it is kept as an archive, or not at all."""
    blobs = LayerBlobs(filesystem, f"{folder}/{FOLDER}")
    manifest = read_there(filesystem, _manifest(folder, image))
    if manifest is None:
        return None
    try:
        configuration = filesystem.read(blobs.configuration(image))
    except HadoopError:
        if filesystem.exists(_manifest(folder, image)):
            raise
        return None  # somebody has removed it just now
    return PulledImage(configuration, [one["size"] for one in json.loads(manifest)["layers"]], blobs.read_layer)


def serve(
    filesystem: FileSystem, folder: str, image: str, say: Callable[[str], None]
) -> AbstractContextManager[Served] | None:
    """Serve an image while a block runs, so that Docker pulls it, and say then what Docker has fetched.

    None when it is not kept by layers. In the block, what fails is a BoxError if a layer in HDFS is damaged, and names
    what HDFS said if it did not bring one.
    """
    kept = find(filesystem, folder, image)
    return None if kept is None else _serving(kept, say, lambda why: _refuse_gone(filesystem, folder, image, why))


def find_all(filesystem: FileSystem) -> Mapping[KeptImage, PulledImage]:
    """All images that are kept by layers, by name."""
    folder = owners_folder(filesystem)
    found = {one: find(filesystem, folder, one.id) for one in kept_images(filesystem)}
    return {kept: served for kept, served in found.items() if served is not None}


@contextmanager
def _serving(
    kept: PulledImage, say: Callable[[str], None], refuse_gone: Callable[[Exception], None]
) -> Iterator[Served]:
    name = token_hex(16)
    with PullServer({name: kept}) as server:
        try:
            yield Served(server.port, name, kept.configuration.decode(), kept.sizes)
        except (OSError, BoxError) as error:
            if server.damaged:
                raise BoxError(" and ".join(server.damaged.values()), _MEND) from error
            if server.failed:
                refuse_gone(error)
                raise OSError(errno.EIO, " and ".join(server.failed.values())) from error
            raise
        fetched, layers = len(server.asked), len(kept.layers)
        say(f"Docker has fetched {fetched} of {layers} layers" + ("; it had the others" if fetched < layers else ""))


def add(filesystem: FileSystem, source: Path, name: str) -> Added:
    """Keep an image; JobError for a file or folder that holds none, or bytes that are not those of its id."""
    try:
        with read_image(source) as files:
            return _add(filesystem, files, name)
    except (Refusal, EnvError, JobError) as error:
        raise JobError(f"{source} cannot be added: {error.message}", remedy=error.remedy) from error
    except OSError as error:
        raise JobError(f"{source} cannot be added: {error}", remedy="write the image again") from error


def _add(filesystem: FileSystem, files: ImageFiles, name: str) -> Added:
    blobs = blobs_of(filesystem)
    new, sizes = 0, []
    for number, digest in enumerate(layers_of(files.configuration)):
        new += not blobs.has_layer(digest)
        sizes.append(blobs.put_layer(digest, Pieces(files.read_layer(number))))
    kept = KeptImage(digest_of(files.configuration), name, blobs.kept_bytes(files.digests), len(files.digests))
    return Added(keep(filesystem, kept, files.configuration, sizes), new)


def keep(filesystem: FileSystem, kept: KeptImage, configuration: bytes, sizes: Sequence[int]) -> KeptImage:
    """Let tasks name an image whose layers are in HDFS; JobError when somebody removes one of them meanwhile."""
    folder, blobs = owners_folder(filesystem), blobs_of(filesystem)
    manifest, about = _manifest(folder, kept.id), _about(folder, kept.id)
    blobs.put_configuration(kept.id, configuration)
    filesystem.exchange(manifest, manifest_of(configuration, sizes))
    if not blobs.has_all(kept.id, layers_of(configuration)):
        if not filesystem.exists(about):  # else it was added before
            filesystem.delete(manifest)
        raise JobError("somebody has removed an image with the same layers meanwhile", remedy="add it again")
    if kept.environment:
        filesystem.exchange(_made_of(folder, kept.id, kept.environment), b"")
    filesystem.exchange(about, json.dumps(asdict(kept)).encode())
    if not filesystem.exists(manifest):
        _delete_all_of(filesystem, folder, kept.id)
        raise JobError("somebody has removed the image meanwhile", remedy="add it again")
    filesystem.delete(_archive(folder, kept.id))
    _clear(filesystem, folder)
    return kept


def blobs_of(filesystem: FileSystem) -> LayerBlobs:
    """Where the layers of this user's images are."""
    return LayerBlobs(filesystem, f"{owners_folder(filesystem)}/{FOLDER}")


def part_layers_of(filesystem: FileSystem) -> PartLayers:
    """What is known of layers that parts of environments have become."""
    return PartLayers(filesystem, f"{owners_folder(filesystem)}/{FOLDER}")


def find_named(filesystem: FileSystem, name: str) -> KeptImage:
    """The image of a name, an id, or NAME@ID; JobError for none, and for a name that several have."""
    found = [one for one in kept_images(filesystem) if one.name == name or one.id == name.rpartition("@")[2]]
    if not found:
        raise JobError(f"there is no image {name}", remedy="`nodewise task image list` shows which there are")
    if len(found) > 1:
        raise JobError(f"{len(found)} images are called {name}", remedy=f"name one by its id, such as {found[0].id}")
    return found[0]


def find_made_of(filesystem: FileSystem, environment: str) -> list[str]:
    """The ids of the images that were made of an environment, by its digest."""
    names = {one.name for one in filesystem.entries(f"{owners_folder(filesystem)}/{FOLDER}")}
    ending = f".{environment}{_ENVIRONMENT}"
    found = (name.removesuffix(ending) for name in names if name.endswith(ending))
    return sorted(f"sha256:{one}" for one in found if _is_whole(one, names))


def kept_images(filesystem: FileSystem) -> Sequence[KeptImage]:
    """All that were added, by name."""
    folder = f"{owners_folder(filesystem)}/{FOLDER}"
    names = {one.name for one in filesystem.entries(folder)}
    whole = [name for name in names if name.endswith(_KNOWN) and _is_whole(name.removesuffix(_KNOWN), names)]
    contents = [read_there(filesystem, f"{folder}/{name}") for name in whole]
    found = [KeptImage(**json.loads(content)) for content in contents if content]
    return sorted(found, key=lambda one: (one.name, one.id))


def remove(filesystem: FileSystem, image: str) -> None:
    """Forget an image, with the layers that no other has; nodes that have it keep it. JobError when it is not there."""
    folder = owners_folder(filesystem)
    if not filesystem.exists(_about(folder, image)):  # without a manifest when somebody was interrupted here
        check_there(filesystem, image)
    filesystem.delete(_manifest(folder, image))
    _delete_all_of(filesystem, folder, image)
    digests = blobs_of(filesystem).remove_unneeded(lambda: _find_needed(filesystem, folder))
    part_layers_of(filesystem).remove_unneeded(digests)
    _clear(filesystem, folder)


def _clear(filesystem: FileSystem, folder: str) -> None:
    """Delete what somebody who was killed has left, half written or put away."""
    place = f"{folder}/{FOLDER}"
    for one in (place, f"{place}/{layer_blobs.FOLDER}", f"{place}/{part_layers.FOLDER}"):
        clear_old(filesystem, one)


def _delete_all_of(filesystem: FileSystem, folder: str, image: str) -> None:
    """All that is known of an image; its layers stay."""
    place, begin = f"{folder}/{FOLDER}", f"{image.removeprefix('sha256:')}."
    for name in (one.name for one in filesystem.entries(place)):
        if name.startswith(begin) and name.endswith((_KNOWN, _ENVIRONMENT, _ARCHIVE)):
            filesystem.delete(f"{place}/{name}")


def _find_needed(filesystem: FileSystem, folder: str) -> Needed:
    """The images that are kept by layers, and the digests of these."""
    names = [one.name for one in filesystem.entries(f"{folder}/{FOLDER}") if one.name.endswith(_MANIFEST)]
    found = {name: read_there(filesystem, f"{folder}/{FOLDER}/{name}") for name in names}
    manifests = {name: json.loads(content) for name, content in found.items() if content}
    digests = {layer["digest"] for manifest in manifests.values() for layer in manifest["layers"]}
    return Needed({f"sha256:{name.removesuffix(_MANIFEST)}" for name in manifests}, digests)


def _is_whole(hexadecimal: str, names: Collection[str]) -> bool:
    """Whether all that belongs to an image is among the files."""
    ways = (f"{hexadecimal}{_MANIFEST}", f"{hexadecimal}{_ARCHIVE}")
    return f"{hexadecimal}{_KNOWN}" in names and any(one in names for one in ways)


def _is_there(filesystem: FileSystem, folder: str, image: str) -> bool:
    return any(filesystem.exists(path) for path in (_manifest(folder, image), _archive(folder, image)))


def _refuse_gone(filesystem: FileSystem, folder: str, image: str, why: Exception) -> None:
    """BoxError when somebody has taken an image out; nothing where HDFS does not tell."""
    with suppress(HadoopError):
        if not _is_there(filesystem, folder, image):
            raise BoxError(f"the image {image} was taken out of HDFS meanwhile", _ADD_AGAIN) from why


def owners_folder(filesystem: FileSystem) -> str:
    """Where all that is kept of this user's work lies."""
    return f"{filesystem.home()}/.nodewise"


def _write_archive(kept: PulledImage, archive: Path) -> None:
    """Write an image as `docker save` does; BoxError when a layer is damaged."""
    names = {digest: f"{digest.removeprefix('sha256:')}.tar" for digest in kept.layers}
    order = [layer["digest"] for layer in json.loads(kept.manifest)["layers"]]
    manifest = [{"Config": "image.json", "RepoTags": None, "Layers": [names[digest] for digest in order]}]
    small = {"manifest.json": json.dumps(manifest).encode(), "image.json": kept.configuration}
    with tarfile.open(archive, "w") as write:
        for name, content in small.items():
            write.addfile(_member(name, len(content)), io.BytesIO(content))
        for digest, size in kept.layers.items():
            layer = io.BufferedReader(Pieces(kept.read(digest, 0)))
            try:
                write.addfile(_member(names[digest], size), layer)
                layer.read()  # to its end, where its digest is compared
            except (Damaged, OSError) as error:
                raise BoxError(f"the image cannot be read: {error}", _MEND) from error


def _member(name: str, size: int) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.size = size
    return found


def _about(folder: str, image: str) -> str:
    return _path(folder, image, _KNOWN)


def _manifest(folder: str, image: str) -> str:
    return _path(folder, image, _MANIFEST)


def _archive(folder: str, image: str) -> str:
    return _path(folder, image, _ARCHIVE)


def _made_of(folder: str, image: str, environment: str) -> str:
    return _path(folder, image, f".{environment}{_ENVIRONMENT}")


def _path(folder: str, image: str, suffix: str) -> str:
    return f"{folder}/{FOLDER}/{image.removeprefix('sha256:')}{suffix}"
