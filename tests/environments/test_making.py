"""What cannot be made of packages is told in one sentence, and nothing of it is kept: by an index of the test's own."""

from __future__ import annotations

import shutil
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from environments.debian import lock
from environments.debian.make import AskedDebian
from environments.debian.together import AskedTogether
from environments.errors import EnvError
from environments.make import Asked
from environments.making import make
from environments.manifest import DEB, Manifest
from environments.squash import unsquash
from environments.store import PART, Meaning
from tests.environments.test_debian import build
from tests.environments.test_image import Kept

HERE, ANY = "py3-none-manylinux_2_17_x86_64", "py3-none-any"


def write_wheel(folder: Path, name: str, tag: str, version: str = "1.0", requires: Sequence[str] = ()) -> None:
    """Put a package without any module into an index."""
    place, about = folder / "simple" / name, f"{name}-{version}.dist-info"
    place.mkdir(parents=True, exist_ok=True)
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    with zipfile.ZipFile(place / f"{name}-{version}-{tag}.whl", "w") as wheel:
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        wheel.writestr(f"{about}/RECORD", "")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *_: object) -> None: ...


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the only index that uv and pip know."""
    folder = tmp_path / "index"
    (folder / "simple").mkdir(parents=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/simple"
        for name, value in {
            "UV_DEFAULT_INDEX": url,
            "PIP_INDEX_URL": url,
            "UV_CACHE_DIR": str(tmp_path / "uv"),
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
        yield folder
        server.shutdown()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("other", r"^other==1.0 has no wheel for Python 3.11 on x86_64 with glibc 2.36: "),
        ("below", r"^other==1.0 has no wheel for Python 3.11 on x86_64 with glibc 2.36: "),
        ("newer", r"^newer==1.0 has no wheel for Python 3.11 on x86_64 with glibc 2.36: "),
        ("source", r"^source==1.0 has no wheel for Python 3.11 on x86_64 with glibc 2.36: "),
        ("here==1.0\nhere==2.0", r"^these packages do not go together: Because you require here==1.0 and here==2.0, "),
        ("nothing", r"^these packages do not go together: Because nothing was not found in the package registry "),
    ],
)
def test_packages_that_cannot_be_had_are_named_and_nothing_is_kept(
    index: Path, scratch: Path, tmp_path: Path, asked: str, said: str
) -> None:
    write_wheel(index, "here", HERE)
    write_wheel(index, "here", HERE, version="2.0")
    write_wheel(index, "other", "py3-none-manylinux_2_17_aarch64")
    write_wheel(index, "below", ANY, requires=["other"])
    write_wheel(index, "newer", "py3-none-manylinux_2_39_x86_64")
    (index / "simple" / "source").mkdir()
    (index / "simple" / "source" / "source-1.0.tar.gz").touch()
    store = Kept(tmp_path / "kept")
    store.folder.mkdir()

    with pytest.raises(EnvError, match=said) as caught:
        make(store, Asked("tools", "1", f"{asked}\n"), lambda _: None)

    assert "\n" not in str(caught.value)
    assert list(store.folder.iterdir()) == list(scratch.iterdir()) == [] and not store.added


def test_a_lock_whose_package_is_for_another_architecture_is_refused(
    index: Path, scratch: Path, tmp_path: Path
) -> None:
    write_wheel(index, "other", "py3-none-manylinux_2_17_aarch64")
    lock = f"other==1.0 --hash=sha256:{'0' * 64}\n"

    with pytest.raises(EnvError, match=r"^the packages cannot be fetched: .*No matching distribution .* other==1.0"):
        make(Locked(tmp_path), Asked("tools", "1", lock, is_lock=True), lambda _: None)

    assert list(scratch.iterdir()) == []


class Locked(Kept):
    """A store that has no package of a lock."""

    def list_all(self) -> list[Meaning]:
        return []


class Debian(Kept):
    """A store that has the packages of a system already."""

    def keep(self, *files: Path) -> str:
        """Keep packages; their lock."""
        self.packages = [lock.package_of(file) for file in files]
        for file in files:
            self.put(file, DEB)
        return lock.write(self.packages)

    def list_all(self) -> list[Meaning]:
        return [Meaning("1", Manifest("system", "1", "", [], packages=self.packages), 0.0)]

    def get(self, sha256: str, kind: str, target: Path) -> None:
        shutil.copy(self.folder / f"{sha256}.{kind}", target)


@pytest.fixture
def debian(tmp_path: Path) -> Debian:
    store = Debian(tmp_path / "kept")
    store.folder.mkdir()
    return store


def test_packages_of_python_and_a_system_are_two_parts(index: Path, debian: Debian, tmp_path: Path) -> None:
    write_wheel(index, "here", HERE)
    system = build(tmp_path, "python3.11", {"usr/bin/python3.11": ("", 0o755), "etc/issue": ("ours", 0o644)})
    asked = AskedTogether(AskedDebian("both", "1", locked=debian.keep(system)), Asked("both", "1", "here\n"))

    made, again = make(debian, asked, lambda _: None), make(debian, asked, lambda _: None)

    one = made.manifest
    assert (made.is_new, again.is_new, again.manifest) == (True, False, one)
    assert [part.at for part in one.parts] == ["/", "/opt/env"] and one.python == "3.11"
    assert [(package.name, package.kind) for package in one.packages] == [("here", "whl"), ("python3.11", "deb")]
    for number, part in enumerate(one.parts):
        unsquash(debian.folder / f"{part.sha256}.{PART}", tmp_path / f"tree{number}")
    assert (tmp_path / "tree0/etc/issue").read_text() == "ours"
    assert str((tmp_path / "tree1/bin/python").readlink()) == "/usr/bin/python3.11"
    assert (tmp_path / "tree1/lib/python3.11/site-packages/here-1.0.dist-info").is_dir()


def test_a_system_without_the_python_of_the_packages_is_refused(index: Path, debian: Debian, tmp_path: Path) -> None:
    write_wheel(index, "here", HERE)
    locked = debian.keep(build(tmp_path, "other", {"usr/bin/python3.13": ("", 0o755)}))
    asked = AskedTogether(AskedDebian("both", "1", locked=locked), Asked("both", "1", "here\n"))

    with pytest.raises(EnvError, match=r"the system has no /usr/bin/python3\.11, which the packages need"):
        make(debian, asked, lambda _: None)

    assert AskedTogether(AskedDebian("both", "1", ["hello"]), asked.packages).digest != asked.digest
