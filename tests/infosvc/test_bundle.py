from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infosvc import wire as wire_package
from infosvc.shipping.bundle import build, catalog
from infosvc.shipping.catalog import in_turns
from infosvc.wire.errors import Conflict
from infosvc.wire.records import Kind, Scope, check_name
from tests.sources import imported, texts


def test_equal_sources_give_equal_bytes_and_the_same_version(tmp_path: Path) -> None:
    first, second = build(tmp_path / "one"), build(tmp_path / "two")

    assert (first.manifest, first.version) == (second.manifest, second.version)
    assert (first.directory / "agent.pyz").read_bytes() == (second.directory / "agent.pyz").read_bytes()


def test_the_manifest_names_every_file_with_its_digest(tmp_path: Path) -> None:
    bundle = build(tmp_path / "files")
    there = {p.relative_to(bundle.directory).as_posix(): p for p in bundle.directory.rglob("*") if p.is_file()}

    assert json.loads(there.pop("manifest.json").read_text()) == bundle.manifest
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in there.items()} == bundle.manifest
    assert {"agent.pyz", "scripts/_lib.sh", "scripts/load_1m.sh", "processors/perf_cpu.py"} <= set(bundle.manifest)


def test_the_agent_carries_the_wire_and_nothing_of_the_server(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build(tmp_path / "files").directory / "agent.pyz").namelist()

    wire = Path(wire_package.__file__).parent
    assert {name for name in names if name.startswith("infosvc/")} == {
        "infosvc/__init__.py",
        *(f"infosvc/wire/{file.relative_to(wire)}" for file in wire.rglob("*.py")),
    }
    assert not [name for name in names if "__pycache__" in name]


def test_the_agent_runs_on_a_python_that_has_nothing_but_its_standard_library(tmp_path: Path) -> None:
    agent = build(tmp_path / "files").directory / "agent.pyz"
    helped = subprocess.run(
        [sys.executable, "-I", "-S", str(agent), "--help"], capture_output=True, text=True, check=False
    )

    assert helped.returncode == 0, helped.stderr
    assert "--settings" in helped.stdout


def test_all_of_the_wire_is_imported_by_a_python_that_has_nothing_but_its_standard_library(tmp_path: Path) -> None:
    agent = build(tmp_path / "files").directory / "agent.pyz"
    names = [name for name in zipfile.ZipFile(agent).namelist() if name.startswith("infosvc/wire/")]
    modules = [name.removesuffix(".py").replace("/", ".") for name in names if not name.endswith("__init__.py")]
    program = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1]); "
        "[importlib.import_module(name) for name in sys.argv[2:]]"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(agent), *modules], capture_output=True, text=True, check=False
    )

    assert {"infosvc.wire.client", "infosvc.wire.http_server", "infosvc.wire.service_options"} <= set(modules)
    assert (ran.returncode, ran.stderr) == (0, "")


def of_others(text: str) -> set[str]:
    """What a source imports beside the standard library and the wire."""
    found = {name for name in imported(text) if name.split(".")[0] not in sys.stdlib_module_names}
    return {name for name in found if not f"{name}.".startswith("infosvc.wire.")}


def test_no_function_of_the_wire_imports_more_than_the_standard_library() -> None:
    found = {path: of_others(text) for path, text in texts("infosvc/wire").items()}

    assert {path: names for path, names in found.items() if names} == {}
    assert of_others("def f():\n    import yaml, json.decoder\n    from infosvc.wire import errors") == {"yaml"}
    assert of_others("from infosvc import wire, data") == {"infosvc", "infosvc.data"}


def test_the_bundle_is_built_without_running_code_of_other_rooms(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from infosvc.shipping import bundle; bundle.catalog(); "
        "bundle.build(pathlib.Path(sys.argv[1])); print(sorted({'collectors', 'hadoop', 'jobs'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "files")], capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


def test_the_catalogue_is_what_the_service_can_register() -> None:
    entries = {entry.producer.data_name: entry for entry in catalog()}

    assert [check_name(name) for name in entries]
    assert entries["cpu_free_ratio"].autostart
    assert entries["perf_cpu"].producer.kind is Kind.PROCESSOR
    assert entries["access_cost"].producer.scope is Scope.CLUSTER
    assert not entries["access_cost"].autostart
    assert all(entry.producer.time_max > 0 for entry in entries.values())


def test_an_emitted_name_has_its_own_words_and_the_times_of_what_emits_it() -> None:
    entries = {entry.producer.data_name: entry for entry in catalog()}
    parent, emitted = entries["memory_usage"].producer, entries["memory_available_bytes"].producer

    assert emitted.kind is Kind.EMITTED
    assert (emitted.cmd, emitted.time_max, emitted.timeout) == (parent.cmd, parent.time_max, parent.timeout)
    assert (emitted.unit, emitted.keep) == ("bytes", 3600)
    assert (emitted.emits, emitted.inputs) == ((), ())
    assert emitted.help != parent.help


def test_only_what_runs_in_a_slot_starts_by_itself() -> None:
    started = [entry.producer for entry in catalog() if entry.autostart]

    assert len(started) >= 10
    assert all(producer.kind.in_slot for producer in started)


def test_what_ships_is_registered_after_all_that_it_needs() -> None:
    producers = [entry.producer for entry in catalog()]
    before: set[str] = set()
    for turn in in_turns(producers):
        for producer in turn:
            parents = {other.data_name for other in producers if producer.data_name in other.emits}
            assert {*producer.inputs, *parents} <= before, producer.data_name
        before |= {producer.data_name for producer in turn}

    assert before == {producer.data_name for producer in producers}


def test_the_archive_holds_what_the_manifest_says_and_the_manifest(tmp_path: Path) -> None:
    bundle = build(tmp_path / "files")
    archive = zipfile.ZipFile(io.BytesIO(bundle.archive))
    digests = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}

    assert digests.pop("manifest.json").startswith(bundle.version)
    assert digests == bundle.manifest


def test_own_files_lie_beside_those_that_ship_and_change_the_version(tmp_path: Path) -> None:
    own = tmp_path / "own"
    for name in ("scripts/mine.sh", "scripts/notes.txt", "processors/mine.py", "processors/__init__.py"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text("")
    shipped, both = build(tmp_path / "one"), build(tmp_path / "two", own)

    assert set(both.manifest) - set(shipped.manifest) == {"scripts/mine.sh", "processors/mine.py"}
    assert both.version != shipped.version


def test_an_own_file_takes_the_place_of_one_that_ships_only_when_told(tmp_path: Path) -> None:
    (tmp_path / "own" / "scripts").mkdir(parents=True)
    (tmp_path / "own" / "scripts" / "_lib.sh").write_text("mine\n")

    with pytest.raises(Conflict, match=r"scripts/_lib\.sh"):
        build(tmp_path / "one", tmp_path / "own")
    assert (build(tmp_path / "two", tmp_path / "own", True).directory / "scripts" / "_lib.sh").read_text() == "mine\n"
