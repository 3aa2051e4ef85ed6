"""Packing a folder into a real HDFS, and finding every image again by block, offset and length."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hdfs import InsecureClient
from PIL import Image

from hadoop.local.lifecycle import Cluster
from hadoop.rest.webhdfs import WebHdfs
from jobs.errors import JobError
from jobs.images.datasets import make
from jobs.images.labels import CLASSES, LABELS
from jobs.images.packing import PackResult, pack
from jobs.images.recordio import MAGIC, record
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import until

ROOT = Path(__file__).parents[2]
PICTURES = 40
MEGABYTE = 1 << 20
MARK = struct.pack("<I", MAGIC)
Known = Callable[..., Any]
PROGRAM = """
import sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from jobs.errors import JobError
from jobs.kinds.classify.listing import ImageListing
from locality.types import Part

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
filesystem = FileSystem()
try:
    blocks = ImageListing(filesystem, apart or None).blocks(path)
    late = ImageListing(filesystem, apart or None)  # as a second attempt, which has names of blocks only
    found = [[b.name, b.images, b.size_bytes, list(b.replicas),
              [[p.name, p.path, p.offset, p.length] for p in late.of(Part(b, 0, b.images))]] for b in blocks]
except JobError as error:
    found = str(error)
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from jobs.images.packing import pack

