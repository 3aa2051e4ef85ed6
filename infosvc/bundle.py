"""What is pushed to a node: the agent as one zipapp, the collectors and the processors, with their SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infosvc.errors import NotReady
from infosvc.records import Producer

AGENT = "agent.pyz"
MANIFEST = "manifest.json"

# A start line for the zipapp; the agent is a package inside it, so that its modules import each other by full name.
_MAIN = "import sys\n\nfrom collectors.agent.__main__ import main\n\nsys.exit(main())\n"
_CARRIED = {
    "infosvc": ("__init__.py", "errors.py", "records.py", "client.py"),
    "hadoop": ("__init__.py", "errors.py", "webhdfs.py"),
    "collectors": ("__init__.py",),
}
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the oldest date a zip can hold: equal sources must give equal bytes


@dataclass(frozen=True)
class Bundle:
    """Files ready to push: `manifest` is relative path -> SHA-256, `version` names this very content."""

    directory: Path
    manifest: dict[str, str]
    version: str


@dataclass(frozen=True)
class CatalogEntry:
    """A producer that ships with the product; `autostart` ones run on a node as soon as it is enrolled."""

    producer: Producer
    autostart: bool


def build(directory: Path) -> Bundle:
    """Fill an empty or missing directory with everything a node needs; the same sources give the same version."""
    source = _room("collectors")
    directory.mkdir(parents=True, exist_ok=True)
    _write_agent(directory / AGENT)
    for folder, pattern in (("scripts", "*.sh"), ("processors", "*.py")):
        (directory / folder).mkdir()
        for file in _sources(source / folder, pattern):
            shutil.copyfile(file, directory / folder / file.name)
            (directory / folder / file.name).chmod(0o755)
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    manifest = {file.relative_to(directory).as_posix(): sha256(file) for file in files}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (directory / MANIFEST).write_text(text)
    return Bundle(directory, manifest, hashlib.sha256(text.encode()).hexdigest()[:12])


def catalog() -> list[CatalogEntry]:
    """Every producer of the catalogue, in its order."""
    rows = tomllib.loads((_room("collectors") / "catalog.toml").read_text())["producer"]
    return [CatalogEntry(Producer.from_json(row), bool(row["autostart"])) for row in rows]


def sha256(file: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _room(name: str) -> Path:
    """The folder of a top-level package, found without importing it: the service runs none of the others' code."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise NotReady(f"the folder {name!r} is not installed beside the service: install nodewise again")
    return Path(next(iter(spec.submodule_search_locations)))


def _sources(folder: Path, pattern: str) -> Iterator[Path]:
    return (file for file in sorted(folder.glob(pattern)) if file.name != "__init__.py")


def _write_agent(target: Path) -> None:
    entries = {"__main__.py": _MAIN.encode()}
    for room, names in _CARRIED.items():
        entries |= {f"{room}/{name}": (_room(room) / name).read_bytes() for name in names}
    agent = _room("collectors") / "agent"
    entries |= {f"collectors/agent/{file.name}": file.read_bytes() for file in sorted(agent.glob("*.py"))}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), entries[name], zipfile.ZIP_DEFLATED)
