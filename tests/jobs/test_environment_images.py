"""Images of environments: the same of the same, layers that are shared, and what does not go together is refused."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any, cast

import pytest

from environments.layer import write_layer
from environments.manifest import Manifest, Requires
from environments.reference import Reference
from environments.store import Store
from hadoop.client.filesystem import FileSystem
from infosvc.wire.task_spec import TaskSpec
from jobs.application.environments.laid import Laid
from jobs.errors import JobError
from jobs.kinds.task import environment_image, image_store
from jobs.kinds.task.request import order
from tests.jobs.kept_environments import keep_environment
from tests.jobs.kept_images import HOME, Folder, configuration_of, played_hdfs, save

OWNERS = f"{HOME}/.nodewise"
BASE = b"a layer of the base"
OF_BASE = configuration_of([BASE], config={"Env": ["PATH=/usr/bin", "MARK=one"], "Labels": {"of": "base"}})


@pytest.fixture
def hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    made = played_hdfs(tmp_path / "hdfs", monkeypatch)
    save(tmp_path / "base.tar", [BASE], OF_BASE)
    image_store.add(made, tmp_path / "base.tar", "base")
    return made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "words.py").write_text("words = 1\n")
    return tmp_path / "tree"


def keep(
    hdfs: FileSystem, tree: Path, at: str = "/opt/env", version: str = "1", architecture: str = "x86_64"
) -> Manifest:
    return keep_environment(hdfs, tree.parent, {at: tree}, version, Requires(architecture=architecture))


def settings_of(hdfs: FileSystem, image: str) -> dict[str, object]:
    found = image_store.find(hdfs, OWNERS, image)
    assert found is not None
    return cast("dict[str, object]", json.loads(found.configuration))


def test_the_same_environment_is_the_same_image_and_others_share_its_layers(hdfs: FileSystem, tree: Path) -> None:
    manifest = keep(hdfs, tree)
    first, again = (environment_image.add(hdfs, "words@1", "base") for _ in range(2))
    assert (first.image, first.new_layers, again.new_layers) == (again.image, 1, 0)
    assert (first.image.name, first.image.layers, first.image.environment) == ("words:1", 2, manifest.digest)

    keep(hdfs, tree, version="2")
    other = environment_image.add(hdfs, "words@2", "base")

    assert other.new_layers == 0 and other.image.id != first.image.id
    assert len([name for name in cast("Folder", hdfs).written if ".tar.zst" in name]) == 2


def test_a_part_whose_layer_is_there_is_not_unpacked_again(
    hdfs: FileSystem, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(hdfs, tree)
    made: list[str] = []

    def write(part: Path, at: str, target: Path) -> None:
        made.append(at)
        write_layer(part, at, target)

    monkeypatch.setattr("jobs.kinds.task.environment_image.write_layer", write)
    first = environment_image.add(hdfs, "words@1", "base").image

    assert environment_image.add(hdfs, "words@1", "base") == (first, 0)
    assert made == ["/opt/env"]

    image_store.remove(hdfs, first.id)  # and the layer with it
    assert hdfs.entries(f"{OWNERS}/images/parts") == []
    assert environment_image.add(hdfs, "words@1", "base") == (first, 1)
    assert made == ["/opt/env"] * 2

    keep_environment(hdfs, tree.parent, {"/opt/other": tree}, "2")  # the same part at another place
    assert environment_image.add(hdfs, "words@2", "base").new_layers == 1
    assert made[2:] == ["/opt/other"]


def test_what_is_noted_of_a_part_is_not_trusted_further_than_it_goes(hdfs: FileSystem, tree: Path) -> None:
    keep(hdfs, tree)
    first = environment_image.add(hdfs, "words@1", "base").image
    (record,) = hdfs.entries(f"{OWNERS}/images/parts")
    path = f"{OWNERS}/images/parts/{record.name}"
    before = hdfs.read(path)

    for damaged in (b"", b"\xff", before[:-1] + b"x", b"sha256:" + b"0" * 64 + b" 5"):
        hdfs.write(path, damaged)
        assert environment_image.add(hdfs, "words@1", "base") == (first, 0)
        assert hdfs.read(path) == before


def test_an_image_has_the_settings_of_its_base_and_begins_with_the_python_of_the_environment(
    hdfs: FileSystem, tree: Path
) -> None:
    manifest = keep(hdfs, tree)

    found = settings_of(hdfs, environment_image.add(hdfs, "words", "base", "mine").image.id)

    assert found["config"] == {
        "Env": ["PATH=/opt/env/bin:/usr/bin", "MARK=one", "VIRTUAL_ENV=/opt/env"],
        "Labels": {"of": "base", "nodewise.environment": manifest.digest},
    }
    assert (found["architecture"], found["os"]) == ("amd64", "linux")


def test_an_image_of_a_root_has_the_variables_of_the_environment(hdfs: FileSystem, tree: Path) -> None:
    keep_environment(hdfs, tree.parent, {"/": tree}, variables={"PATH": "/opt/bin", "MARK": "two"})

    found = settings_of(hdfs, environment_image.add(hdfs, "words").image.id)

    assert cast("dict[str, object]", found["config"])["Env"] == ["MARK=two", "PATH=/opt/bin"]


def test_a_machine_without_room_for_a_layer_says_so(hdfs: FileSystem, tree: Path) -> None:
    keep_environment(hdfs, tree.parent, {"/": tree})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(JobError, match=r"^the layer of / cannot be made here .*File too large"):
            environment_image.add(hdfs, "words")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_task_in_a_box_of_docker_gets_the_image_and_nothing_else_of_its_environment(
    hdfs: FileSystem, tree: Path
) -> None:
    keep(hdfs, tree)
    image = environment_image.add(hdfs, "words@1", "base").image.id
    spec = TaskSpec(["python"], box="docker", env="words@1")

    laid = environment_image.find(hdfs, "words@1")
    asked = order(spec, "task_0", None, ["a", "b"], image_nodes={"b"}, environment=laid)

    assert laid == Laid(image=image, requires=Requires(architecture="x86_64", cpu_flags=[]))
    assert (asked.settings["box"], asked.settings["image"], asked.settings["parts"]) == ("docker", image, {})
    assert (asked.master.hosts, asked.master.shared) == (["b"], {})
    with pytest.raises(JobError, match=f"allows the image {image}: an operator allows it by"):
        order(spec, "task_0", None, ["a"], image_nodes={"b"}, environment=laid)
    with pytest.raises(JobError, match="leave --env or --image out"):
        order(TaskSpec(["python"], env="words@1", image=image), "task_0", None, ["a"])


def test_who_looks_while_a_version_is_made_anew_finds_it_whole(
    hdfs: FileSystem, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, found, write = keep(hdfs, tree), [], hdfs.write

    def look_meanwhile(name: str, content: bytes, *rest: Any) -> None:
        write(name, b"", *rest)  # HDFS shows a file from its first byte on, and so before it
        found.append(Store(hdfs).find(Reference("words")).digest)
        write(name, content, *rest)

    monkeypatch.setattr(hdfs, "write", look_meanwhile)
    (tree / "words.py").write_text("words = 2\n")
    second = keep(hdfs, tree)

    assert len(found) == 3 and set(found) == {first.digest}
    assert Store(hdfs).find(Reference("words")).digest == second.digest
    assert not [one.name for one in hdfs.entries("/nodewise/env/manifests/words") if one.name.count(".") > 1]


def test_an_image_is_of_what_its_environment_meant_when_it_was_made(hdfs: FileSystem, tree: Path) -> None:
    keep(hdfs, tree)
    with pytest.raises(JobError, match=r"no image of words@1 as it is now: .* `nodewise task image add --env words@1`"):
        environment_image.find(hdfs, "words@1")
    environment_image.add(hdfs, "words@1", "base")
    (tree / "words.py").write_text("words = 2\n")
    keep(hdfs, tree)

    with pytest.raises(JobError, match="no image of words@1 as it is now"):
        environment_image.find(hdfs, "words@1")


def test_to_find_the_image_of_an_environment_no_record_of_another_is_read(
    hdfs: FileSystem, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(hdfs, tree)
    image = environment_image.add(hdfs, "words@1", "base").image.id
    asked: list[str] = []
    read = hdfs.read

    def note(name: str) -> bytes:
        asked.append(name)
        return read(name)

    monkeypatch.setattr(hdfs, "read", note)

    assert environment_image.find(hdfs, "words@1").image == image
    assert [name for name in asked if "/images/" in name] == []


def test_of_several_images_of_an_environment_one_is_to_be_named(hdfs: FileSystem, tree: Path) -> None:
    keep(hdfs, tree)
    other = configuration_of([BASE], config={})
    save(tree.parent / "other.tar", [BASE], other)
    image_store.add(hdfs, tree.parent / "other.tar", "other")
    images = [environment_image.add(hdfs, "words@1", base).image.id for base in ("base", "other")]

    with pytest.raises(JobError, match="words@1 has 2 images: name one by --image: ") as refused:
        environment_image.find(hdfs, "words@1")
    assert all(f"words:1@{image}" in str(refused.value) for image in images)


def test_what_does_not_go_together_is_refused_and_nothing_is_kept(hdfs: FileSystem, tree: Path) -> None:
    keep(hdfs, tree)
    keep(hdfs, tree, at="/", version="root")
    keep(hdfs, tree, version="arm", architecture="aarch64")
    save(tree.parent / "same.tar", [BASE], configuration_of([BASE], config={}))
    image_store.add(hdfs, tree.parent / "same.tar", "twice")
    save(tree.parent / "same.tar", [BASE], configuration_of([BASE], author="another"))
    image_store.add(hdfs, tree.parent / "same.tar", "twice")
    before = image_store.kept_images(hdfs)
    cases = {
        ("words@3", "base"): "there is no words@3: take one of ",
        ("Words", "base"): "'Words' names no environment",
        (
            "words@1",
            "",
        ): "words@1 has no files at /, such as those of Python 3.11: name an image that has",
        ("words@1", "none"): "there is no image none",
        ("words@1", "twice"): "2 images are called twice: name one by its id",
        ("words@root", "base"): "words@root has all files of its system, and needs no base: leave --base out",
        ("words@arm", "base"): "words@arm is for arm64, and base for amd64",
    }
    for (env, base), said in cases.items():
        with pytest.raises(JobError) as refused:
            environment_image.add(hdfs, env, base)
        assert said in str(refused.value)
    assert image_store.kept_images(hdfs) == before
    with pytest.raises(JobError, match="a box of Docker takes no packed environment"):
        environment_image.find(hdfs, "latest")


def test_a_part_that_is_damaged_makes_no_image(hdfs: FileSystem, tree: Path) -> None:
    (part,) = keep(hdfs, tree).parts
    path = f"/nodewise/env/blobs/sha256-{part.sha256}.sqfs"
    hdfs.write(path, hdfs.read(path)[:-1])

    with pytest.raises(JobError, match=f"{path} is damaged"):
        environment_image.add(hdfs, "words@1", "base")
    assert [one.name for one in image_store.kept_images(hdfs)] == ["base"]
