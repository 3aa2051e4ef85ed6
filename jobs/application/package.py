"""Our own code as one file that travels with a job, so that nodes need the libraries but not us."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKER_PYTHON = ROOT / ".venv-worker" / "bin" / "python"
"""The Python with the engines that scripts/setup made; the variable says where another one is."""
WORKER_PYTHON_VARIABLE = "NODEWISE_WORKER_PYTHON"
ROOMS = ("infosvc/wire", "locality", "hadoop", "boxes", "learning", "jobs")
"""What the application master and the workers import."""


def code_zip() -> bytes:
    """A zip to be put on PYTHONPATH; the same sources make the same bytes."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in _sources():
            entry = zipfile.ZipInfo(str(source.relative_to(ROOT)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
    return sink.getvalue()


def _sources() -> list[Path]:
    found = {ROOT / "infosvc" / "__init__.py"}
    for room in ROOMS:
        found |= {*(ROOT / room).rglob("*.py"), *(ROOT / room).rglob("*.j2")}
    return sorted(found)
