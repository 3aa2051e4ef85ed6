"""The fenced blocks of the README, each by the name that a comment above it gives."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURED = "## Measured"

_MARKER = re.compile(r"<!-- recipe: ([a-z0-9-]+) -->")


@dataclass(frozen=True)
class Fence:
    """One fenced block: the name above it (None without one), what it holds, and the heading it stands under."""

    name: str | None
    text: str
    section: str


def fences(page: str) -> list[Fence]:
    """All blocks of a page, in its order."""
    found: list[Fence] = []
    section = above = ""
    inside: list[str] | None = None
    marked: re.Match[str] | None = None
    for line in page.splitlines():
        if line.strip().startswith("```"):
            if inside is None:
                marked, inside = _MARKER.fullmatch(above), []
            else:
                text = textwrap.dedent("\n".join(inside)) + "\n"
                found.append(Fence(marked[1] if marked else None, text, section))
                inside = None
        elif inside is not None:
            inside.append(line)
        elif re.match("##? ", line):
            section = line
        above = line.strip() or above
    return found


def page() -> list[Fence]:
    """The blocks of the README."""
    return fences((ROOT / "README.md").read_text())


def block(name: str) -> str:
    """What stands in the block of this name."""
    found = [fence.text for fence in page() if fence.name == name]
    assert len(found) == 1, f"the README has {len(found)} blocks called {name}"
    return found[0]
