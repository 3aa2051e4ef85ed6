"""Parts become layers of images: the same bytes each time, and all that a program may read, it may read there."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from environments.errors import EnvError
from environments.layer import write_layer
from environments.squash import squash


def part_of(tree: Path) -> Path:
    target = tree.with_suffix(".sqfs")
    squash(tree, target)
    return target


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "tool").write_text("run")
    (made / "bin" / "tool").chmod(0o700)
    (made / "own").write_text("words")
    (made / "own").chmod(0o640)
    os.link(made / "own", made / "same")
    (made / "link").symlink_to("bin/tool")
    return made


def test_a_layer_has_the_files_at_their_folder_and_hides_what_an_image_has_there(tmp_path: Path, tree: Path) -> None:
    write_layer(part_of(tree), "/opt/env", tmp_path / "layer.tar")

    with tarfile.open(tmp_path / "layer.tar") as read:
        found = {one.name: one for one in read}
        assert (content := read.extractfile("opt/env/same")) and content.read() == b"words"
    assert list(found) == [
        "opt",
        "opt/env",
        "opt/env/.wh..wh..opq",
        "opt/env/bin",
        "opt/env/bin/tool",
        "opt/env/link",
        "opt/env/own",
        "opt/env/same",
    ]
    assert {name: found[f"opt/env/{name}"].mode for name in ("bin", "bin/tool", "own")} == {
        "bin": 0o755,
        "bin/tool": 0o755,
        "own": 0o644,
    }
    assert (found["opt"].mode, found["opt/env"].mode) == (0o755, 0o755)
    assert found["opt/env/same"].linkname == "opt/env/own" and found["opt/env/link"].linkname == "bin/tool"
    assert {(one.uid, one.gid, one.uname, one.mtime) for one in found.values()} == {(0, 0, "", 0)}


def test_a_root_has_no_folder_of_its_own_and_hides_nothing(tmp_path: Path, tree: Path) -> None:
    write_layer(part_of(tree), "/", tmp_path / "layer.tar")

    with tarfile.open(tmp_path / "layer.tar") as read:
        assert read.getnames() == ["bin", "bin/tool", "link", "own", "same"]


def test_the_same_part_is_the_same_layer_whoever_makes_it(tmp_path: Path, tree: Path) -> None:
    part = part_of(tree)
    write_layer(part, "/opt/env", tmp_path / "one.tar")
    before = os.umask(0o077)
    try:
        write_layer(part, "/opt/env", tmp_path / "two.tar")
    finally:
        os.umask(before)

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_what_no_layer_can_hold_is_refused(tmp_path: Path, tree: Path) -> None:
    (tree / "bin" / ".wh.tool").write_text("")

    with pytest.raises(EnvError, match=r"bin/\.wh\.tool cannot be in an image"):
        write_layer(part_of(tree), "/opt/env", tmp_path / "layer.tar")
    (tmp_path / "no.sqfs").write_text("words")
    with pytest.raises(EnvError, match=r"no\.sqfs cannot be unpacked"):
        write_layer(tmp_path / "no.sqfs", "/", tmp_path / "layer.tar")
