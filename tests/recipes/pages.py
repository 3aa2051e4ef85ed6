"""The pages that people read, and their fenced blocks, each by the name that a comment above it gives."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md")))
DRAWING = "mermaid"

_MARKER = re.compile(r"<!-- recipe: ([a-z0-9-]+) -->")


@dataclass(frozen=True)
class Fence:
    """One fenced block: the name above it (None without one), its language and its text."""

    name: str | None
    language: str
    text: str


def fences(page: str) -> list[Fence]:
    """Return all blocks of a page, in its order."""
    found: list[Fence] = []
    above = language = ""
    inside: list[str] | None = None
    marked: re.Match[str] | None = None
    for line in page.splitlines():
        if line.strip().startswith("```"):
            if inside is None:
                marked, inside, language = _MARKER.fullmatch(above), [], line.strip().strip("`")
            else:
                text = textwrap.dedent("\n".join(inside)) + "\n"
                found.append(Fence(marked[1] if marked else None, language, text))
                inside = None
        elif inside is not None:
            inside.append(line)
        above = line.strip() or above
    return found


def all_fences() -> list[Fence]:
    """Return the blocks of all pages that are not drawings."""
    return [fence for page in PAGES for fence in fences(page.read_text()) if fence.language != DRAWING]


def block(name: str) -> str:
    """Return the text of the block with this name."""
    found = [fence.text for fence in all_fences() if fence.name == name]
    assert len(found) == 1, f"the pages have {len(found)} blocks called {name}"
    return found[0]
