"""The contracts between rooms: the tree keeps them, and a forbidden import in any direction breaks the right one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
STACK = "Rooms stand above one another"
SERVICE = "The floors of the service"
WIRE = "Of the service, other rooms know only the wire"
ALONE = "The service imports only itself"
LOCALITY = "Locality knows nothing of ours"
HADOOP = "The floors of what speaks to Hadoop"
JOBS = "The floors of work on YARN"
KINDS = "No kind of job knows another"


# Importer, imported, and the contracts that stand against it.
FORBIDDEN = [
    ("locality.types", "hadoop.errors", {STACK, LOCALITY}),
    ("locality.types", "infosvc.wire.errors", {LOCALITY}),
    ("hadoop.errors", "jobs.errors", {STACK}),
    ("hadoop.errors", "infosvc.settings", {WIRE}),
    ("collectors.peers", "jobs.errors", {STACK}),
    ("collectors.peers", "infosvc.shipping.bundle", {WIRE}),
    ("jobs.errors", "collectors.peers", {STACK}),
    ("jobs.errors", "nodewise.lazy", {STACK}),
    ("jobs.errors", "infosvc.state.configuration", {WIRE}),
    ("infosvc.settings", "jobs.errors", {ALONE}),
    ("infosvc.settings", "collectors.peers", {ALONE}),
    ("infosvc.wire.errors", "infosvc.settings", {SERVICE}),
    ("infosvc.state.writer", "infosvc.http.server", {SERVICE}),
    ("infosvc.access.tokens", "infosvc.registration.rules", {SERVICE}),
    ("infosvc.data.values", "infosvc.core.service", {SERVICE}),
    ("infosvc.http.app", "infosvc.commands.options", {SERVICE}),
    ("hadoop.client.yarn", "hadoop.local.state", {HADOOP}),
    ("jobs.errors", "jobs.commands.job", {JOBS}),
    ("jobs.application.submit", "jobs.itemwork.dealer", {JOBS}),
    ("jobs.itemwork.dealer", "jobs.kinds.classify.request", {JOBS}),
    ("jobs.kinds.command.request", "jobs.kinds.classify.request", {KINDS}),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of every Python file of the product, with the contracts."""
    for room in CONFIG["root_packages"]:
        for file in (ROOT / room).rglob("*.py"):
            if "target" not in file.parts:
                target = tmp_path / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


def plant(tree: Path, importer: str, imported: str) -> None:
    """Write an import at the end of a module of the copy."""
    file = (tree / importer.replace(".", "/")).with_suffix(".py")
    file.write_text(f"{file.read_text()}\nimport {imported}\n")


def broken(tree: Path) -> dict[str, str]:
    """What the linter says of each contract that the copy breaks, by its name."""
    linter = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [linter], cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False
    )
    listed, _, said = ran.stdout.partition("\nBroken contracts\n")
    named = {found[1] for found in re.finditer(r"^(.+) BROKEN\b", listed, re.MULTILINE)}
    assert (ran.returncode == 0) == (not named), ran.stdout + ran.stderr
    found = re.split(r"^(.+)\n-+\n", said, flags=re.MULTILINE)
    return {name: text for name, text in zip(found[1::2], found[2::2], strict=True) if name in named}


def test_the_rooms_as_they_are_keep_every_contract(tree: Path) -> None:
    assert broken(tree) == {}


def test_a_forbidden_import_in_each_direction_breaks_its_contract(tree: Path) -> None:
    for importer, imported, _ in FORBIDDEN:
        plant(tree, importer, imported)
    said = broken(tree)

    assert set(said) == {contract["name"] for contract in CONFIG["contracts"]}
    for importer, imported, contracts in FORBIDDEN:
        for contract in contracts:
            assert f"{importer} -> {imported} " in said[contract], contract
