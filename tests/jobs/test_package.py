"""What an application master imports, and what it does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hadoop.installation import ROOT
from jobs.kinds import KINDS


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
