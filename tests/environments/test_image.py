"""Images become one folder, layer over layer, and what would leave it or is dangerous is refused."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from environments.errors import EnvError
from environments.image import ARCHITECTURES, unpack
from environments.make_image import AskedImage
from environments.making import make
from environments.manifest import Manifest
from environments.store import Progress, Store
from tests.environments.image_archives import Entry, file, other, save, tar
from tests.jobs.kept_images import lay_out, pack


@pytest.mark.parametrize("is_oci", [False, True])
def test_later_layers_lie_over_earlier_ones(tmp_path: Path, is_oci: bool) -> None:
    lower = [
        other("usr", tarfile.DIRTYPE),
        file("usr/bin/tool", "old", 0o755),
        file("usr/gone", "x"),
        file("var/cache/a", "x"),
        file("etc/kept", "kept"),
        other("bin", tarfile.SYMTYPE, "usr/bin"),
        other("dev/null", tarfile.CHRTYPE),
    ]
    upper = [
        file("usr/bin/tool", "new", 0o755),
        other("usr/bin/again", tarfile.LNKTYPE, "usr/bin/tool"),
        file("usr/.wh.gone"),
        file("var/cache/b", "new"),
        file("var/cache/.wh..wh..opq"),
    ]

    variables = ["PATH=/opt/tools:/usr/bin", "EMPTY=", "TWO=a=b\nc"]

    told = unpack(save(tmp_path, lower, upper, is_oci=is_oci, variables=variables), tmp_path / "tree")

    assert told == {"PATH": "/opt/tools:/usr/bin", "EMPTY": "", "TWO": "a=b\nc"}
    tree = tmp_path / "tree"
    found = {str(one.relative_to(tree)): one.read_text() for one in tree.rglob("*") if one.is_file()}
    assert found == {"usr/bin/tool": "new", "usr/bin/again": "new", "etc/kept": "kept", "var/cache/b": "new"}
    assert str((tree / "bin").readlink()) == "usr/bin" and (tree / "usr/bin/tool").stat().st_mode & 0o777 == 0o755


def test_an_archive_is_read_in_every_form_in_which_tasks_have_images(tmp_path: Path) -> None:
    lay_out(tmp_path / "layout", [tar([file("word", "x" * 5000)])], "+zstd", is_nested=True)
    pack(tmp_path / "layout", tmp_path / "layout.tar")

    unpack(tmp_path / "layout.tar", tmp_path / "tree")

    assert (tmp_path / "tree" / "word").read_text() == "x" * 5000


@pytest.mark.parametrize("content", [b"no tar archive at all", b"\x1f\x8bnot packed", b"\x28\xb5\x2f\xfdnot packed"])
def test_a_layer_in_another_form_is_told(tmp_path: Path, content: bytes) -> None:
    lay_out(tmp_path / "layout", [content], "")
    pack(tmp_path / "layout", tmp_path / "layout.tar")

    with pytest.raises(EnvError, match=r"layout\.tar: (a layer cannot be laid out|its layer 1 cannot be read)"):
        unpack(tmp_path / "layout.tar", tmp_path / "tree")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([file("../out", "x")], "../out lies outside of the image"),
        ([file("a/.wh...")], "lies outside of the image"),
        ([file("usr/bin/su", "x", 0o4755)], "usr/bin/su has a setuid or setgid bit"),
        ([other("usr/disk", tarfile.BLKTYPE)], "usr/disk is not a file, folder or link"),
        ([other("a", tarfile.SYMTYPE, "/tmp"), file("a/b", "x")], "reached through the link a"),
        ([other("a", tarfile.SYMTYPE, "/tmp"), file("a/.wh.b")], None),
        ([other("a", tarfile.LNKTYPE, "../../etc/passwd")], "lies outside of the image"),
        ([other("a", tarfile.LNKTYPE, "b")], "which it does not hold"),
    ],
)
def test_what_leaves_the_image_or_is_special_is_refused(tmp_path: Path, entries: list[Entry], said: str | None) -> None:
    (tmp_path / "b").write_text("of this machine")
    if said is None:
        entries[0][0].linkname = str(tmp_path)
        said = "reached through the link a"
    layers = [[one] for one in entries]

    with pytest.raises(EnvError, match=said):
        unpack(save(tmp_path, *layers), tmp_path / "tree")

    assert sorted(one.name for one in tmp_path.iterdir()) == ["b", "image.tar", "tree"]


def test_a_variable_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="has the variable 'A B=c', which has no name"):
        unpack(save(tmp_path, [file("word")], variables=["A B=c"]), tmp_path / "tree")


def test_what_is_no_image_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "empty.tar").write_bytes(tar([file("word", "x")]))

    with pytest.raises(EnvError, match=r"no environment can be made of .*/text: it is not a tar archive of an image"):
        unpack(tmp_path / "text", tmp_path / "one")
    with pytest.raises(EnvError, match=r"it has no 'index\.json'"):
        unpack(tmp_path / "empty.tar", tmp_path / "two")


@pytest.mark.parametrize("manifest", ["[1]", "{}", '[{"Layers": 1, "Config": "c"}]', '[{"Config": "c"}]', "[" * 10**5])
def test_a_description_in_another_form_is_told(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "image.tar").write_bytes(tar([file("manifest.json", manifest), file("c", "{}")]))

    with pytest.raises(EnvError, match=r"image\.tar"):
        unpack(tmp_path / "image.tar", tmp_path / "tree")


@pytest.mark.parametrize("is_oci", [False, True])
def test_a_damaged_layer_is_told(tmp_path: Path, is_oci: bool) -> None:
    content = bytearray(save(tmp_path, [file("word", "x" * 20_000)], is_oci=is_oci).read_bytes())
    with tarfile.open(tmp_path / "image.tar") as archive:
        layer = archive.getmember("blobs/sha256/" + "0" * 64)
    content[layer.offset_data + (layer.size // 2 if is_oci else 1000)] ^= 1
    (tmp_path / "image.tar").write_bytes(content)

    with pytest.raises(
        EnvError, match=r"image\.tar: (a layer is not the one that the image names|its layer 1 cannot be read)"
    ):
        unpack(tmp_path / "image.tar", tmp_path / "tree")


def test_an_image_of_another_architecture_is_refused(tmp_path: Path) -> None:
    own = ARCHITECTURES.get(platform.machine(), platform.machine())
    unpack(save(tmp_path, [file("word")], architecture=own), tmp_path / "one")

    with pytest.raises(EnvError, match=f"is an image for s390x, and this machine is {own}"):
        unpack(save(tmp_path, [file("word")], architecture="s390x"), tmp_path / "two")


class Kept(Store):
    """A store in a folder of this machine in place of HDFS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.added: dict[str, Manifest] = {}

    def find_asked(self, name: str, asked: str) -> Manifest | None:
        return self.added.get(f"{name} {asked}")

    def point(self, manifest: Manifest) -> None:
        pass

    def put(self, file: Path, kind: str, progress: Progress = lambda _: None) -> str:
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        shutil.copy(file, self.folder / f"{sha256}.{kind}")
        return sha256

    def add(self, manifest: Manifest, asked: str) -> None:
        self.added[f"{manifest.name} {asked}"] = manifest


