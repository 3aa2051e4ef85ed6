"""The files of a task: they all come into its folder, and nothing gets out of it."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.kinds.task.unpacking import unpack

CONTENT = b"told"


def file(name: str, mode: int = 0o644) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.mode = len(CONTENT), mode
    return made


def folder(name: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = tarfile.DIRTYPE
    return made


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.fixture
def unpacked(tmp_path: Path) -> Callable[..., Path]:
    """Unpacks such a tar into a folder that lies deep, and tells which."""

    def make(*members: tarfile.TarInfo) -> Path:
        with tarfile.open(tmp_path / "files.tar", "w") as tar:
            for one in members:
                tar.addfile(one, io.BytesIO(CONTENT) if one.isreg() else None)
        place = tmp_path / "a" / "b" / "work"
        place.mkdir(parents=True)
        unpack(tmp_path / "files.tar", place)
        return place

    return make


def test_files_folders_and_links_are_there_as_they_were_sent(unpacked: Callable[..., Path]) -> None:
    place = unpacked(
        folder("./deep"),
        file("deep/er/told"),
        file("/run", 0o4777),
        link("deep/up", "../deep/er/told"),
        link("here", "."),
        link("same", "./deep/er/told", tarfile.LNKTYPE),
        link("same", "same", tarfile.LNKTYPE),
        file("key", 0o600),
    )

    for name in ("deep/er/told", "run", "deep/up", "here/run", "same"):
        assert (place / name).read_bytes() == CONTENT
    assert [(place / name).stat().st_mode & 0o7777 for name in ("run", "same", "key")] == [0o755, 0o644, 0o600]
    assert (place / "same").samefile(place / "deep/er/told")


def test_what_comes_twice_is_as_it_came_last(unpacked: Callable[..., Path]) -> None:
    place = unpacked(link("told", "elsewhere"), file("told"), folder("deep"), folder("deep"))

    assert (place / "told").read_bytes() == CONTENT
    assert sorted(one.name for one in place.iterdir()) == ["deep", "told"]


@pytest.mark.parametrize(
    "members",
    [
        [file("../evil")],
        [file("deep/../../evil")],
        [link("out", ".."), file("out/evil")],
        [link("out", "/"), file("out/evil")],
        [link("out", "")],
        [link("deep/out", "../..")],
        [link("here", "."), link("out", "here/here/../..")],
        [link("here", "."), file("here/evil")],
        [link("here", "."), folder("here")],
        [file("told"), file("told/evil")],
        [file("told"), folder("told")],
        [folder("deep"), file("deep")],
        [link("loop", "loop"), link("evil", "loop", tarfile.LNKTYPE)],
        [link("evil", "/etc/passwd", tarfile.LNKTYPE)],
        [link("same", "same", tarfile.LNKTYPE)],
        [link("evil", "", tarfile.FIFOTYPE)],
        [link("evil", "", tarfile.CHRTYPE)],
        [file(".")],
        [file("a" * 300)],
        [link("long", "a" * 5000)],
        [file("é\0/evil")],
    ],
)
def test_what_would_leave_the_folder_or_has_no_place_is_refused(
    unpacked: Callable[..., Path], tmp_path: Path, members: list[tarfile.TarInfo]
) -> None:
    with pytest.raises(tarfile.TarError):
        unpacked(*members)

    assert not any(one.name == "evil" for one in tmp_path.rglob("*"))


def test_a_file_takes_the_place_of_a_link_that_was_there(tmp_path: Path, unpacked: Callable[..., Path]) -> None:
    place = unpacked()
    (tmp_path / "outside").write_bytes(b"kept")
    (place / "told").symlink_to(tmp_path / "outside")
    with tarfile.open(tmp_path / "files.tar", "w") as tar:
        tar.addfile(file("told"), io.BytesIO(CONTENT))

    unpack(tmp_path / "files.tar", place)

    assert (place / "told").read_bytes() == CONTENT
    assert (tmp_path / "outside").read_bytes() == b"kept"


def test_a_sparse_file_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    with (tmp_path / "holes").open("wb") as made:
        made.truncate(40 << 20)
    subprocess.run(["tar", "-cSf", "files.tar", "holes"], cwd=tmp_path, check=True)
    (tmp_path / "work").mkdir()

    with pytest.raises(tarfile.TarError, match="holes is sparse"):
        unpack(tmp_path / "files.tar", tmp_path / "work")


@pytest.mark.parametrize("kind", ["xz", "bz2"])
def test_a_damaged_archive_is_told(tmp_path: Path, kind: str) -> None:
    with tarfile.open(tmp_path / "files.tar", f"w:{kind}") as tar:  # type: ignore[call-overload]
        one = tarfile.TarInfo("told")
        one.size = 1 << 20
        tar.addfile(one, io.BytesIO(os.urandom(1 << 19).hex().encode()))
    content = bytearray((tmp_path / "files.tar").read_bytes())
    content[len(content) // 2 : len(content) // 2 + 64] = b"x" * 64
    (tmp_path / "files.tar").write_bytes(content)
    (tmp_path / "work").mkdir()

    with pytest.raises(tarfile.TarError):
        unpack(tmp_path / "files.tar", tmp_path / "work")


def endless() -> bytes:
    """An archive whose second file has a negative size, so that the first one follows it again."""
    told = file("told")
    again = tarfile.TarInfo("again")
    again.size = -2 * tarfile.BLOCKSIZE
    return told.tobuf(tarfile.GNU_FORMAT) + CONTENT.ljust(tarfile.BLOCKSIZE, b"\0") + again.tobuf(tarfile.GNU_FORMAT)


def nested() -> bytes:
    """Three thousand long names of long names."""
    one = tarfile.TarInfo("told")
    one.type = tarfile.GNUTYPE_LONGNAME
    one.size = 5
    return (one.tobuf(tarfile.GNU_FORMAT) + b"deep\0".ljust(tarfile.BLOCKSIZE, b"\0")) * 3000


def huge() -> bytes:
    """A long name that is longer than any memory."""
    one = tarfile.TarInfo("told")
    one.type = tarfile.GNUTYPE_LONGNAME
    one.size = 1 << 80
    return one.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("made", [endless, nested, huge])
@pytest.mark.timeout(20)
def test_headers_that_nobody_writes_are_refused(tmp_path: Path, made: Callable[[], bytes]) -> None:
    (tmp_path / "files.tar").write_bytes(made() + bytes(tarfile.RECORDSIZE))
    (tmp_path / "work").mkdir()

    with pytest.raises(tarfile.TarError):
        unpack(tmp_path / "files.tar", tmp_path / "work")


def test_an_archive_that_is_not_there_is_not_called_a_bad_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unpack(tmp_path / "files.tar", tmp_path)
