"""Debian's packages become one root, the same bytes each time, and what apt cannot bring is told in one sentence."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from environments.debian import apt, lock
from environments.debian.tree import unpack
from environments.errors import EnvError
from environments.manifest import Package
from environments.squash import squash

POSTINST = """#!/bin/sh
touch /ran
update-alternatives --install /usr/bin/tool tool \\
    /usr/bin/{name}-tool {priority} --slave /usr/share/man/tool tool.man /usr/share/{name}-man
update-alternatives --install "$WHERE"/other other /usr/bin/{name}-tool 10
update-alternatives --install /usr/bin/kept kept /usr/bin/{name}-tool 99
"""


def build(folder: Path, name: str, files: dict[str, tuple[str, int]], priority: int = 10) -> Path:
    """A package of these files, content and mode each, with a script that asks for alternatives."""
    tree = folder / name
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <a@b>\nDescription: none\n"
    for path, (content, mode) in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(content)
        (tree / path).chmod(mode)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(control)
    (tree / "DEBIAN/postinst").write_text(POSTINST.format(name=name, priority=priority))
    (tree / "DEBIAN/postinst").chmod(0o755)
    made = folder / f"{name}_1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, made], capture_output=True, check=True)
    return made


@pytest.fixture
def packages(tmp_path: Path) -> list[Path]:
    """Two packages that have the same tool, one with a setuid file, both with files beside and below /usr."""
    one = {
        "bin/one-tool": ("first", 0o755),
        "usr/bin/su": ("x", 0o4755),
        "usr/lib/python3.11/word.py": ("A = 1\n", 0o644),
    }
    two = {"usr/bin/two-tool": ("second", 0o755), "usr/share/two-man": ("page", 0o600), "usr/bin/kept": ("kept", 0o755)}
    return [build(tmp_path, "one", one, priority=20), build(tmp_path, "two", two, priority=30)]


def test_packages_become_one_root_without_their_scripts(packages: list[Path], tmp_path: Path) -> None:
    tree = tmp_path / "tree"

    python = unpack(packages, tree)

    assert python == "3.11" and (tree / "usr/lib/python3.11/__pycache__/word.cpython-311.pyc").is_file()
    assert {name: str((tree / name).readlink()) for name in ("bin", "lib")} == {"bin": "usr/bin", "lib": "usr/lib"}
    assert (tree / "usr/bin/one-tool").read_text() == "first"
    assert not (tree / "usr/bin/su").stat().st_mode & 0o7000
    assert str((tree / "usr/bin/tool").readlink()) == "/usr/bin/two-tool", "that of the highest priority"
    assert str((tree / "usr/share/man/tool").readlink()) == "/usr/share/two-man"
    assert (tree / "usr/bin/kept").read_text() == "kept"
    assert not list(tree.rglob("other")) and not list(tree.rglob("ran"))


def test_an_alternative_never_leads_out_of_the_root(tmp_path: Path) -> None:
    package = build(tmp_path, "one", {"usr/bin/one-tool": ("first", 0o755)})
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "one/usr/share").mkdir()
    (tmp_path / "one/usr/share/man").symlink_to(outside)
    (tmp_path / "one/usr/share/one-man").write_text("page")
    subprocess.run(["dpkg-deb", "--build", tmp_path / "one", package], capture_output=True, check=True)

    unpack([package], tmp_path / "tree")

    assert list(outside.iterdir()) == []


def test_a_file_below_a_link_of_another_package_never_leads_out_of_the_root(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    linking, other = build(tmp_path, "linking", {"usr/share/kept/file": ("x", 0o644)}), tmp_path / "other_1_all.deb"
    (tmp_path / "linking/usr/share/out").symlink_to(outside)
    (tmp_path / "linking/usr/share/in").symlink_to("kept")
    subprocess.run(["dpkg-deb", "--build", tmp_path / "linking", linking], capture_output=True, check=True)
    build(tmp_path, "other", {"usr/share/out/file": ("x", 0o644), "usr/share/in/more": ("y", 0o644)})
    _leave_folders_out(tmp_path / "other", other)
    tree = tmp_path / "tree"

    unpack([linking, other], tree)

    assert list(outside.iterdir()) == []
    assert (tree / "usr/share/out/file").read_text() == "x" and not (tree / "usr/share/out").is_symlink()
    assert (tree / "usr/share/kept/more").read_text() == "y", "a link within the root is followed, as dpkg does"


def _leave_folders_out(tree: Path, package: Path) -> None:
    """Build a package anew with nothing but its files, as dpkg-deb itself does not."""
    files = sorted(f"./{one.relative_to(tree)}" for one in (tree / "usr").rglob("*") if one.is_file())
    (tree / "debian-binary").write_text("2.0\n")
    for name, folder, words in (("control", tree / "DEBIAN", ["."]), ("data", tree, files)):
        subprocess.run(["tar", "-C", folder, "-czf", tree / f"{name}.tar.gz", *words], check=True)
    members = ["debian-binary", "control.tar.gz", "data.tar.gz"]
    package.unlink()
    subprocess.run(["ar", "rc", package, *members], cwd=tree, check=True, capture_output=True)


@pytest.mark.parametrize("link", ["usr", "usr/bin", "usr/lib/python3", "usr/lib/python3.11"])
def test_nothing_is_made_in_a_folder_of_this_machine(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    (outside / "lib").mkdir(parents=True)
    (outside / "word.py").write_text("A = 1\n")
    package = build(tmp_path, "one", {"bin/tool": ("x", 0o755), "srv/usr/lib/python3.11/word.py": ("A = 1\n", 0o644)})
    shutil.move(tmp_path / "one/srv/usr", tmp_path / "one/usr")
    shutil.rmtree(tmp_path / "one" / link, ignore_errors=True)
    (tmp_path / "one" / link).symlink_to(outside)
    subprocess.run(["dpkg-deb", "--build", tmp_path / "one", package], capture_output=True, check=True)

    with suppress(EnvError):
        unpack([package], tmp_path / "tree")

    assert sorted(str(one.relative_to(outside)) for one in outside.rglob("*")) == ["lib", "word.py"]


def test_links_into_usr_that_a_package_has_itself_stay(tmp_path: Path) -> None:
    base = build(tmp_path, "base", {"usr/bin/one": ("first", 0o755)})
    (tmp_path / "base/bin").symlink_to("usr/bin")
    subprocess.run(["dpkg-deb", "--build", tmp_path / "base", base], capture_output=True, check=True)

    unpack([base], tmp_path / "tree")

    assert (tmp_path / "tree/bin/one").read_text() == "first" and (tmp_path / "tree/sbin").is_symlink()


@pytest.fixture
def mask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_the_same_packages_make_the_same_bytes_whatever_umask_the_maker_has(
    packages: list[Path], tmp_path: Path, mask: None
) -> None:
    for number, umask in enumerate((0o077, 0o022, 0o002)):
        os.umask(umask)
        unpack(packages, tmp_path / f"tree{number}")
        squash(tmp_path / f"tree{number}", tmp_path / f"{number}.sqfs")

    first, second, third = ((tmp_path / f"{number}.sqfs").read_bytes() for number in range(3))
    assert first == second == third


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("hello-", "'hello-' does not name a package of Debian"),
        ("--help", "'--help' does not name a package of Debian"),
        ("?essential", "does not name a package of Debian"),
        ("hello/sid", "does not name a package of Debian"),
        ("hello:s390x", "hello:s390x is not for this machine, which is "),
        ("no-such-package-here", "have no package no-such-package-here"),
        ("bash=0.1", "have no package bash=0.1"),
    ],
)
def test_what_apt_cannot_bring_is_told(tmp_path: Path, word: str, said: str) -> None:
    with pytest.raises(EnvError) as raised:
        apt.fetch_with_dependencies([word], tmp_path)

    assert said in raised.value.message and raised.value.remedy


def test_packages_that_do_not_go_together_are_told_in_apts_words(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="these packages do not go together") as raised:
        apt.fetch_with_dependencies(["exim4-daemon-light", "postfix"], tmp_path)

    assert "exim4-daemon-light : Conflicts: mail-transport-agent" in raised.value.remedy, raised.value.remedy


def test_a_lock_names_files_and_its_lines_are_told_from_pythons() -> None:
    packages = [
        Package("hello", "2.10-3", "hello_2.10-3_amd64.deb", "a" * 64),
        Package("libstdc++6", "1:12.2.0", "libstdc++6_1%3a12.2.0_all.deb", "b" * 64),
    ]
    text = lock.write(packages)

    assert lock.read(text) == {"hello:amd64=2.10-3": "a" * 64, "libstdc++6:all=1:12.2.0": "b" * 64}
    of_python = f"# of Python\nnumpy==2.4.6 --hash=sha256:{'a' * 64}\n"
    assert lock.split(of_python + text) == ("\n\n" + text, of_python + "\n\n")
    with pytest.raises(EnvError, match="line 2 of the lock"):
        lock.read(text.replace("libstdc++6:all", "libstdc++6"))
    apt.check(["hello:amd64=2.10-3", "libstdc++6:all=1:12.2.0"] if apt.architecture() == "amd64" else [])


def test_a_package_of_a_lock_has_its_hash(tmp_path: Path) -> None:
    (tmp_path / "zlib1g_1%3a1.2-1_amd64.deb").write_bytes(b"")

    found = lock.package_of(tmp_path / "zlib1g_1%3a1.2-1_amd64.deb")

    assert (found.name, found.version, found.kind) == ("zlib1g", "1:1.2-1", "deb")
    assert found.sha256.startswith("e3b0c44298fc1c14")
