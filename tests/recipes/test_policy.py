"""The policy of docs/extend.md, put into a copy of this checkout as it says, keeps what every policy promises."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.jobs.decisions import decide
from tests.recipes.pages import ROOT, block
from tests.recipes.shell import Shell

ROOMS = ("nodewise", "infosvc", "collectors", "locality", "hadoop", "jobs", "tests/locality")
LEFT = shutil.ignore_patterns("__pycache__", "target", "*.pyc")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in a copy of the rooms that plan, with the record of a decision."""
    copy = tmp_path / "checkout"
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=LEFT)
    for file in ("pyproject.toml", "tests/conftest.py", "tests/times.py"):
        shutil.copy(ROOT / file, copy / file)
    (copy / "decision.json").write_bytes(decide("maxflow").to_bytes())
    return Shell(tmp_path / "home", copy, {"PYTHONPATH": str(copy)})


@pytest.mark.timeout(900)
def test_a_policy_of_ones_own_is_held_to_the_promises_and_set_beside_the_others(shell: Shell) -> None:
    text = block("policy")
    (shell.folder / "locality" / "policies" / "first_done.py").write_text(text)
    assert len(text.splitlines()) <= 25

    said = shell.run(block("policy-tried"), 800)

    assert "passed" in said and "failed" not in said
    (row,) = [line for line in said.splitlines() if "first_done" in line and "│" in line]
    assert "0 B" in row  # it reads from the own disk whatever it can
    assert "first_done" in (shell.folder / "locality" / "policies" / "__init__.py").read_text()
