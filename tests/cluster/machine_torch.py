"""An image of Debian's PyTorch as this machine has it, with what that needs and hardly anything else."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

from bench.image_here import as_root, find_programs, write_layer

PACKAGES = Path("/usr/lib/python3/dist-packages")
MODULES = ("torch", "torchgen", "functorch", "numpy")
_LEFT_OUT = {"tests", "include"}
_OTHERS = ("libcaffe2_", "test_")
"""Caffe2 needs some hundred libraries of Debian's."""


def has_torch() -> bool:
    """Whether Debian's package is installed."""
    return (PACKAGES / "torch").is_dir()


def write_torch_image(archive: Path) -> None:
    """Write the image as `docker save` does."""
    layer = archive.with_suffix(".layer")
    files = {PACKAGES / "typing_extensions.py", *(one for name in MODULES for one in _find(PACKAGES / name))}
    files |= find_programs(keeps_compiled=True, users=[one for one in files if ".so" in one.name])
    with layer.open("wb") as sink:
        write_layer(sink, (one for one in files if one.suffix != ".a"), as_root)
    with layer.open("rb") as content:
        digest = f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"
    configuration, manifest = archive.with_suffix(".config"), archive.with_suffix(".manifest")
    configuration.write_text(json.dumps({"os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest]}}))
    manifest.write_text(json.dumps([{"Config": "config.json", "RepoTags": [], "Layers": ["layer.tar"]}]))
    with tarfile.open(archive, "w") as write:
        for file, name in ((manifest, "manifest.json"), (configuration, "config.json"), (layer, "layer.tar")):
            write.add(file, name)
            file.unlink()


def _find(module: Path) -> list[Path]:
    found = (one for one in module.rglob("*") if one.is_file() and not one.name.startswith(_OTHERS))
    return [one for one in found if _LEFT_OUT.isdisjoint(one.relative_to(module).parts)]
