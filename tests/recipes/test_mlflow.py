"""What the page about MLflow shows, with MLflow's own client."""

from __future__ import annotations

from pathlib import Path

import pytest

from infosvc.wire.records import Role
from tests.infosvc.conftest import serving
from tests.infosvc.mlflow_client import PYTHON
from tests.recipes.pages import block
from tests.recipes.shell import Shell

pytestmark = pytest.mark.timeout(1000)  # a busy machine takes minutes to import MLflow

SHOWN = "http://127.0.0.1:8400"


def test_a_script_tracks_its_runs_and_finds_the_best(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "reader", tmp_path / "work", {"MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONPATH": ""})
    shell.program("python3", f'exec {PYTHON} "$@"')
    (shell.folder / "train.py").write_text(block("tracking-train"))
    commands = block("tracking-run")
    assert SHOWN in commands
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as service:
        (shell.folder / "maria.token").write_text(service.client.create_token("maria", Role.USER)[1])
        printed = shell.run(commands.replace(SHOWN, service.url), timeout=900)
    shown = commands.rpartition("# ")[2].strip()
    assert printed.splitlines()[-1] == shown