pack(Path(sys.argv[1]), *sys.argv[2:], on_progress=lambda done, of: done < of or os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pictures")
    make(directory / "in", PICTURES)
    for file in (LABELS, CLASSES):
        (directory / "in" / file).unlink()
    return directory


@pytest.fixture(scope="module")
def hdfs(cluster: Cluster) -> InsecureClient:
    return InsecureClient(cluster.namenode_http, user=cluster.user)


def pack_into(cluster: Cluster, directory: Path, target: str, **more: Any) -> PackResult:
    return pack(directory, target, cluster.namenode_http, cluster.user, **more)


def blocks_below(cluster: Cluster, path: str) -> Iterator[dict[str, Any]]:
    """Every block of a folder or file, with what the NameNode has heard of its replicas so far."""
    hdfs = WebHdfs(cluster.namenode_http, cluster.user)
    for status in hdfs.list_folder(path):
        name = f"{path}/{status['pathSuffix']}".rstrip("/")
        yield from blocks_below(cluster, name) if status["type"] == "DIRECTORY" else hdfs.block_locations(name)


@pytest.fixture(scope="module")
def known(cluster: Cluster, scripts: Scripts) -> Known:
    """Blocks of a path with their images, or the sentence that refuses it; by then each has its two replicas."""

    def ask(path: str, apart: str = "/apart") -> Any:
        until(lambda: all(len(block["hosts"]) == 2 for block in blocks_below(cluster, path)))
        return scripts.find(PROGRAM, path=path, apart=apart)

    return ask


def stored(hdfs: InsecureClient, path: str, offset: int | None = None, length: int | None = None) -> bytes:
    with hdfs.read(path, offset=offset or 0, length=length) as reader:
        content: bytes = reader.read()
    return content


def with_mark(picture: bytes) -> bytes:
    """The JPEG with a comment in which the mark of a record stands at a multiple of four."""
    return picture[:2] + b"\xff\xfe" + struct.pack(">H", 2 + 6) + b"xx" + MARK + picture[2:]


def test_every_picture_is_found_by_offset_and_length_in_the_block_that_it_begins_in(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, known: Known
) -> None:
    hdfs.makedirs("/pack/plain")
    seen: list[tuple[int, int]] = []
    result = pack_into(
        cluster,
        pictures,
        "hdfs:///pack/plain",
        file_bytes=MEGABYTE,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    files = hdfs.list("/pack/plain", status=True)

    assert (result.packed, result.alone, result.skipped, result.broken) == (PICTURES, (), (), ())
    assert seen == [(done + 1, PICTURES) for done in range(PICTURES)]
    assert {name for name, _ in files} == {
        f"images-{n:05}.{kind}" for n in range(result.files) for kind in ("rec", "idx", "lst", "len")
    }
    assert all(status["length"] <= MEGABYTE for name, status in files)
    blocks = known("/pack/plain")
    names = {}
    for name, images, size, replicas, found in blocks:
        assert len(found) == images
        assert len(replicas) == 2
        assert sum(length for *_, length in found) < size < sum(length for *_, length in found) + 36 * images
        for own, path, offset, length in found:
            assert name == f"{path}@0"
            names[own.partition("#")[2]] = stored(hdfs, path, offset, length)
    assert names == {f"in/{path.name}": path.read_bytes() for path in (pictures / "in").iterdir()}
    assert sum(images for _, images, *_ in blocks) == PICTURES


@pytest.fixture
def labelled(pictures: Path) -> Iterator[None]:
    """Class 4 for the first image, class 7 for the others; the last is not named."""
    names = sorted(path.name for path in (pictures / "in").iterdir())[:-1]
    lines = [f"in/{name}\t{7 if number else 4}\tanything\n" for number, name in enumerate(names)]
    (pictures / LABELS).write_text("".join(lines))
    (pictures / CLASSES).write_text("anything\n")
    yield
    (pictures / LABELS).unlink()
    (pictures / CLASSES).unlink()


@pytest.mark.usefixtures("labelled")
def test_class_numbers_go_into_list_and_record(cluster: Cluster, hdfs: InsecureClient, pictures: Path) -> None:
    pack_into(cluster, pictures, "/pack/labelled")

    lines = stored(hdfs, "/pack/labelled/images-00000.lst").decode().splitlines()
    (label,) = struct.unpack("<f", stored(hdfs, "/pack/labelled/images-00000.rec", 12, 4))
    assert [line.split("\t")[1] for line in lines] == ["4.000000", *["7.000000"] * (PICTURES - 2), "-1.000000"]
    assert label == 4


def test_a_pack_of_several_blocks_has_its_pictures_at_each_block_s_holders(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, known: Known
) -> None:
    pack_into(cluster, pictures, "/pack/one")
    content = {kind: stored(hdfs, f"/pack/one/images-00000.{kind}") for kind in ("rec", "idx", "lst", "len")}
    for kind, text in content.items():
        hdfs.write(f"/pack/several/a.{kind}", data=text, blocksize=MEGABYTE)
    hdfs.write("/pack/foreign/a.rec", data=content["rec"], blocksize=MEGABYTE)
    hdfs.write("/pack/foreign/a.idx", data=content["idx"])
    hdfs.write("/pack/foreign/a.lst", data=content["lst"])

    blocks = known("/pack/several")

    assert [name for name, *_ in blocks] == [f"/pack/several/a.rec@{n * MEGABYTE}" for n in range(len(blocks))]
    assert len(blocks) == -(-len(content["rec"]) // MEGABYTE) > 2
    offsets = [(offset - 32) // MEGABYTE for n, block in enumerate(blocks) for _, _, offset, _ in block[4]]
    assert offsets == [n for n, block in enumerate(blocks) for _ in block[4]]
    assert sum(size for _, _, size, *_ in blocks) == len(content["rec"])
    assert len({tuple(replicas) for *_, replicas, _ in blocks}) > 1 or cluster.size == 2
    assert known("/pack/several/a.rec") == blocks, "a pack may be named itself"
    foreign = known("/pack/foreign")
    assert [found for *_, found in foreign] == [
        [[own.replace("several", "foreign"), path.replace("several", "foreign"), *where] for own, path, *where in found]
        for *_, found in blocks
    ]


def test_pictures_that_would_be_split_lie_as_files_beside_the_packs(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, tmp_path: Path, known: Known
) -> None:
    picture = next((pictures / "in").iterdir()).read_bytes()
    (tmp_path / "in").mkdir()
    (tmp_path / "a.jpg").write_bytes(picture)
    for name in ("in/marked.jpg", "_hidden.jpg", "in/a:b.jpg"):
        (tmp_path / name).write_bytes(with_mark(picture))

    result = pack_into(cluster, tmp_path, "/pack/marked")

    assert (result.packed, [path.name for path in result.alone]) == (1, ["marked.jpg"])
    assert {path.name: reason for path, reason in result.skipped} == dict.fromkeys(
        ("_hidden.jpg", "a:b.jpg"), "has to be a file of its own, and Hadoop passes over such a name: rename the file"
    )
    assert stored(hdfs, "/pack/marked/in/marked.jpg") == with_mark(picture)
    assert [name for name, *_ in known("/pack/marked")] == [
        "/pack/marked/images-00000.rec@0",
        "/pack/marked/in/marked.jpg",
    ]


def test_a_picture_that_another_program_has_split_is_put_together_once(
    cluster: Cluster, hdfs: InsecureClient, known: Known
) -> None:
    contents = [b"before", b"head" + MARK + b"tail", b"behind"]
    rec, idx = b"", ""
    for key, content in enumerate(contents):
        idx += f"{key}\t{len(rec)}\n"
        rec += record(key, 0, content)
    hdfs.write("/pack/split/a.rec", data=rec)
    hdfs.write("/pack/split/a.idx", data=idx.encode())

    first, again = (known("/pack/split", "/apart/split") for _ in range(2))

    ((*_, found),) = first
    assert first == again
    assert len(hdfs.list("/apart/split")) == 1
    assert [stored(hdfs, path, offset, length) for _, path, offset, length in found] == contents
    assert [own for own, *_ in found] == [f"/pack/split/a.rec#@{at}" for at in (0, 40, 88)]
    assert "holds 1 images that are split" in known("/pack/split", "")


def test_what_is_no_sound_picture_is_reported_and_stays_here(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, tmp_path: Path, known: Known
) -> None:
    picture = next((pictures / "in").iterdir()).read_bytes()
    for name, content in {"a:b.jpg": picture, "cut.jpg": picture[:9000], "empty.jpg": b"", "no.txt": b"text"}.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "tab\t.jpg").write_bytes(picture)
    (tmp_path / "dangling.jpg").symlink_to("nowhere")
    Image.new("RGB", (9, 9)).save(tmp_path / "moving.gif")

    result = pack_into(cluster, tmp_path, "/pack/mixed")
    kept = pack_into(cluster, tmp_path, "/pack/kept", keep_broken=True)

    reasons = {path.name: reason for path, reason in result.skipped}
    assert result.packed == 1
    assert reasons.pop("cut.jpg").startswith("broken JPEG: ")
    assert reasons.pop("moving.gif").startswith("a GIF image: ")
    assert reasons == {
        "dangling.jpg": "cannot be read: No such file or directory",
        "empty.jpg": "broken JPEG: empty file",
        "no.txt": "not an image",
        "tab\t.jpg": "its name holds a tab or the end of a line, or is not UTF-8: rename the file",
    }
    assert kept.packed == 3
    assert [path.name for path, _ in kept.broken] == ["cut.jpg", "empty.jpg"]
    ((*_, found),) = known("/pack/kept")
    assert [stored(hdfs, path, offset, length) if length else b"" for _, path, offset, length in found] == [
        picture,
        picture[:9000],
        b"",
    ]


def test_a_target_that_holds_something_is_not_touched(cluster: Cluster, hdfs: InsecureClient, pictures: Path) -> None:
    hdfs.write("/pack/held/mine", data=b"keep")
    with pytest.raises(JobError, match=r"/pack/held already holds mine \(1 names in all\): pack into a new folder"):
        pack_into(cluster, pictures, "/pack/held")
    with pytest.raises(JobError, match="/pack/held/mine is a file in HDFS: name a folder"):
        pack_into(cluster, pictures, "/pack/held/mine")
    with pytest.raises(JobError, match="cannot be packed into / itself: name a folder below it"):
        pack_into(cluster, pictures, "hdfs:///")
    assert stored(hdfs, "/pack/held/mine") == b"keep"


def test_a_packing_that_is_interrupted_leaves_nothing(cluster: Cluster, hdfs: InsecureClient, pictures: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == PICTURES // 2:
            (name,) = hdfs.list("/pack/cut")
            assert name.startswith("_target.packing-")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack_into(cluster, pictures, "/pack/cut/target", on_progress=interrupt, file_bytes=MEGABYTE)
    assert hdfs.list("/pack/cut") == []


def test_two_packings_into_one_folder_do_not_meet(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, one_picture: Path, known: Known
) -> None:
    def meet(done: int, total: int) -> None:
        if done == PICTURES:
            pack_into(cluster, one_picture, "/pack/twice/target")

    with pytest.raises(JobError, match=r"/pack/twice/target already holds images-00000\.idx"):
        pack_into(cluster, pictures, "/pack/twice/target", on_progress=meet)
    assert hdfs.list("/pack/twice") == ["target"]
    assert len(known("/pack/twice/target")[0][4]) == 1


@pytest.fixture
def one_picture(pictures: Path, tmp_path: Path) -> Path:
    (tmp_path / "a.jpg").write_bytes(next((pictures / "in").iterdir()).read_bytes())
    return tmp_path


def test_what_a_killed_packing_left_is_taken_away_and_nothing_else(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, one_picture: Path
) -> None:
    argv = [sys.executable, "-c", KILLED, str(pictures), "/pack/killed/target", cluster.namenode_http, cluster.user]
    assert subprocess.run(argv, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    (left,) = hdfs.list("/pack/killed")
    assert left.startswith(f"_target.packing-{socket.gethostname()}-")
    elsewhere = ["_other.packing-far-1-00000000", "_target.packing-far-1-00000000", "_target.packing-mine"]
    for name in (*elsewhere, "_target.packing-far-1-11111111"):
        hdfs.makedirs(f"/pack/killed/{name}")
    hdfs.set_times("/pack/killed/_target.packing-far-1-11111111", modification_time=1)

    pack_into(cluster, one_picture, "/pack/killed/target")

    assert sorted(hdfs.list("/pack/killed")) == [*elsewhere, "target"]


def test_a_pack_is_replaced_when_asked_and_nothing_that_is_of_no_pack(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, one_picture: Path
) -> None:
    (one_picture / "in").mkdir()
    (one_picture / "in" / "marked.jpg").write_bytes(with_mark((one_picture / "a.jpg").read_bytes()))
    pack_into(cluster, pictures, "/pack/again/target", file_bytes=MEGABYTE)
    with pytest.raises(JobError, match=r"new folder, or replace the pack with --overwrite$"):
        pack_into(cluster, one_picture, "/pack/again/target")

    pack_into(cluster, one_picture, "/pack/again/target", overwrite=True)
    smaller = [f"images-00000.{kind}" for kind in ("idx", "len", "lst", "rec")]
    assert hdfs.list("/pack/again/target") == ["_alone", *smaller, "in"]
    assert stored(hdfs, "/pack/again/target/_alone") == b"in/marked.jpg\n"

    result = pack_into(cluster, pictures, "/pack/again/target", overwrite=True)
    assert (result.packed, hdfs.list("/pack/again/target")) == (PICTURES, smaller)
    hdfs.write("/pack/again/target/in/mine.jpg", data=b"keep")
    with pytest.raises(JobError, match=r"holds in/mine\.jpg, which is not from a pack; nothing was changed"):
        pack_into(cluster, one_picture, "/pack/again/target", overwrite=True)
    assert stored(hdfs, "/pack/again/target/in/mine.jpg") == b"keep"
    assert hdfs.list("/pack/again") == ["target"]


def test_a_user_without_the_right_to_write_gets_the_reason(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path
) -> None:
    hdfs.makedirs("/pack/closed", permission="700")
    with pytest.raises(JobError, match=r"HDFS refused to .* for user stranger: Permission denied"):
        pack(pictures, "/pack/closed/target", cluster.namenode_http, "stranger")


def test_packs_that_cannot_be_read_refuse_the_job(
    cluster: Cluster, hdfs: InsecureClient, pictures: Path, known: Known
) -> None:
    pack_into(cluster, pictures, "/pack/broken")
    index = stored(hdfs, "/pack/broken/images-00000.idx")
    hdfs.delete("/pack/broken/images-00000.idx")
    assert "images-00000.rec has no images-00000.idx beside it" in known("/pack/broken")

    hdfs.write("/pack/broken/images-00000.idx", data=b"".join(index.splitlines(keepends=True)[:-1]))
    assert "has a .len that belongs to another .idx: delete the .len" in known("/pack/broken")

    hdfs.delete("/pack/broken/images-00000.len")
    assert "does not name what it holds from byte" in known("/pack/broken")


def test_the_command_tells_what_it_did(cluster: Cluster, hdfs: InsecureClient, pictures: Path) -> None:
    words = ["images", "pack", str(pictures), "hdfs:///pack/command", "--file-size", "1MB", "--json"]
    argv = [sys.executable, "-m", "nodewise", "--home", str(cluster.home), *words]
    first, again = (
        subprocess.run([*argv, *more], cwd=ROOT, capture_output=True, text=True, check=False)
        for more in ([], ["--overwrite"])
    )

    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert again.stdout == first.stdout
    body = json.loads(again.stdout)
    assert (body["packed"], body["skipped"], body["alone"]) == (PICTURES, [], [])
    assert len(hdfs.list("/pack/command")) == 4 * body["files"]
