"""Folders become the same bytes each time, and what a box may not be given is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from environments.errors import EnvError
from environments.squash import squash


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file, a link to it, a link to that, and one that leads to a file of the node."""
    made = tmp_path / "tree"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "python").symlink_to("/usr/bin/python3")
    (made / "bin" / "python3").symlink_to("python")
    (made / "word").write_text("found")
    (made / "again").symlink_to("bin/../word")
    return made


def test_the_same_folder_makes_the_same_bytes_whenever_and_whoever_makes_it(tree: Path, tmp_path: Path) -> None:
    squash(tree, tmp_path / "one.sqfs")
    os.utime(tree / "word", (1, 1))
    os.chown(tree / "word", 1, 1)
    (tree / "word").chmod(0o600)
    (tree / "bin").chmod(0o700)
    squash(tree, tmp_path / "two.sqfs")
    for path, mode in ((tree, 0o775), (tree / "word", 0o664), (tree / "bin", 0o775)):
        path.chmod(mode)
    squash(tree, tmp_path / "three.sqfs")

    one, two, three = ((tmp_path / f"{name}.sqfs").read_bytes() for name in ("one", "two", "three"))
    assert one == two == three
    listed = subprocess.run(["unsquashfs", "-lls", tmp_path / "one.sqfs"], capture_output=True, text=True, check=True)
    assert "again -> bin/../word" in listed.stdout and "bin/python -> /usr/bin/python3" in listed.stdout


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda tree: (tree / "word").chmod(0o4755), "word has a setuid or setgid bit"),
        (lambda tree: (tree / "bin").chmod(0o2755), "bin has a setuid or setgid bit"),
        (lambda tree: (tree / "out").symlink_to("../other"), "out leads out of the environment"),
        (lambda tree: (tree / "bin" / "out").symlink_to("../../other"), "bin/out leads out of the environment"),
        (lambda tree: os.mkfifo(tree / "pipe"), "pipe is not a file, folder or link"),
    ],
)
def test_what_a_box_may_not_be_given_is_refused(tree: Path, tmp_path: Path, spoil: object, said: str) -> None:
    spoil(tree)  # type: ignore[operator]

    with pytest.raises(EnvError, match=said):
        squash(tree, tmp_path / "one.sqfs")
    assert not (tmp_path / "one.sqfs").exists()
