"""The code that travels with a job: it is complete, and nodes need not compile it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hadoop.installation import ROOT
from jobs.code_archive import code_zip
from jobs.own_cache import MOST_KEPT

WORKER_PYTHON = ROOT / ".venv-worker" / "bin" / "python"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are kept; none is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nodewise"


def find_file(content: bytes, folder: Path, module: str, python: Path = Path(sys.executable)) -> str:
    """Where a module comes from, if nothing but the archive has it."""
    (folder / "code.zip").write_bytes(content)
    check = (
        f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT)!r}]; import {module} as m; print(m.__file__)"
    )
    words, environment = [str(python), "-c", check], {"PYTHONPATH": "code.zip"}
    found = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return str(found.stdout).strip().removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("python", "module"),
    [(Path(sys.executable), "jobs.kinds.__main__"), (WORKER_PYTHON, "jobs.worker.__main__")],
    ids=["application master", "worker"],
)
@pytest.mark.usefixtures("cache")
def test_entry_points_are_imported_from_it_alone_as_bytecode(python: Path, module: str, tmp_path: Path) -> None:
    assert find_file(code_zip(), tmp_path, module, python) == f"code.zip/{module.replace('.', '/')}.pyc"


def test_it_is_made_once_and_the_same_each_time(cache: Path) -> None:
    first = code_zip()
    (kept,) = cache.glob("code-*.zip")
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (first, 0o600)
    before = kept.stat().st_mtime_ns

    assert code_zip() == first
    assert kept.stat().st_mtime_ns == before

    kept.unlink()
    assert code_zip() == first


def test_another_python_uses_the_sources(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "MAGIC_NUMBER", b"none")

    assert find_file(code_zip(), tmp_path, "jobs.errors") == "code.zip/jobs/errors.py"


@pytest.mark.parametrize("place", ["a file", "nowhere", "others may write", "no home"])
def test_where_nothing_can_be_kept_it_has_the_sources_alone(
    place: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir()
    if place == "a file":
        cache.touch()
    if place == "nowhere":
        cache.symlink_to(tmp_path / "gone")
    if place == "others may write":
        cache.mkdir()
        cache.chmod(0o777)
    if place == "no home":
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which is nowhere
        monkeypatch.setattr(Path, "expanduser", refuse)

    assert find_file(code_zip(), tmp_path, "jobs.errors") == "code.zip/jobs/errors.py"


def refuse(path: Path) -> Path:
    raise RuntimeError("there is no home")


@pytest.mark.parametrize("is_link", [False, True])
def test_what_others_may_have_written_is_not_used_and_replaced(cache: Path, tmp_path: Path, is_link: bool) -> None:
    whole = code_zip()
    (kept,) = cache.glob("code-*.zip")
    kept.unlink()
    foreign = tmp_path / "foreign" if is_link else kept
    foreign.write_bytes(b"something else")
    foreign.chmod(0o644 if is_link else 0o666)
    if is_link:
        kept.symlink_to(foreign)

    assert code_zip() == whole
    assert not kept.is_symlink() and kept.read_bytes() == whole


def test_what_is_kept_is_of_the_present_sources(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code_zip()
    monkeypatch.setattr("jobs.code_archive.ROOMS", ("jobs",))

    assert b"locality/types.py" not in code_zip()
    assert len(list(cache.glob("code-*.zip"))) == 2


def test_few_are_kept(cache: Path) -> None:
    cache.mkdir(parents=True)
    for number in range(MOST_KEPT + 2):
        (cache / f"code-{number}.zip").touch()
        os.utime(cache / f"code-{number}.zip", (number, number))
    for name, at in ((".code-1.zip-left", 0.0), (".code-1.zip-begun", time.time())):
        (cache / name).touch()
        os.utime(cache / name, (at, at))

    code_zip()

    left = {one.name for one in cache.iterdir()}
    assert len(left) == MOST_KEPT + 1
    assert {"code-0.zip", "code-1.zip", "code-2.zip", ".code-1.zip-left"}.isdisjoint(left)
