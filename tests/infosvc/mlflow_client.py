"""MLflow's own client, unmodified, in an environment of its own: what a training script does with the service."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

PYTHON = Path(__file__).resolve().parents[2] / ".venv-mlflow" / "bin" / "python"

_BEGINNING = """
import json, os, sys
import mlflow
from mlflow import MlflowClient

client = MlflowClient()

def refusal(call, *given, **named):
    try:
        call(*given, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"

"""
_END = "\nprint('SAID', json.dumps(said))\n"


def run_script(url: str, token: str, script: str, **variables: str) -> Any:
    """Run a script that leaves what it found in `said`, with the service's address and a token as users set them.

    It has `mlflow`, `client`, `json`, `os`, and `refusal(CALL, ...)`, which is what a call was refused with.
    """
    if not PYTHON.exists():
        pytest.fail("MLflow's client is not installed: run scripts/setup --dev")
    settings = {
        "MLFLOW_TRACKING_URI": url,
        "MLFLOW_TRACKING_TOKEN": token,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    }
    given = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    ran = subprocess.run(
        [PYTHON, "-c", _BEGINNING + textwrap.dedent(script) + _END],
        env=given | settings | variables,
        capture_output=True,
        text=True,
        timeout=900,  # a busy machine takes minutes to import MLflow
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    (said,) = [line for line in ran.stdout.splitlines() if line.startswith("SAID ")]
    return json.loads(said.removeprefix("SAID "))
