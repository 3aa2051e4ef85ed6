"""The code that travels with a job: it is complete, and nodes need not compile it."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from hadoop.installation import ROOT
from jobs.code_archive import code_zip
from jobs.kinds import KINDS
from jobs.own_cache import MOST_KEPT
from tests.rooms import ROOMS
from tests.sources import imported, module_of, sources

WORKER_PYTHON = ROOT / ".venv-worker" / "bin" / "python"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where archives are kept; none is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nodewise"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """One with bytecode, made once for all tests that only look into it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return code_zip()


def printed(content: bytes, folder: Path, program: str, python: Path = Path(sys.executable)) -> str:
    """What a program prints that knows our code by the archive alone."""
    (folder / "code.zip").write_bytes(content)
    check = f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT)!r}]; {program}"
    words, environment = [str(python), "-c", check], {"PYTHONPATH": "code.zip"}
    found = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return str(found.stdout).strip()


def find_file(content: bytes, folder: Path, module: str, python: Path = Path(sys.executable)) -> str:
    """Where a module comes from, if nothing but the archive has it."""
    found = printed(content, folder, f"import {module} as m; print(m.__file__)", python)
    return found.removeprefix(f"{folder}/")


@pytest.mark.parametrize(
    ("python", "module"),
    [
        (Path(sys.executable), "jobs.kinds.__main__"),
        (WORKER_PYTHON, "jobs.worker.__main__"),
        (WORKER_PYTHON, "nodewise.learning"),
    ],
    ids=["application master", "worker", "program that trains"],
)
def test_entry_points_are_imported_from_it_alone_as_bytecode(
    python: Path, module: str, archive: bytes, tmp_path: Path
) -> None:
    assert find_file(archive, tmp_path, module, python) == f"code.zip/{module.replace('.', '/')}.pyc"


def test_every_kind_of_job_is_imported_from_it_alone(archive: bytes, tmp_path: Path) -> None:
    program = (
        "from jobs.kinds import KINDS, find_kind; "
        "print(*(sys.modules[find_kind(name).__module__].__file__ for name in KINDS))"
    )
    modules = [place.partition(":")[0] for place in KINDS.values()]

    found = printed(archive, tmp_path, program).split()
    assert found == [f"{tmp_path}/code.zip/{module.replace('.', '/')}.pyc" for module in modules]


def shipped(content: bytes) -> dict[str, str]:
    """The sources in an archive by their modules."""
    files = zipfile.ZipFile(io.BytesIO(content))
    names = [name for name in files.namelist() if name.endswith(".py")]
    return {name.removesuffix(".py").replace("/", "."): files.read(name).decode() for name in names}


def test_what_its_modules_import_of_ours_is_in_it_too(archive: bytes) -> None:
    files = shipped(archive)
    ours = {module_of(path) for path in sources(*ROOMS)}
    left_out = {module.removesuffix(".__init__") for module in ours - set(files)}
    assert "hadoop.local" in left_out

    missing = {(module, name) for module, text in files.items() for name in imported(text) if name in left_out}
    assert missing == set()


def test_none_of_its_functions_imports_what_is_for_terminals(archive: bytes) -> None:
    likely = {module: text for module, text in shipped(archive).items() if "click" in text or "rich" in text}
    for_terminals = {module for module, text in likely.items() for name in imported(text) if is_for_terminals(name)}

    assert for_terminals == set()
    assert [is_for_terminals(name) for name in ("click", "rich.console", "richer")] == [True, True, False]


def is_for_terminals(module: str) -> bool:
    return module.split(".")[0] in ("click", "rich")


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
