"""Images in HDFS: each layer once, read from whatever tools write, and nothing kept of what is damaged."""

from __future__ import annotations

import gzip
import json
import os
import random
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from boxes.box import BoxError
from boxes.broker.images import checked, image_of
from environments.store import Store
from hadoop.client.drafts import OLD_SECONDS, clear_old
from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.errors import JobError
from jobs.kinds.task import image_store
from jobs.kinds.task.images.layer_blobs import Damaged, LayerBlobs
from tests.jobs.kept_environments import keep_environment
from tests.jobs.kept_images import HOME, Folder, configuration_of, digest, lay_out, pack, played_hdfs, save

OWNERS = f"{HOME}/.nodewise"
BASE, ONE, OTHER = (random.Random(seed).randbytes(70_000) + b"x" * 90_000 for seed in range(3))


@pytest.fixture
def hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    return played_hdfs(tmp_path / "hdfs", monkeypatch)


def add(hdfs: FileSystem, path: Path, *layers: bytes) -> image_store.Added:
    save(path, layers)
    return image_store.add(hdfs, path, path.stem)


def blobs(hdfs: FileSystem) -> set[str]:
    return {one.name for one in hdfs.entries(f"{OWNERS}/images/blobs")}


def blob(content: bytes) -> str:
    return f"{digest(content).replace(':', '-')}.tar.zst"


def test_layers_that_images_share_are_kept_once(hdfs: FileSystem, tmp_path: Path) -> None:
    first, second = add(hdfs, tmp_path / "a.tar", BASE, ONE), add(hdfs, tmp_path / "b.tar", BASE, OTHER, BASE)

    assert (first.new_layers, first.image.layers) == (2, 2)
    assert (second.new_layers, second.image.layers) == (1, 3)
    assert {name for name in blobs(hdfs) if name.endswith(".zst")} == {blob(BASE), blob(ONE), blob(OTHER)}
    assert len(cast("Folder", hdfs).written) == 3
    sizes = {one.name: one.size_bytes for one in hdfs.entries(f"{OWNERS}/images/blobs")}
    assert first.image.size_bytes == sizes[blob(BASE)] + sizes[blob(ONE)] < 2 * 90_000
    assert [one.name for one in image_store.kept_images(hdfs)] == ["a", "b"]


def test_an_image_takes_the_layers_along_that_no_other_has(hdfs: FileSystem, tmp_path: Path) -> None:
    first, second = add(hdfs, tmp_path / "a.tar", BASE, ONE).image.id, add(hdfs, tmp_path / "b.tar", BASE, OTHER)
    draft = f"{OWNERS}/images/blobs/{blob(b'somebody adds it now')}.0a1b2c3d"
    hdfs.write(draft, b"half")

    image_store.remove(hdfs, first)

    name = second.image.id.replace(":", "-")
    assert blobs(hdfs) == {blob(BASE), blob(OTHER), name, draft.rpartition("/")[2]}
    image_store.check_there(hdfs, second.image.id)
    with pytest.raises(JobError, match=f"there is no image {first}"):
        image_store.check_there(hdfs, first)
    assert image_store.find(hdfs, OWNERS, first) is None


DRAFTS = [
    *(f"{OWNERS}/images/{folder}sha256-aa.tar.zst.0123abcd" for folder in ("", "blobs/", "parts/")),
    *(f"/nodewise/env/{folder}.0123abcd" for folder in ("blobs/sha256-aa.sqfs", "manifests/words/1.version")),
]


def leave(hdfs: FileSystem, drafts: list[str], age: float) -> None:
    """As somebody does who was killed so many seconds ago."""
    for name in drafts:
        hdfs.write(name, b"half")
        os.utime(cast("Folder", hdfs).path(name), (time.time() - age,) * 2)


