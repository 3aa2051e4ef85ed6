"""A copy of this checkout that somebody extends: what is new in it can be told, and its own code is what runs there."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from pathlib import Path

from tests.recipes.pages import ROOT
from tests.recipes.shell import Shell
from tests.rooms import PRODUCT

MADE_BY_SETUP = (".venv-worker", "hadoop/target")
BYTECODE = "__pycache__"


class Checkout:
    """Every file that git would keep, in a folder of its own, beside what scripts/setup makes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _files(ROOT):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        for name in MADE_BY_SETUP:
            (folder / name).symlink_to(ROOT / name)

    def write(self, name: str, text: str) -> None:
        """Make a file, which must be new."""
        file = self.folder / name
        assert not file.exists(), f"{name} is there already"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def add_line(self, name: str, line: str, below: str) -> None:
        """Put a line below another one of a file, and indent it as the next one is."""
        file = self.folder / name
        lines = file.read_text().splitlines(keepends=True)
        place = lines.index(f"{below}\n") + 1
        indent = lines[place][: -len(lines[place].lstrip())] if lines[place].strip() else ""
        lines.insert(place, f"{indent}{line.strip()}\n")
        file.write_text("".join(lines))

    def changes(self) -> list[str]:
        """What is new: each file or folder by its name, each line that came or went behind the name of its file."""
        found = set()
        for file in (file for file in self.folder.rglob("*") if file.is_file() and not file.is_symlink()):
            name = file.relative_to(self.folder)
            if BYTECODE in name.parts:
                continue
            if (ROOT / name).exists():
                found |= {f"{name}: {line}" for line in _lines_changed(ROOT / name, file)}
            else:
                found.add(next(str(above) for above in _from_above(name) if not (ROOT / above).exists()))
        gone = {f"gone: {name}" for name in _files(ROOT) if not (self.folder / name).exists()}
        return sorted(found | gone)

    def shell(self, home: Path, **settings: str) -> Shell:
        """A shell in the copy, whose `nodewise` and `python` take every room from it and none from here."""
        own = {"PYTHONPATH": str(self.folder), "XDG_CACHE_HOME": str(home / ".cache")}
        shell = Shell(home, self.folder, own | settings)
        rooms = ", ".join(PRODUCT)
        found = shell.run(f"python -c 'import {rooms}; print(*(one.__file__ for one in ({rooms})), sep=chr(10))'")
        assert found.splitlines() == [str(self.folder / room / "__init__.py") for room in PRODUCT]
        return shell


def _files(folder: Path) -> list[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (folder / name).is_file()]


def _lines_changed(before: Path, after: Path) -> list[str]:
    old, new = before.read_bytes(), after.read_bytes()
    if old == new:
        return []
    lines = difflib.ndiff(old.decode().splitlines(), new.decode().splitlines())
    return [line for line in lines if line.startswith(("+ ", "- "))]


def _from_above(name: Path) -> list[Path]:
    """The folders that lead to a file, the outermost first, and the file."""
    return [above for above in reversed((name, *name.parents)) if above.name]
