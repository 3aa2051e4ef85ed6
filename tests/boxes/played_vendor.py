"""A vendor's driver, a real shared library and a real device file of this machine, with its CDI file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVICE = "vendor.example/card=0"


@dataclass(frozen=True)
class PlayedVendor:
    """`folder` is for its libraries, `cdi` for its CDI file."""

    folder: Path
    cdi: Path

    def __call__(self, version: int, device: str = DEVICE, **edits: Any) -> Path:
        """A driver of a version, in place of any other, with its CDI file, which is returned."""
        self.folder.mkdir(exist_ok=True)
        for old in self.folder.iterdir():
            old.unlink()
        library = self.folder / f"libvendor.so.1.{version}"
        compile_library(library, version)
        path = f"/usr/lib/vendor/{library.name}"
        mount = {"hostPath": str(library), "containerPath": path, "options": ["ro", "bind"]}
        own = {"deviceNodes": [{"path": "/dev/vendor0", "hostPath": "/dev/zero"}]}
        return write(self.cdi / "vendor.json", own, {"mounts": [mount], **edits}, device)


def compile_library(target: Path, version: int) -> None:
    """A library of the vendor's, which tells its version."""
    source = target.with_suffix(".c")
    source.write_text(f"int vendor_version(void) {{ return {version}; }}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libvendor.so.1", "-o", target, source], check=True)


def write(file: Path, own: Mapping[str, Any], common: Mapping[str, Any], device: str = DEVICE) -> Path:
    """A CDI file with one card: what comes with it, and with each of its kind."""
    kind, _, name = device.partition("=")
    devices = [{"name": name, "containerEdits": own}]
    body = {"cdiVersion": "0.6.0", "kind": kind, "devices": devices, "containerEdits": common}
    file.write_text(json.dumps(body))
    file.chmod(0o644)
    return file
