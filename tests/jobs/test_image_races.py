"""Whoever adds, removes or reads images while somebody else does: nothing is half there, and one sentence says why."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from boxes.box import BoxError
from environments.manifest import Requires
from hadoop.client.filesystem import FileSystem
from jobs.errors import JobError
from jobs.kinds.task import environment_image, image_store
from tests.jobs.kept_environments import keep_environment
from tests.jobs.kept_images import HOME, configuration_of, digest, played_hdfs, save

OWNERS = f"{HOME}/.nodewise"
BASE, ONE, OTHER = (bytes([number]) * 5_000 for number in range(3))
LAYERS = {"a": [BASE, ONE], "b": [BASE, OTHER]}
IDS = {name: digest(configuration_of(layers)) for name, layers in LAYERS.items()}

Does = Callable[[FileSystem, Path], Any]


class Between:
    """HDFS in which somebody else does something once, before the call of this number."""

    def __init__(self, filesystem: FileSystem, number: int, meanwhile: Callable[[], Any]) -> None:
        self._filesystem = filesystem
        self._left = number
        self._meanwhile = meanwhile

    @property
    def has_come(self) -> bool:
        return self._left < 0

    def exchange(self, name: str, content: bytes) -> None:
        FileSystem.exchange(cast("FileSystem", self), name, content)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == -1:
                self._meanwhile()
            return getattr(self._filesystem, name)(*given, **named)

        return call


def adding(name: str, called: str = "") -> Does:
    def add(hdfs: FileSystem, folder: Path) -> None:
        path = folder / f"{name}{called}.tar"
        save(path, LAYERS[name])
        assert image_store.add(hdfs, path, called or name).image.id == IDS[name]

    return add


def removing(name: str) -> Does:
    return lambda hdfs, folder: image_store.remove(hdfs, IDS[name])


def fetching(name: str) -> Does:
    return lambda hdfs, folder: image_store.fetch(hdfs, OWNERS, IDS[name], folder / "fetched.tar")


def making_of_words(hdfs: FileSystem, folder: Path) -> None:
    environment_image.add(hdfs, "words@1", "b")


def naming_words(hdfs: FileSystem, folder: Path) -> None:
    assert environment_image.find(hdfs, "words@1")


def removing_words(hdfs: FileSystem, folder: Path) -> None:
    for one in image_store.kept_images(hdfs):
        if one.environment:
            image_store.remove(hdfs, one.id)


def attempt(does: Does, hdfs: FileSystem, folder: Path) -> None:
    """HadoopError passes: that a file is gone says nothing to anybody."""
    with suppress(JobError, BoxError):
        does(hdfs, folder)


def check_whole(hdfs: FileSystem) -> set[str]:
    """Each image that is listed can be read as a whole; their ids."""
    found = image_store.kept_images(hdfs)
    files = [one.name for one in hdfs.entries(f"{OWNERS}/images") if "." in one.name]
    assert {name.partition(".")[0] for name in files} == {one.id.removeprefix("sha256:") for one in found}
    for one in found:
        served = image_store.find(hdfs, OWNERS, one.id)
        assert served is not None
        for layer in served.layers:
            assert list(served.read(layer, 0))
        if one.environment:
            assert image_store.find_made_of(hdfs, one.environment) == [one.id]
    return {one.id for one in found}


RACES: list[tuple[str, list[Does], Does, Does, set[str]]] = [
    # the images that are there before, what one does, what somebody else does meanwhile, what is there at the end
    ("add, other removed", [adding("a")], adding("b"), removing("a"), set()),
    ("remove, other added", [adding("a")], removing("a"), adding("b"), {IDS["b"]}),
    ("remove two", [adding("a"), adding("b")], removing("a"), removing("b"), set()),
    ("remove twice", [adding("a"), adding("b")], removing("a"), removing("a"), {IDS["b"]}),
    ("add twice", [], adding("a"), adding("a", "twice"), {IDS["a"]}),
    ("add again, removed", [adding("a")], adding("a"), removing("a"), set()),
    ("list, removed", [adding("a"), adding("b")], lambda hdfs, _: image_store.kept_images(hdfs), removing("a"), set()),
    ("fetch, removed", [adding("a")], fetching("a"), removing("a"), set()),
    ("make, base removed", [adding("b")], making_of_words, removing("b"), set()),
    ("make twice", [adding("b")], making_of_words, making_of_words, {IDS["b"]}),
    ("find, removed", [adding("b"), making_of_words], naming_words, removing_words, {IDS["b"]}),
    ("remove, made", [adding("b"), adding("a")], removing("a"), making_of_words, {IDS["b"]}),
]


@pytest.mark.parametrize(("before", "does", "meanwhile", "left"), [one[1:] for one in RACES], ids=[r[0] for r in RACES])
def test_of_two_at_once_nothing_is_left_half_made(
    before: list[Does], does: Does, meanwhile: Does, left: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in itertools.count():
        folder = tmp_path / str(number)
        (folder / "tree").mkdir(parents=True)
        hdfs = played_hdfs(folder / "hdfs", monkeypatch)
        keep_environment(hdfs, folder, {"/opt/env": folder / "tree"}, requires=Requires(architecture="x86_64"))
        for one in before:
            one(hdfs, folder)
        between = Between(hdfs, number, partial(attempt, meanwhile, hdfs, folder))

        attempt(does, cast("FileSystem", between), folder)

        if not between.has_come:  # all calls were met
            assert number > 2
            break
        assert check_whole(hdfs) >= left
