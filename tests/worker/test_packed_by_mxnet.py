"""What we pack is read by MXNet, and what MXNet packs is found by us: with its own reader, writer and im2rec."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import cv2
import mxnet
import numpy as np
import pytest
from mxnet.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, unpack
from mxnet.recordio import pack as pack_by_mxnet

from jobs.images.recordio import MAGIC, Index, as_places, locate, read_image, record, records

MARK = struct.pack("<I", MAGIC)
PICTURES = [
    b"",
    b"x",
    b"four",
    MARK,
    b"unaligned" + MARK,
    b"head" + MARK,
    MARK + MARK + b"tail",
    b"a" * 101 + MARK * 2 + b"b" * 7 + MARK + b"c",
    bytes(np.random.default_rng(1).integers(0, 256, 100_000, dtype=np.uint8)),
]


def index_of(rec: bytes, idx: bytes, lst: bytes) -> Index:
    found = records(idx)
    table = np.array([locate(lambda at, count: rec[at : at + count], int(at)) for at in found.offsets], np.int64)
    return Index.of(found, as_places(table), lst, len(rec))


def contents(rec: bytes, index: Index) -> list[bytes]:
    return [read_image(lambda at, count: rec[at : at + count], int(at)) for at in index.offsets]


@pytest.fixture
def by_mxnet(tmp_path: Path) -> Path:
    writer = MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w")
    for key, content in enumerate(PICTURES):
        writer.write_idx(key, pack_by_mxnet(IRHeader(0, 2.0, key, 0), content))
    writer.close()
    return tmp_path


def test_our_records_are_mxnet_s_byte_for_byte(by_mxnet: Path) -> None:
    ours = b"".join(record(key, 2.0, content) for key, content in enumerate(PICTURES))

    assert ours == (by_mxnet / "a.rec").read_bytes()


def test_mxnet_reads_our_records_in_turn_and_by_key(tmp_path: Path) -> None:
    made = [record(key, 0.5 * key, content) for key, content in enumerate(PICTURES)]
    (tmp_path / "a.rec").write_bytes(b"".join(made))
    begins = [sum(map(len, made[:key])) for key in range(len(made))]
    (tmp_path / "a.idx").write_text("".join(f"{key}\t{begin}\n" for key, begin in enumerate(begins)))

    reader = MXRecordIO(str(tmp_path / "a.rec"), "r")
    in_turn = [unpack(reader.read()) for _ in PICTURES]
    assert reader.read() is None
    indexed = MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")

    assert [content for _, content in in_turn] == PICTURES
    assert [(header.label, header.id) for header, _ in in_turn] == [(0.5 * key, key) for key in range(len(PICTURES))]
    assert [unpack(indexed.read_idx(key))[1] for key in reversed(range(len(PICTURES)))] == PICTURES[::-1]


def test_what_mxnet_has_written_is_found(by_mxnet: Path) -> None:
    rec = (by_mxnet / "a.rec").read_bytes()

    index = index_of(rec, (by_mxnet / "a.idx").read_bytes(), b"")

    assert contents(rec, index) == PICTURES
    split = [number for number in range(len(PICTURES)) if index.place(number).is_split]
    assert split == [3, 5, 6, 7], "those with the mark at a multiple of four"


@pytest.mark.parametrize("words", [[], ["--pack-label"]], ids=["one label", "several labels"])
def test_what_im2rec_has_packed_is_found(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(5):
        cv2.imwrite(str(folder / f"picture {number}.jpg"), np.full((40, 50 + number, 3), 40 * number, np.uint8))
    labels = "2.5\t3.5" if words else "2.5"
    (tmp_path / "a.lst").write_text("".join(f"{n}\t{labels}\tpicture {n}.jpg\n" for n in (3, 0, 4, 2)))
    program = Path(mxnet.__file__).parent / "tools" / "im2rec.py"
    words = [sys.executable, str(program), *words, "--pass-through", "--num-thread", "2", "a", str(folder)]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)

    rec = (tmp_path / "a.rec").read_bytes()
    index = index_of(rec, (tmp_path / "a.idx").read_bytes(), (tmp_path / "a.lst").read_bytes())

    assert sorted(index.name(number) for number in range(4)) == [f"picture {n}.jpg" for n in (0, 2, 3, 4)]
    for number in range(4):
        place = index.place(number)
        assert rec[place.start : place.start + place.length] == (folder / index.name(number)).read_bytes()
