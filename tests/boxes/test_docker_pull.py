"""A real Docker pulls images from HDFS, which is a folder here, and runs boxes in them."""

from __future__ import annotations

import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.docker_here import DockerHere
from bench.image_here import write_archive
from boxes import create
from boxes.box import BoxError, Ended, Image, Limits, Program
from boxes.docker import _bring
from hadoop.client.filesystem import FileSystem
from jobs.kinds.task import image_store
from jobs.kinds.task.images.pull_server import PulledImage
from tests.boxes.test_boxes import Heard
from tests.boxes.test_pulling import fetch_nothing
from tests.jobs.kept_images import HOME, configuration_of, digest, played_hdfs

OWNERS = f"{HOME}/.nodewise"
SECONDS = 90.0


@pytest.fixture
def hdfs(docker: DockerHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    return played_hdfs(tmp_path / "hdfs", monkeypatch)


@pytest.fixture
def allow(docker: DockerHere) -> Iterator[Callable[[str], None]]:
    """Have the operator allow an image; afterwards Docker has none but its own, which a test may have lost."""
    kept = docker.images.read_text()

    def allow_one(image: str) -> None:
        docker.images.write_text(f"{docker.images.read_text()}{image}\n")

    yield allow_one
    docker.images.write_text(kept)
    for one in docker.engine.ask("GET", "/images/json"):
        docker.engine.ask("DELETE", f"/images/{one['Id']}", force="1")
    with docker.archive.open("rb") as archive:
        docker.engine.load(archive)


def layer(name: str, content: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as write:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        write.addfile(member, io.BytesIO(content))
    return made.getvalue()


def with_layer(docker: DockerHere, path: Path, more: bytes) -> str:
    """Write the archive of Docker's image with one more layer; the new image's id."""
    with tarfile.open(docker.archive) as read:
        names = json.load(read.extractfile("manifest.json") or io.BytesIO())[0]
        layers = [(read.extractfile(name) or io.BytesIO()).read() for name in names["Layers"]]
        found = json.load(read.extractfile(names["Config"]) or io.BytesIO())
    configuration = configuration_of([*layers, more], config=found["config"])
    write_archive(path, configuration, [*layers, more])
    return digest(configuration)


def image_of(hdfs: FileSystem, image: str, heard: list[str]) -> Image:
    return Image(image, fetch_nothing, lambda: image_store.serve(hdfs, OWNERS, image, heard.append))


def test_a_box_has_an_image_that_docker_pulls_and_the_next_image_comes_without_what_they_share(
    docker: DockerHere, hdfs: FileSystem, tmp_path: Path, allow: Callable[[str], None]
) -> None:
    docker.forget_image()
    own, heard = with_layer(docker, tmp_path / "own.tar", layer("word", b"own\n")), list[str]()
    allow(own)
    for archive in (docker.archive, tmp_path / "own.tar"):
        image_store.add(hdfs, archive, "here")

    for image, script, printed in ((docker.image, "echo here", b"here\n"), (own, "cat /word", b"own\n")):
        box, output = create("docker"), Heard()
        box.start(Program(["bash", "-c", script], {}, tmp_path, Limits(64), image_of(hdfs, image, heard)), output)
        assert (box.wait(SECONDS), bytes(output.stdout)) == (Ended(0), printed)

    assert heard == ["Docker has fetched 1 of 1 layers", "Docker has fetched 1 of 2 layers; it had the others"]
    told = docker.engine.ask("GET", f"/images/{own}/json")
    assert told["Id"] == own and told["RepoDigests"][0].startswith("127.0.0.1:")


def test_a_layer_that_is_damaged_in_hdfs_is_named_and_docker_has_no_image(
    docker: DockerHere, hdfs: FileSystem, tmp_path: Path, allow: Callable[[str], None]
) -> None:
    more = layer("noise", random.Random(7).randbytes(4_000_000))
    image = with_layer(docker, tmp_path / "own.tar", more)
    allow(image)
    image_store.add(hdfs, tmp_path / "own.tar", "own")
    place = f"{OWNERS}/images/blobs/{digest(more).replace(':', '-')}.tar.zst"
    hdfs.write(place, hdfs.read(place)[:-1000])

    with pytest.raises(BoxError, match=f"{place} is damaged"):
        _bring(image_of(hdfs, image, []), tmp_path)

    assert image not in {one["Id"] for one in docker.engine.ask("GET", "/images/json", all="1")}


def test_docker_unpacks_nothing_of_other_bytes_than_were_allowed(
    docker: DockerHere, hdfs: FileSystem, tmp_path: Path, allow: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = layer("word", b"own\n")
    image = with_layer(docker, tmp_path / "own.tar", more)
    allow(image)
    image_store.add(hdfs, tmp_path / "own.tar", "own")
    kept = image_store.find(hdfs, OWNERS, image)
    assert kept is not None
    exchanged = layer("evil", b"own\n")
    assert len(exchanged) == len(more)

    def read(name: str, offset: int) -> Iterator[bytes]:
        return iter([exchanged]) if name == digest(more) else kept.read(name, offset)

    bad = PulledImage(kept.configuration, kept.sizes, read)
    monkeypatch.setattr(image_store, "find", lambda *_: bad)

    with pytest.raises(OSError, match="filesystem layer verification failed"):
        _bring(image_of(hdfs, image, []), tmp_path)

    assert image not in {one["Id"] for one in docker.engine.ask("GET", "/images/json", all="1")}
    assert not list((docker.folder / "data" / "overlay2").glob("*/diff/evil"))