def test_what_this_machine_cannot_hold_is_told(tmp_path: Path) -> None:
    image = save(tmp_path, [file("w" * 300, "x")])

    with pytest.raises(EnvError, match=r"^tools@1 cannot be made here .*File name too long.*: it needs room in"):
        make(Kept(tmp_path), AskedImage("tools", "1", image), lambda _: None)


def test_an_image_makes_one_part_at_the_root_once(tmp_path: Path) -> None:
    image = save(tmp_path, [file("etc/issue", "of the image")], variables=["LANG=C.UTF-8"])
    store = Kept(tmp_path)

    made = make(store, AskedImage("tools", "1", image), lambda _: None)
    again = make(store, AskedImage("tools", "1", image), lambda _: None)
    elsewhere = make(Kept(tmp_path), AskedImage("tools", "1", image), lambda _: None)

    assert (made.is_new, again.is_new, elsewhere.is_new) == (True, False, True)
    assert made.manifest.digest == again.manifest.digest == elsewhere.manifest.digest
    assert made.manifest.variables == {"LANG": "C.UTF-8"}
    (part,) = made.manifest.parts
    read = subprocess.run(
        ["unsquashfs", "-cat", tmp_path / f"{part.sha256}.sqfs", "etc/issue"], capture_output=True, check=True
    )
    assert (part.at, read.stdout) == ("/", b"of the image")
    assert Manifest.from_bytes(made.manifest.to_bytes(), "here").digest == made.manifest.digest
