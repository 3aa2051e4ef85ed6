"""Weights that mean something, and the real images they were learned from: made once for all tests here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.trained import Trained

# As in a container, and before any test loads MXNet: threads that wait for others take the time of what runs beside.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent.parent
SHOWN = ("hubble_deep_field", "ihc", "retina", "rocket", "flower")
"""Photographs so unlike each other that few steps teach to tell them apart."""
MAKE = """
import sys
from pathlib import Path
from jobs.images.datasets import make, photographs

folder, *shown = sys.argv[1:]
make(Path(folder), 165, seed=3, sources=[file for file in photographs(folders=()) if file.stem in shown])
"""


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Five classes, learned in fewer steps than a user would take."""
    place = tmp_path_factory.mktemp("trained")
    folder, weights, int8 = place / "pictures", place / "weights.params", place / "weights.int8.onnx"
    subprocess.run([ROOT / ".venv" / "bin" / "python", "-c", MAKE, folder, *SHOWN], check=True, cwd=ROOT)
    ran = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "jobs.training", "train", folder),
            *(f"--weights={weights}", f"--int8={int8}", "--steps=20"),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env=os.environ | {"OMP_WAIT_POLICY": "passive"},
    )
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, said[-1:]
    return Trained(folder, weights, int8, said)
