"""Images found again from the names of blocks alone, by Hadoop's client on a folder of this machine."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hadoop.client.blocks import StoredFile
from hadoop.client.jars import JARS
from jobs.errors import JobError
from jobs.images.packing import NAME
from jobs.images.recordio import HEAD_BYTES, MAGIC, Index, Names, Places, record
from jobs.kinds.classify.listing import IndexCache, without_indexes

SITE = "<configuration><property><name>fs.defaultFS</name><value>file:///</value></property></configuration>"
# A JVM can be started once in a process, so it gets a process of its own.
PROGRAM = """
import json, sys
from pathlib import Path
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from jobs.errors import JobError
from jobs.kinds.classify.listing import ImageListing
from locality.types import Block, Part

start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), "somebody"))
pictures, found = ImageListing(FileSystem(), sys.argv[3]), []
for name, images, first, count in json.loads(sys.argv[4]):
    if not count:
        Path(name).write_bytes(bytes(images))
        continue
    try:
        found.append([list(one.to_json()) for one in pictures.of(Part(Block(name, images, 70, ()), first, count))])
    except JobError as error:
        found.append(str(error))
print("found", json.dumps(found))
"""
SPLIT = b"1234" + struct.pack("<I", MAGIC) + b"5"
CONTENTS = [b"first", b"second!", SPLIT, b"", b"last"]
NAMES = ["a.jpg", "in/b b.jpg", "ü.jpg", "empty.jpg", "z.png"]


def offsets() -> list[int]:
    return [0, *accumulate(len(record(key, 0, content)) for key, content in enumerate(CONTENTS))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pack with a split record, as another program would leave it: without .len."""
    stem = str(tmp_path / "images-00000")
    Path(f"{stem}.rec").write_bytes(b"".join(record(key, 0, content) for key, content in enumerate(CONTENTS)))
    Path(f"{stem}.idx").write_text("".join(f"{key}\t{at}\n" for key, at in enumerate(offsets()[:-1])))
    Path(f"{stem}.lst").write_text("".join(f"{key}\t0.000000\t{name}\n" for key, name in enumerate(NAMES)))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "core-site.xml").write_text(SITE)
    return tmp_path


def asked(folder: Path, *parts: tuple[str, int, int, int]) -> Any:
    """What is found for parts (name of the block below the folder, its images, first, count), or the sentence.

    In between (file, size, 0, 0) makes zeros of a file.
    """
    given = [(f"{folder}/{name}", *numbers) for name, *numbers in parts]
    argv = [sys.executable, "-c", PROGRAM, str(folder / "conf"), str(JARS), f"{folder}/apart", json.dumps(given)]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.rpartition("found ")[2])


def test_a_file_is_one_picture_of_its_block_s_size(folder: Path) -> None:
    assert asked(folder, ("x.jpg", 1, 0, 1)) == [[[f"{folder}/x.jpg", 70]]]


def test_packed_pictures_are_ranges_of_the_file_under_their_own_names(folder: Path) -> None:
    rec = f"{folder}/images-00000.rec"

    before, behind = asked(folder, ("images-00000.rec@0", 5, 0, 2), ("images-00000.rec@0", 5, 3, 2))

    for number, (path, length, offset, name) in zip((0, 1, 3, 4), before + behind, strict=True):
        assert (path, offset, name) == (rec, offsets()[number] + HEAD_BYTES, f"{rec}#{NAMES[number]}")
        assert Path(path).read_bytes()[offset : offset + length] == CONTENTS[number]


def test_a_block_begins_with_the_first_record_in_it(folder: Path) -> None:
    byte = offsets()[1] + 1

    (found,) = asked(folder, (f"images-00000.rec@{byte}", 3, 1, 2))

    assert [name.rpartition("#")[2] for *_, name in found] == NAMES[3:]


def test_a_pack_that_has_shrunk_is_refused(folder: Path) -> None:
    (said,) = asked(folder, ("images-00000.rec@0", 6, 4, 2))

    assert said == f"{folder}/images-00000.rec has changed since the job began: submit it again"


def test_a_pack_without_an_index_is_refused_with_the_remedy(folder: Path) -> None:
    (folder / "images-00000.idx").unlink()

    (said,) = asked(folder, ("images-00000.rec@0", 5, 0, 5))

    assert said.startswith(f"{folder}/images-00000.rec has no images-00000.idx beside it: MXNet's tools/rec2idx.py")


def test_what_is_wrong_with_a_pack_names_it(folder: Path) -> None:
    (folder / "images-00000.len").write_text("0\t32\t5\n")

    (said,) = asked(folder, ("images-00000.rec@0", 5, 0, 5))

    assert said.startswith(f"{folder}/images-00000.rec has a .len that belongs to another .idx: ")


def test_a_pack_without_a_list_has_its_pictures_by_their_first_byte(folder: Path) -> None:
    (folder / "images-00000.lst").unlink()

    (found,) = asked(folder, ("images-00000.rec@0", 5, 1, 1))

    assert found[0][3] == f"{folder}/images-00000.rec#@{offsets()[1]}"


def test_a_split_picture_that_is_damaged_meanwhile_names_its_pack(folder: Path) -> None:
    rec = "images-00000.rec"
    size = (folder / rec).stat().st_size

    _, said = asked(folder, (f"{rec}@0", 5, 0, 1), (rec, size, 0, 0), (f"{rec}@0", 5, 2, 1))

    assert said.startswith(f"{folder}/{rec} ")
    assert f"byte {offsets()[2]}" in said


def stored(*paths: str) -> list[StoredFile]:
    return [StoredFile(path, 70, ()) for path in paths]


def test_what_belongs_to_a_pack_holds_no_pictures() -> None:
    files = stored("/p/a.idx", "/p/a.len", "/p/a.lst", "/p/a.rec", "/p/b.jpg", "/q/a.b.idx", "/q/a.b.rec")

    assert [file.path for file in without_indexes(files)] == ["/p/a.rec", "/p/b.jpg", "/q/a.b.rec"]


@pytest.mark.parametrize("kind", ["idx", "lst", "len"])
def test_what_belongs_to_a_pack_that_is_not_there_is_refused_with_the_remedy(kind: str) -> None:
    files = stored("/p/a.rec", f"/p/b.{kind}", "/q/b.rec")

    with pytest.raises(JobError, match=f"^/p/b.{kind} has no b.rec beside it: copy the pack whole, or rename the file"):
        list(without_indexes(files))


def test_indexes_that_were_not_used_for_long_are_let_go() -> None:
    nothing = np.zeros(4, np.int64)
    index = Index(nothing, Places(nothing, nothing, nothing, frozenset()), Names(b"", nothing, nothing, frozenset()))
    cache = IndexCache(most=8)
    for path in ("a", "b"):
        cache.add(path, index)
    assert cache.find("a") is index

    cache.add("c", index)
    cache.add("c", index)

    assert [path for path in "abc" if cache.find(path)] == ["a", "c"], "b was used the longest ago"
    small = IndexCache(most=1)
    small.add("large", index)
    assert small.find("large") is index, "one is always kept"


def test_packs_are_named_so_that_they_sort() -> None:
    assert [NAME.format(number) for number in (0, 99_999)] == ["images-00000", "images-99999"]
