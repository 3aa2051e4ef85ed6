"""When the lab's tests passed last, and what they depended on: passed.json keeps one entry for each cycle of tests.

An entry holds the moment, the product's files that the machines read meanwhile, and one hash over those and over all
that the machines are made from. Another hash now means that the tests have to pass again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.commands import call
from lab.places import ROOT

FILE = "ansible/lab/passed.json"
CYCLES = {"cluster": "tests/lab", "secure": "tests/secure_lab"}
"""The folder with the tests of each cycle."""
INPUTS = (
    "ansible/",
    "hadoop/pom.xml",
    # What scripts/payload packs environments with.
    "jobs/application/environments/",
    "jobs/commands/environment.py",
    "pyproject.toml",
    "requirements/",
    "scripts/lab",
    "scripts/payload",
    "scripts/setup",
    # What the lab's tests stand on themselves.
    "tests/conftest.py",
    "tests/recipes/pages.py",
    "yarn-plugin/attributes/",
    "yarn-plugin/pom.xml",
    "yarn-plugin/src/main/",
)
"""How the names of those files begin on which every cycle depends."""

_USED = re.compile(r'\bblock\("([a-z0-9-]+)"\)')
_RECIPE = re.compile(r"<!-- recipe: ([a-z0-9-]+) -->\s*```.*?```", re.DOTALL)


@dataclass(frozen=True)
class Due:
    """A cycle that has to pass again; `since` is when it passed last, or nothing."""

    cycle: str
    since: str


def snapshot(root: Path = ROOT) -> dict[str, str]:
    """The SHA-256 of each file of the checkout, and of each recipe in its pages as `recipe NAME`."""
    words = ["-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = {}
    for name in call(["git", *words]).split("\0"):
        if not name or name == FILE or not (root / name).is_file():
            continue
        content = (root / name).read_bytes()
        found[name] = hashlib.sha256(content).hexdigest()
        if name.endswith(".md"):
            for recipe in _RECIPE.finditer(content.decode()):
                found[f"recipe {recipe[1]}"] = hashlib.sha256(recipe[0].encode()).hexdigest()
    return found


def fingerprint(cycle: str, loaded: Iterable[str], known: Mapping[str, str], root: Path = ROOT) -> str:
    """One hash over all that the cycle depends on; a file that is not there any more counts as changed."""
    tests = f"{CYCLES[cycle]}/"
    names = {name for name in known if name.startswith((*INPUTS, tests))}
    used = {recipe for name in names if name.startswith(tests) for recipe in _USED.findall((root / name).read_text())}
    names |= {f"recipe {recipe}" for recipe in used} | set(loaded)
    lines = [f"{known.get(name, 'gone')} {name}\n" for name in sorted(names)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read(root: Path = ROOT) -> dict[str, Any]:
    """All entries of the file, by cycle."""
    file = root / FILE
    entries: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return entries


def due(root: Path = ROOT) -> list[Due]:
    """The cycles that have to pass again, first the one whose pass is the oldest.

    A cycle that has passed nowhere joins the others by its first pass.
    """
    entries, known = read(root), snapshot(root)
    found = []
    for cycle in CYCLES:
        entry = entries.get(cycle)
        if entry is None and entries:
            continue
        if entry is None or entry["hash"] != fingerprint(cycle, entry["files"], known, root):
            found.append(Due(cycle, entry["date"] if entry else ""))
    return sorted(found, key=lambda one: one.since)


def renew(cycle: str, loaded: Iterable[str], known: Mapping[str, str], root: Path = ROOT) -> None:
    """Keep that the cycle has just passed with the files of this snapshot, of which the machines read `loaded`."""
    files = sorted(name for name in set(loaded) if name in known and not name.startswith(INPUTS))
    entry = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hash": fingerprint(cycle, files, known, root),
        "files": files,
    }
    entries = read(root) | {cycle: entry}
    (root / FILE).write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")