def test_what_somebody_who_was_killed_has_left_goes_a_day_later(hdfs: FileSystem, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.mkdir()
    image, manifest = add(hdfs, tmp_path / "a.tar", BASE).image, keep_environment(hdfs, tmp_path, {"/opt/words": words})
    store = Store(hdfs)
    changes: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: image_store.add(hdfs, tmp_path / "a.tar", "a"), DRAFTS[:3]),
        (lambda: image_store.remove(hdfs, image.id), DRAFTS[:3]),
        (lambda: store.add(manifest, "asked"), DRAFTS[3:]),
        (lambda: store.remove(manifest), DRAFTS[3:]),
    ]
    for change, drafts in changes:
        leave(hdfs, drafts, OLD_SECONDS + 1)
        leave(hdfs, drafts[:1], OLD_SECONDS - 600)
        change()
        assert [*map(hdfs.exists, drafts)] == [True] + [False] * len(drafts[1:])


def test_what_is_put_away_only_now_is_not_left_from_yesterday(hdfs: FileSystem, tmp_path: Path) -> None:
    add(hdfs, tmp_path / "a.tar", BASE)
    folder = f"{OWNERS}/images/blobs"
    for name in blobs(hdfs):
        os.utime(cast("Folder", hdfs).path(f"{folder}/{name}"), (0, 0))
    away = image_store.blobs_of(hdfs)._put_away(())
    clear_old(hdfs, folder)
    assert away
    assert all(map(hdfs.exists, away.values()))


@pytest.mark.parametrize("packing", ["", "+gzip", "+zstd"])
@pytest.mark.parametrize("is_archive", [False, True])
def test_an_oci_layout_is_the_image_that_its_configuration_says(
    packing: str, is_archive: bool, hdfs: FileSystem, tmp_path: Path
) -> None:
    source = tmp_path / "layout"
    image = lay_out(source, [BASE, ONE], packing, is_nested=is_archive)
    if is_archive:
        pack(source, tmp_path / "layout.tar")
        source = tmp_path / "layout.tar"

    assert image_store.add(hdfs, source, "laid").image.id == image

    kept = image_store.find(hdfs, OWNERS, image)
    assert kept is not None
    assert [b"".join(kept.read(one, 0)) for one in kept.layers] == [BASE, ONE]


def test_an_archive_that_was_packed_is_added_as_it_would_be_unpacked(hdfs: FileSystem, tmp_path: Path) -> None:
    image = save(tmp_path / "a.tar", [BASE, ONE])
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes()))

    assert image_store.add(hdfs, tmp_path / "a.tar.gz", "packed").image.id == image


def test_what_was_added_comes_back_as_an_archive_of_the_same_image(hdfs: FileSystem, tmp_path: Path) -> None:
    image = add(hdfs, tmp_path / "a.tar", BASE, ONE, BASE).image.id

    image_store.fetch(hdfs, OWNERS, image, tmp_path / "back.tar")

    with (tmp_path / "back.tar").open("rb") as archive:
        assert image_of(archive) == image
        with checked(archive, image) as made, tarfile.open(fileobj=made) as read:
            assert read.getnames()[2:] == ["0.tar", "1.tar", "2.tar"]


def test_an_archive_of_an_earlier_version_is_fetched_as_it_is_until_it_is_added_again(
    hdfs: FileSystem, tmp_path: Path
) -> None:
    image = save(tmp_path / "a.tar", [ONE])
    place = f"{OWNERS}/images/{image.removeprefix('sha256:')}"
    hdfs.write(f"{place}.tar", (tmp_path / "a.tar").read_bytes())
    hdfs.write(f"{place}.json", json.dumps({"id": image, "name": "old", "size_bytes": 5}).encode())

    assert [one.layers for one in image_store.kept_images(hdfs)] == [0]
    image_store.check_there(hdfs, image)
    assert image_store.serve(hdfs, OWNERS, image, print) is None
    image_store.fetch(hdfs, OWNERS, image, tmp_path / "back.tar")
    assert (tmp_path / "back.tar").read_bytes() == (tmp_path / "a.tar").read_bytes()

    image_store.add(hdfs, tmp_path / "a.tar", "new")
    assert not hdfs.exists(f"{place}.tar")
    assert image_store.serve(hdfs, OWNERS, image, print) is not None


