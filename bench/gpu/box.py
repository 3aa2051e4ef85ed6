"""Runs a program in a box that has a blob, and the driver by its CDI file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.driver import FILE, ROOT, Driver
from bench.gpu.packing import AT
from boxes.cdi.libraries import FOLDER, by_soname
from boxes.showing import CDI_FOLDERS

REFUSED = 125
"""Exit code of a box that cannot be."""
_SECONDS, _LATE = 300, 124


@dataclass(frozen=True)
class Box:
    """What a program has there: a Python of this machine, with a blob's packages in place of its own."""

    python: Path
    blob: Path
    device: str
    folder: Path

    def run(self, program: str, cdi: Path, device: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run it to its end, with the device unless another is named ("" for none)."""
        name = self.device if device is None else device
        devices = [f"--device={name}"] if name else []
        words = [sys.executable, "-m", "boxes.mounting", *devices, f"{AT}={self.blob}", "--", "/usr/bin/env"]
        words += [f"PYTHONPATH={AT}", str(self.python), "-S", "-c", program]
        variables = os.environ | {"PYTHONPATH": str(ROOT), CDI_FOLDERS: str(cdi)}
        try:
            return subprocess.run(
                words, cwd=self.folder, env=variables, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, _LATE, "", f"it has not ended after {_SECONDS} s")


def run_step(box: Box, program: str, driver: Driver) -> tuple[dict[str, Any], list[str]]:
    """What the program printed, with the seconds that all of it took, and what is not as it has to be."""
    began = time.monotonic()
    done = box.run(program, driver.folder)
    if done.returncode:
        return {}, [f"the program ended with {done.returncode}: {' '.join(done.stderr.split())[-1500:]}"]
    told = json.loads(done.stdout) | {"seconds_in_all": time.monotonic() - began}
    names = {one.path.name for one in by_soname(driver.edits.mounts)}
    told["driver"] = [path for path in told.pop("mapped") if Path(path).name in names]
    return told, _find_wrong(told)


def run_without(box: Box, driver: Driver, folder: Path) -> dict[str, tuple[int, str]]:
    """Exit code and words of boxes to which something of the bind is missing; no program begins in them."""
    empty, upgraded = folder / "no-cdi", folder / "upgraded-cdi"
    for one in (empty, upgraded):
        one.mkdir(mode=0o755)
    file = upgraded / FILE
    library = next(iter(by_soname(driver.edits.mounts))).host
    file.write_text((driver.folder / FILE).read_text().replace(f'"{library}"', f'"{library}.of-before"'))
    file.chmod(0o644)
    cases = {"without the CDI file": empty, f"with a CDI file for another {library.name}": upgraded}
    ended = {what: box.run("print('began')", cdi) for what, cdi in cases.items()}
    return {what: (done.returncode, _words(done)) for what, done in ended.items()}


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())


def _find_wrong(told: dict[str, Any]) -> list[str]:
    wrong = []
    if not Path(told["package"]).is_relative_to(AT):
        wrong.append(f"{told['package']} is used, and not the blob")
    if not told["driver"]:
        wrong.append("no library of the driver is used")
    wrong += [f"{path} is used, and not the bind at {FOLDER}" for path in _beside(told["driver"])]
    wrong += [f"the card's result deviates by {one:g}" for one in told["deviations"] if not one < 0.01]
    return wrong


def _beside(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).parent != FOLDER]
