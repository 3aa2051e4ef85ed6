"""Archives of images, as `docker save` and tools of OCI write them, and a small one with programs of this machine."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Entry = tuple[tarfile.TarInfo, bytes]


_CONFIG = "blobs/sha256/" + "e" * 64


def file(name: str, content: str = "", mode: int = 0o644) -> Entry:
    made = tarfile.TarInfo(name)
    made.size, made.mode = len(content), mode
    return made, content.encode()


def other(name: str, kind: bytes, to: str = "") -> Entry:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, to, 0o755
    return made, b""


def tar(entries: Sequence[Entry], how: str = "w") -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=how) as archive:  # type: ignore[call-overload]
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return written.getvalue()


def save(
    folder: Path,
    *layers: Sequence[Entry],
    is_oci: bool = False,
    variables: Sequence[str] = (),
    architecture: str | None = None,
) -> Path:
    """An archive of an image; those of OCI have compressed layers."""
    names = [f"blobs/sha256/{number:064}" for number in range(len(layers))]
    digests = [{"digest": name.removeprefix("blobs/").replace("/", ":")} for name in names]
    blobs = {name: tar(one, "w:gz" if is_oci else "w") for name, one in zip(names, layers, strict=True)}
    about: dict[str, Any] = {"architecture": architecture} if architecture else {}
    about["rootfs"] = {"diff_ids": [f"sha256:{hashlib.sha256(tar(one)).hexdigest()}" for one in layers]}
    blobs[_CONFIG] = json.dumps({"config": {"Env": [*variables], "WorkingDir": "/srv"}, **about}).encode()
    if is_oci:
        config = {"digest": _CONFIG.removeprefix("blobs/").replace("/", ":")}
        blobs["blobs/sha256/" + "f" * 64] = json.dumps({"layers": digests, "config": config}).encode()
        blobs["index.json"] = json.dumps({"manifests": [{"digest": "sha256:" + "f" * 64}]}).encode()
    else:
        blobs["manifest.json"] = json.dumps([{"Layers": names, "Config": _CONFIG}]).encode()
    entries = []
    for name, content in blobs.items():
        info = tarfile.TarInfo(name)
        info.size = len(content)
        entries.append((info, content))
    target = folder / "image.tar"
    target.write_bytes(tar(entries))
    return target


def programs(*names: str) -> list[Entry]:
    """Programs of this machine in /usr/bin, with the libraries that they are linked to."""
    found = {f"usr/bin/{name}": Path("/usr/bin", name) for name in names}
    linked = subprocess.run(["ldd", *found.values()], capture_output=True, text=True, check=True).stdout
    libraries = {word for word in linked.split() if word.startswith("/") and not word.endswith(":")}
    found |= {one.removeprefix("/"): Path(one) for one in sorted(libraries)}
    return [_copied(name, path) for name, path in found.items()]


def _copied(name: str, path: Path) -> Entry:
    made, content = tarfile.TarInfo(name), path.read_bytes()
    made.size, made.mode = len(content), 0o755
    return made, content