def test_a_file_that_is_no_whole_image_leaves_nothing(hdfs: FileSystem, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    cases: list[tuple[bytes | None, list[bytes], str]] = [
        (None, [], "it is not a tar archive of an image"),
        (configuration_of([OTHER]), [ONE], f"a layer is not the one that the image names, {digest(OTHER)}"),
        (configuration_of([ONE, OTHER]), [ONE], "its configuration names 2 layers and not 1"),
        (b'{"rootfs": 5}', [ONE], "the image's configuration does not name its layers"),
        (b'{"rootfs": {"diff_ids": ["sha256:../../x"]}}', [ONE], "the image's configuration does not name its layers"),
        (b"{", [ONE], "the image's configuration is not JSON"),
        (configuration_of([ONE]), [b"\x1f\x8bnot packed"], ""),
        (configuration_of([ONE]), [b"\x28\xb5\x2f\xfdnot packed"], ""),
    ]
    for configuration, layers, sentence in cases:
        if configuration is None:
            path.write_bytes(b"words")
        else:
            save(path, layers, configuration)
        with pytest.raises(JobError) as refused:
            image_store.add(hdfs, path, "a")
        assert refused.value.message.startswith(f"{path} cannot be added: {sentence}"), sentence
        assert refused.value.remedy or "JSON" in sentence or "names" in sentence or "not name" in sentence
    assert blobs(hdfs) == set()
    assert image_store.kept_images(hdfs) == []


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        ({"manifests": []}, "its index names 0 images"),
        ({"manifests": [{}, {}]}, "its index names 2 images"),
        ([], "its index does not describe an image"),
        ({"manifests": [{"digest": "sha256:../../../etc/passwd"}]}, "it has no 'blobs/sha256/../../../etc/passwd'"),
    ],
)
def test_a_layout_of_another_form_is_refused(index: object, sentence: str, hdfs: FileSystem, tmp_path: Path) -> None:
    source = tmp_path / "layout"
    lay_out(source, [ONE], "")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("{}")
    (source / "index.json").write_text(json.dumps(index))

    with pytest.raises(JobError) as refused:
        image_store.add(hdfs, source, "laid")
    assert refused.value.message == f"{source} cannot be added: {sentence}"


def test_an_image_that_is_half_added_is_not_listed(
    hdfs: FileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = hdfs.write

    def fail_at_manifest(name: str, *rest: Any, **more: Any) -> None:
        if ".manifest" in name:
            raise HadoopError("HDFS is gone")
        write(name, *rest, **more)

    monkeypatch.setattr(hdfs, "write", fail_at_manifest)
    with pytest.raises(HadoopError):
        add(hdfs, tmp_path / "a.tar", ONE)

    assert image_store.kept_images(hdfs) == []


def test_an_index_that_leads_to_itself_is_refused(hdfs: FileSystem, tmp_path: Path) -> None:
    source = tmp_path / "layout"
    lay_out(source, [ONE], "")
    index = {"manifests": [{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": f"sha256:{'a' * 64}"}]}
    for place in ("index.json", f"blobs/sha256/{'a' * 64}"):
        (source / place).write_text(json.dumps(index))

    with pytest.raises(JobError, match="its index leads to more than 8 others"):
        image_store.add(hdfs, source, "laid")


def test_a_layer_that_was_changed_in_hdfs_is_found_out(hdfs: FileSystem, tmp_path: Path) -> None:
    kept = add(hdfs, tmp_path / "a.tar", ONE).image
    place = f"{OWNERS}/images/blobs/{blob(ONE)}"
    content = hdfs.read(place)
    for changed in (content[:-7], b"", content[:500] + b"xx" + content[502:], b"x" * 100):
        hdfs.write(place, changed)
        with pytest.raises(Damaged, match=f"{blob(ONE)} is damaged: "):
            list(LayerBlobs(hdfs, f"{OWNERS}/images").read_layer(digest(ONE)))
        with pytest.raises(BoxError, match="the image cannot be read"):
            image_store.fetch(hdfs, OWNERS, kept.id, tmp_path / "back.tar")


def test_a_layer_is_read_from_any_byte_on(hdfs: FileSystem, tmp_path: Path) -> None:
    add(hdfs, tmp_path / "a.tar", ONE)
    read = LayerBlobs(hdfs, f"{OWNERS}/images").read_layer

    for offset in (0, 1, 4095, 100_000, len(ONE) - 1, len(ONE)):
        assert b"".join(read(digest(ONE), offset)) == ONE[offset:]
