"""Describes this machine's driver in a CDI file, as an operator does for a node."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.gpu.lacking import NotRun
from boxes.cdi.edits import Edits
from boxes.cdi.finding import find
from boxes.cdi.libraries import by_soname
from boxes.cdi.place import CdiError

ROOT = Path(__file__).resolve().parents[2]
FILE = "driver.json"
_TOOL = "NVIDIA_CTK"
_NONE = "/no/nvidia-ctk"
"""In place of NVIDIA's tool: what ldconfig and /dev show is told."""
_NO_DRIVER = 3


@dataclass(frozen=True)
class Driver:
    """A folder with its CDI file.

    told_by  what described it
    edits    what a program gets with the device
    reasons  why what should have described it could not
    """

    folder: Path
    told_by: str
    digest: str
    edits: Edits
    reasons: list[str]


def describe(device: str, folder: Path) -> Driver:
    """Write the file, by NVIDIA's tool or else by ldconfig; NotRun where neither tells of such a device."""
    folder.mkdir(mode=0o755)
    reasons: list[str] = []
    for tool in (os.environ.get(_TOOL, "nvidia-ctk"), _NONE):
        done = _tell(tool)
        if done.returncode == _NO_DRIVER:
            raise NotRun(" ".join(done.stderr.split()))
        try:
            if done.returncode == 0:
                edits = _read(done.stdout, device, folder)
                digest = hashlib.sha256(done.stdout.encode()).hexdigest()
                return Driver(folder, "ldconfig" if tool == _NONE else tool, digest, edits, reasons)
            reasons.append(" ".join(done.stderr.split()))
        except CdiError as error:
            reasons.append(f"what {tool} says cannot be used: {error}")
    raise NotRun("; ".join(reasons))


def _read(said: str, device: str, folder: Path) -> Edits:
    file = folder / FILE
    file.write_text(said)
    file.chmod(0o644)
    edits = find([device], [str(folder)])
    if not by_soname(edits.mounts):
        raise CdiError(f"no library comes with {device}", "its driver is not one that programs load")
    return edits


def _tell(tool: str) -> subprocess.CompletedProcess[str]:
    words = ["sh", str(ROOT / "collectors" / "scripts" / "driver_files.sh"), "print"]
    return subprocess.run(words, env=os.environ | {_TOOL: tool}, capture_output=True, text=True, check=False)
