"""What is pushed to a node: the agent as one zipapp, the collectors and the processors, with their SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import shutil
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from infosvc.wire.errors import Conflict, InvalidInput, NotReady
from infosvc.wire.records import Kind, Producer

AGENT = "agent.pyz"
MANIFEST = "manifest.json"

# A start line for the zipapp; the agent is a package inside it, so that its modules import each other by full name.
_MAIN = "import sys\n\nfrom collectors.agent.__main__ import main\n\nsys.exit(main())\n"
# What an agent and the processors import, by folder.
_CARRIED = (
    "infosvc/__init__.py",
    "infosvc/wire/**/*.py",
    "collectors/*.py",
    "collectors/agent/**/*.py",
    "locality/*.py",
)
_PROGRAMS = {"scripts": "*.sh", "processors": "*.py"}
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the oldest date a zip can hold: equal sources must give equal bytes


@dataclass(frozen=True)
class Bundle:
    """Files ready to push: `manifest` is relative path -> SHA-256, `version` names this very content."""

    directory: Path
    manifest: dict[str, str]
    version: str

    @cached_property
    def archive(self) -> bytes:
        """All files and the manifest as one zip, which travels faster than many files."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (*self.manifest, MANIFEST):
                archive.write(self.directory / name, name)
        return packed.getvalue()


@dataclass(frozen=True)
class CatalogEntry:
    """A producer that ships with the product; `autostart` ones run on a node as soon as it is enrolled."""

    producer: Producer
    autostart: bool


def build(directory: Path, own: Path | None = None, replace_shipped: bool = False) -> Bundle:
    """Fill an empty or missing directory with everything a node needs; the same sources give the same version.

    `own` holds further scripts/*.sh and processors/*.py; Conflict when one has the name of a file that ships, unless
    `replace_shipped` lets it take that one's place.
    """
    source = _room("collectors")
    directory.mkdir(parents=True, exist_ok=True)
    _write_agent(directory / AGENT)
    for folder, pattern in _PROGRAMS.items():
        (directory / folder).mkdir()
        for file in _sources(source / folder, pattern):
            _take(file, directory / folder / file.name)
    if own is not None:
        _lay_over(own, directory, replace_shipped)
    return seal(directory)


def seal(directory: Path) -> Bundle:
    """Write the manifest of the files that lie in a directory; from then on they are this bundle."""
    files = sorted(file for file in directory.rglob("*") if file.is_file() and file.name != MANIFEST)
    manifest = {file.relative_to(directory).as_posix(): sha256(file) for file in files}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (directory / MANIFEST).write_text(text)
    return Bundle(directory, manifest, hashlib.sha256(text.encode()).hexdigest()[:12])


def catalog() -> list[CatalogEntry]:
    """Every producer of the catalogue, in its order; a name that another one emits is timed as that one."""
    tables = tomllib.loads((_room("collectors") / "catalog.toml").read_text())["producer"]
    rows = [{"data_name": name, **table} for name, table in tables.items()]
    parents = {name: Producer.from_json(row) for row in rows for name in row.get("emits", ())}
    return [_entry(row, parents) for row in rows]


def sha256(file: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _entry(row: Mapping[str, Any], parents: Mapping[str, Producer]) -> CatalogEntry:
    kind = Kind(row["kind"])
    if kind is Kind.EMITTED:
        own = {key: row[key] for key in ("data_name", "unit", "help", "ttl", "keep") if key in row}
        parent = parents[row["data_name"]]
        return CatalogEntry(replace(parent, kind=kind, emits=(), inputs=(), **own), False)
    return CatalogEntry(Producer.from_json(row), kind.in_slot and bool(row["autostart"]))


def _room(name: str) -> Path:
    """The folder of a top-level package, found without importing it: the service runs none of the others' code."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise NotReady(f"the folder {name!r} is not installed beside the service", remedy="install nodewise again")
    return Path(next(iter(spec.submodule_search_locations)))


def _sources(folder: Path, pattern: str) -> Iterator[Path]:
    return (file for file in sorted(folder.glob(pattern)) if file.name != "__init__.py")


def _take(file: Path, target: Path) -> None:
    shutil.copyfile(file, target)
    target.chmod(0o755)


def _lay_over(own: Path, directory: Path, replace_shipped: bool) -> None:
    files = [(folder, file) for folder, pattern in _PROGRAMS.items() for file in _sources(own / folder, pattern)]
    if not files:
        raise InvalidInput(
            f"{own} holds no scripts/*.sh and no processors/*.py", remedy="put some there, or name no directory"
        )
    taken = [f"{folder}/{file.name}" for folder, file in files if (directory / folder / file.name).exists()]
    if taken and not replace_shipped:
        raise Conflict(
            f"{own} has {', '.join(taken)}, which ships under that name", remedy="rename it, or say --replace"
        )
    for folder, file in files:
        _take(file, directory / folder / file.name)


def _write_agent(target: Path) -> None:
    entries = {"__main__.py": _MAIN.encode()}
    for pattern in _CARRIED:
        room = _room(pattern.split("/", maxsplit=1)[0])
        entries |= {str(file.relative_to(room.parent)): file.read_bytes() for file in room.parent.glob(pattern)}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), entries[name], zipfile.ZIP_DEFLATED)
