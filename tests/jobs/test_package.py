"""The code that travels with a job is complete: it runs where nothing of ours is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hadoop.installation import ROOT
from jobs.application.package import code_zip
from jobs.kinds import KINDS

WORKER_PYTHON = ROOT / ".venv-worker" / "bin" / "python"


@pytest.mark.parametrize(
    ("python", "module"),
    [(Path(sys.executable), "jobs.kinds.__main__"), (WORKER_PYTHON, "jobs.worker.__main__")],
    ids=["application master", "worker"],
)
def test_its_entry_points_import_from_the_zip_alone(python: Path, module: str, tmp_path: Path) -> None:
    (tmp_path / "code.zip").write_bytes(code_zip())
    check = (
        f"import sys; sys.path = [p for p in sys.path if p != {str(ROOT)!r}]; import {module} as m; print(m.__file__)"
    )

    found = subprocess.run(
        [python, "-c", check], cwd=tmp_path, env={"PYTHONPATH": "code.zip"}, capture_output=True, text=True, check=True
    )

    assert "code.zip" in found.stdout


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_application_master_imports_nothing_for_terminals(kind: str) -> None:
    check = (
        "import sys, jobs.kinds, jobs.kinds.__main__; "
        f"jobs.kinds.find_kind({kind!r}); print(sorted({{'click', 'rich'}} & sys.modules.keys()))"
    )

    found = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ["command", "task"])
def test_an_application_master_that_lists_no_folder_starts_without_what_lists_them(kind: str) -> None:
    check = (
        "import sys, jobs.kinds, jobs.kinds.__main__; "
        f"jobs.kinds.find_kind({kind!r}); sys.exit('hadoop.client.listing' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True)


def test_the_same_sources_make_the_same_bytes() -> None:
    assert code_zip() == code_zip()
