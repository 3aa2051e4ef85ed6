"""What runs find, beside what one process finds alone."""

from __future__ import annotations

import json
import os
import subprocess

from hadoop.installation import ROOT
from jobs.application.package import WORKER_PYTHON
from jobs.worker.threads import ONE_THREAD

PROGRAM = ROOT / "tests" / "learning" / "member.py"
EXACT = 1e-10


def train_alone(*words: str) -> list[float]:
    """What one process finds without anybody who leads it; the words are the program's."""
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([WORKER_PYTHON, PROGRAM, *words], env=environment, capture_output=True, text=True, check=True)
    found: list[float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def differ(found: list[float], alone: list[float]) -> float:
    """By how much, at most."""
    return max(abs(one - other) for one, other in zip(found, alone, strict=True))
