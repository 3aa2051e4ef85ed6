from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

from infosvc.bundle import build, catalog
from infosvc.records import Kind, Scope, check_name


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

    assert {name for name in names if name.startswith("infosvc/")} == {
        f"infosvc/{name}.py" for name in ("__init__", "errors", "records", "client")
    }
    assert not [name for name in names if "__pycache__" in name]


def test_the_agent_runs_on_a_python_that_has_nothing_but_its_standard_library(tmp_path: Path) -> None:
    agent = build(tmp_path / "files").directory / "agent.pyz"
    helped = subprocess.run(
        [sys.executable, "-I", "-S", str(agent), "--help"], capture_output=True, text=True, check=False
    )

    assert helped.returncode == 0, helped.stderr
    assert "--settings" in helped.stdout


def test_the_bundle_is_built_without_running_code_of_other_rooms(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from infosvc import bundle; bundle.catalog(); "
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
    assert entries["block_distribution"].producer.scope is Scope.CLUSTER
    assert not entries["block_distribution"].autostart
    assert all(entry.producer.time_max > 0 for entry in entries.values())
    assert all((entry.producer.ttl or 0) >= 3 * entry.producer.time_max for entry in entries.values())
