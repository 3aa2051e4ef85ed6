"""Loading a folder into a real HDFS: every file arrives whole or is reported with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hdfs import InsecureClient
from PIL import Image

from hadoop.local.lifecycle import Cluster
from jobs.errors import JobError
from jobs.images.datasets import LoadResult, load, make

PICTURES = 12
HIDDEN = "jobs pass over names that begin with . or _: rename it"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pictures")
    make(directory, PICTURES)
    return directory


@pytest.fixture(scope="module")
def hdfs(cluster: Cluster) -> InsecureClient:
    return InsecureClient(cluster.namenode_http, user=cluster.user)


def load_into(
    cluster: Cluster, directory: Path, target: str, overwrite: bool = False, keep_broken: bool = False
) -> LoadResult:
    where = (target, cluster.namenode_http, cluster.user)
    return load(directory, *where, overwrite=overwrite, keep_broken=keep_broken)


def stored(hdfs: InsecureClient, path: str) -> bytes:
    with hdfs.read(path) as reader:
        content: bytes = reader.read()
    return content


def mixed_folder(directory: Path, picture: bytes) -> None:
    (directory / "inner").mkdir(parents=True)
    (directory / "_set aside").mkdir()
    for name, content in {
        "inner/name with spaces #1 50%.jpg": picture,
        "cut.jpg": picture[: len(picture) // 2],
        "empty.jpg": b"",
        "named.jpg": b"hello",
        "headless": picture[:300],
        "notes.txt": b"hello",
        "a:b.jpg": picture,
        ".thumbnail.jpg": picture,
        "_set aside/c.jpg": picture,
    }.items():
        (directory / name).write_bytes(content)
    Image.new("RGB", (9, 9)).save(directory / "moving.gif")
    Image.new("RGB", (9, 9)).save(directory / "small.png")
    (directory / "dangling.jpg").symlink_to("nowhere")


def test_every_picture_arrives_byte_for_byte(cluster: Cluster, hdfs: InsecureClient, pictures: Path) -> None:
    seen: list[tuple[int, int]] = []
    result = load(
        pictures,
        "hdfs:///load/plain",
        cluster.namenode_http,
        cluster.user,
        lambda done, total: seen.append((done, total)),
    )
    assert result == LoadResult(PICTURES, ())
    assert seen == [(i + 1, PICTURES) for i in range(PICTURES)]
    for path in pictures.glob("*.jpg"):
        assert stored(hdfs, f"/load/plain/{path.name}") == path.read_bytes()


def test_a_picture_is_one_block_and_small_nodes_have_room_for_many(
    cluster: Cluster, hdfs: InsecureClient, tmp_path: Path
) -> None:
    (tmp_path / "wide").mkdir()
    Image.new("RGB", (3000, 2000)).save(tmp_path / "wide" / "large.bmp")
    Image.new("RGB", (9, 9)).save(tmp_path / "wide" / "small.png")
    load_into(cluster, tmp_path / "wide", "/load/wide")
    blocks = {name: status["blockSize"] >> 20 for name, status in hdfs.list("/load/wide", status=True)}
    assert blocks == {"large.bmp": 18, "small.png": 16}


def test_what_is_no_sound_picture_is_reported_and_stays_here(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, tmp_path: Path
) -> None:
    mixed_folder(tmp_path / "mixed", next(pictures.iterdir()).read_bytes())
    result = load_into(cluster, tmp_path / "mixed", "/load/mixed")
    reasons = {path.name: reason for path, reason in result.skipped}
    assert result.loaded == 2
    assert sorted(hdfs.list("/load/mixed")) == ["inner", "small.png"]
    assert hdfs.list("/load/mixed/inner") == ["name with spaces #1 50%.jpg"]
    assert reasons.pop("cut.jpg").startswith("broken JPEG: image file is truncated")
    assert reasons.pop("headless").startswith("broken JPEG: ")
    assert reasons.pop(".thumbnail.jpg") == reasons.pop("c.jpg") == HIDDEN
    assert reasons == {
        "empty.jpg": "broken JPEG: empty file",
        "named.jpg": "broken JPEG: no image begins in it",
        "notes.txt": "not an image",
        "a:b.jpg": "HDFS allows no ':' in a name: rename the file",
        "moving.gif": "a GIF image: convert it to one of BMP, JPEG, PNG, PPM, TIFF, WEBP",
        "dangling.jpg": "cannot be read: No such file or directory",
    }


def test_broken_pictures_are_loaded_when_asked_for(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, tmp_path: Path
) -> None:
    mixed_folder(tmp_path / "mixed", next(pictures.iterdir()).read_bytes())
    result = load_into(cluster, tmp_path / "mixed", "/load/broken", keep_broken=True)
    assert {path.name for path, _ in result.broken} == {"cut.jpg", "empty.jpg", "named.jpg", "headless"}
    assert result.loaded == 6
    assert stored(hdfs, "/load/broken/cut.jpg") == (tmp_path / "mixed" / "cut.jpg").read_bytes()
    assert "notes.txt" not in hdfs.list("/load/broken")


def test_files_already_there_are_kept_unless_overwritten(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path
) -> None:
    name = next(pictures.iterdir()).name
    hdfs.write(f"/load/twice/{name}", data=b"older")
    with pytest.raises(JobError, match=rf"/load/twice already holds 1 of these files, {name}"):
        load_into(cluster, pictures, "/load/twice")
    assert hdfs.list("/load/twice") == [name]
    assert stored(hdfs, f"/load/twice/{name}") == b"older"
    assert load_into(cluster, pictures, "/load/twice", overwrite=True).loaded == PICTURES
    assert stored(hdfs, f"/load/twice/{name}") == (pictures / name).read_bytes()


def test_a_folders_name_may_hold_what_ends_a_path_elsewhere(
    cluster: Cluster, hdfs: InsecureClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # passed by
    make(tmp_path / "one", 1)
    assert load_into(cluster, tmp_path / "one", f"{cluster.namenode_url}/load/who? #1 50%").loaded == 1
    monkeypatch.delenv("http_proxy")
    assert len(hdfs.list("/load/who? #1 50%")) == 1


def test_a_target_that_is_a_file_is_refused(cluster: Cluster, hdfs: InsecureClient, pictures: Path) -> None:
    hdfs.write("/load/file", data=b"")
    with pytest.raises(JobError, match="/load/file is a file in HDFS: name a folder"):
        load_into(cluster, pictures, "/load/file")


def test_a_user_without_the_right_to_write_gets_the_reason(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path
) -> None:
    hdfs.makedirs("/load/closed", permission="700")
    with pytest.raises(JobError, match=r"HDFS refused to .* for user stranger: Permission denied"):
        load(pictures, "/load/closed", cluster.namenode_http, "stranger")
