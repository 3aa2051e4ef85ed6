"""The rate at which a disk is read: on this machine's real disk, and with a dd that says what it likes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAME = "disk_sequential_read_bytes_per_second"
FILE = ".nodewise_read_rate"
BYTES = 4 * 1024 * 1024

Collect = Callable[..., Any]


def test_the_rate_is_of_an_own_file_that_is_written_once_and_read_past_the_cache(
    collect: Collect, tools: dict[str, str], tmp_path: Path
) -> None:
    runs = [collect(NAME, **tools) for _ in range(2)]
    if runs[0].is_no_data:
        pytest.skip(f"this file system cannot do that: {runs[0].stderr}")
    file = tmp_path / "state" / NAME / FILE
    written = file.stat()
    runs.append(collect(NAME, **tools))

    assert all(1e4 < int(run.stdout) < 1e13 for run in runs)
    assert written.st_size == BYTES
    assert written.st_blocks * 512 >= BYTES, "a file with holes is read from nowhere"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_the_directory_of_the_data_can_be_named(collect: Collect, tmp_path: Path) -> None:
    data = tmp_path / "the data"
    data.mkdir()
    run = collect(NAME, str(data))

    assert (data / FILE).stat().st_size == BYTES
    assert not (tmp_path / "state" / NAME / FILE).exists()
    assert run.is_no_data or int(run.stdout) > 0


def test_a_file_that_is_too_short_is_written_anew(collect: Collect, tmp_path: Path) -> None:
    file = tmp_path / "state" / NAME / FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x" * 1000)
    collect(NAME)

    assert file.stat().st_size == BYTES


@pytest.mark.parametrize("place", ["/no/such/place", "/proc"])
def test_a_place_that_cannot_be_measured_is_a_failure_that_names_it(collect: Collect, place: str) -> None:
    run = collect(NAME, place)

    assert (run.stdout, run.status) == ("", 1)
    assert place in run.stderr


@pytest.mark.parametrize("make", [lambda file: file.symlink_to("precious"), os.mkfifo, Path.mkdir])
def test_what_is_no_plain_file_is_neither_read_nor_written(
    collect: Collect, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    target = tmp_path / "precious"
    target.write_text("words")
    make(tmp_path / FILE)
    run = collect(NAME, str(tmp_path))

    assert (run.stdout, run.status) == ("", 1)
    assert f"{tmp_path / FILE} is not a plain file" in run.stderr
    assert target.read_text() == "words"


@pytest.mark.parametrize("name", [FILE, f"{FILE}.n1"])
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_nothing_is_written_through_a_link(
    collect: Collect, tmp_path: Path, link: Callable[[Path, Path], None], name: str
) -> None:
    target = tmp_path / "precious"
    target.write_text("words")
    link(target, tmp_path / name)
    collect(NAME, str(tmp_path), NODE_NAME="n1")

    assert target.read_text() == "words"
    assert [file.name for file in tmp_path.glob(f"{FILE}.*")] == []


def test_two_runs_at_once_do_not_meet_each_other_s_half_written_file(collect: Collect, tmp_path: Path) -> None:
    (tmp_path / f"{FILE}.n2").write_text("half")
    collect(NAME, str(tmp_path), NODE_NAME="n1")

    assert (tmp_path / FILE).stat().st_size == BYTES
    assert (tmp_path / f"{FILE}.n2").read_text() == "half"


@pytest.fixture
def lying(tools: dict[str, str], tmp_path: Path) -> Callable[..., dict[str, str]]:
    """lying(TEXT, status): an environment whose dd writes as it should, and says TEXT when it reads past the cache."""

    def write(said: str, status: int = 0) -> dict[str, str]:
        (tmp_path / "said").write_text(said)
        dd = tmp_path / "bin" / "dd"
        dd.write_text(
            f'#!/bin/sh\ncase "$*" in *direct*) cat "{tmp_path}/said" >&2; exit {status} ;; esac\n'
            f'PATH={os.environ["PATH"]} exec dd "$@"\n'
        )
        dd.chmod(0o755)
        return tools

    return write


GNU = "4+0 records in\n4+0 records out\n4194304 bytes (4.2 MB, 4.0 MiB) copied, {}, 198 MB/s\n"


@pytest.mark.parametrize(
    ("said", "rate"),
    [
        (GNU.format("0.5 s"), 8_388_608),
        (GNU.format("4.2e-05 s"), 99_864_380_952),
        ("4+0 records in\n4+0 records out\n4194304 bytes (4.0MB) copied, 2.000000 seconds, 2.0MB/s\n", 2_097_152),
    ],
)
def test_what_dd_tells_becomes_bytes_per_second(
    collect: Collect, lying: Callable[..., dict[str, str]], said: str, rate: int
) -> None:
    assert collect(NAME, **lying(said)).stdout == f"{rate}\n"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "words\n",
        GNU.format("0 s"),
        GNU.format("0.0 s"),
        GNU.format("-1 s"),
        GNU.format("nan s"),
        GNU.format("inf s"),
        GNU.format("1e-300 s"),
        GNU.format("1e9 s"),
        GNU.format("s"),
        GNU.format("0,5 s"),
        GNU.format("0.5 s").replace("4194304 bytes", "4194303 bytes"),
        GNU.format("0.5 s").replace("4194304 bytes", "0 bytes"),
        "4+0 records in\n4+0 records out\n",
    ],
)
def test_what_makes_no_sense_is_no_data_with_what_was_said(
    collect: Collect, lying: Callable[..., dict[str, str]], said: str
) -> None:
    run = collect(NAME, **lying(said))

    assert run.is_no_data
    assert (said.splitlines() or [""])[-1] in run.stderr


def test_a_file_system_that_cannot_be_read_past_the_cache_is_no_data_and_never_the_cache_s_rate(
    collect: Collect, lying: Callable[..., dict[str, str]]
) -> None:
    run = collect(NAME, **lying("dd: failed to open 'x': Invalid argument\n", status=1))

    assert run.is_no_data
    assert "past the page cache" in run.stderr
    assert "Invalid argument" in run.stderr


def test_a_full_disk_is_a_failure_and_nothing_half_written_stays(collect: Collect, tmp_path: Path) -> None:
    dd = tmp_path / "bin" / "dd"
    dd.parent.mkdir()
    dd.write_text('#!/bin/sh\necho half\n'
                  'echo "dd: error writing: No space left on device" >&2\nexit 1\n')  # fmt: skip
    dd.chmod(0o755)
    run = collect(NAME, PATH=f"{dd.parent}:{os.environ['PATH']}")

    assert (run.stdout, run.status) == ("", 1)
    assert "No space left" in run.stderr
    assert not list((tmp_path / "state" / NAME).glob(".*"))
