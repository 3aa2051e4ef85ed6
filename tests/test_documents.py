"""The rules of the pages that people read: short, reachable, and pointing at what is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes.pages import PAGES, ROOT

README = ROOT / "README.md"
LONGEST_README = 200

_LINK = re.compile(r"\]\(([^)\s]+)\)")  # of an image in a link, too
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def targets(text: str) -> list[str]:
    """Return where the links and images of a page lead, outside blocks and code."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "code", _FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    made: set[str] = set()
    times: Counter[str] = Counter()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", _FENCE.sub("", text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        made.add(f"{slug}-{times[slug]}" if times[slug] else slug)
        times[slug] += 1
    return made


def broken(page: Path) -> Iterator[str]:
    """Return the relative links of a page that lead nowhere."""
    for target in targets(page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.is_relative_to(ROOT) or not file.exists():
            yield target
        elif anchor and anchor not in anchors(file.read_text()):
            yield target


def linked_pages() -> set[Path]:
    """Return the pages that can be reached from the README by links."""
    reached, waiting = {README}, [README]
    while waiting:
        page = waiting.pop()
        paths = [target.partition("#")[0] for target in targets(page.read_text()) if "://" not in target]
        new = {(page.parent / path).resolve() for path in paths if path.endswith(".md")} & set(PAGES) - reached
        reached |= new
        waiting += new
    return reached


def test_the_readme_stays_short() -> None:
    assert len(README.read_text().splitlines()) <= LONGEST_README, "what is long belongs into docs/"


def test_every_page_can_be_reached_from_the_readme() -> None:
    assert set(PAGES) - linked_pages() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_links_that_lead_nowhere_would_be_found(tmp_path: Path) -> None:
    text = "[a](words.md#age) [![b](shot.png)](gone.md) `[c](code.md)`\n```\n[d](block.md)\n```\n[e](https://host.invalid/x)"
    page = tmp_path / "page.md"
    page.write_text(text)

    assert targets(text) == ["words.md#age", "shot.png", "gone.md", "https://host.invalid/x"]
    assert list(broken(page)) == ["words.md#age", "shot.png", "gone.md"]


def test_anchors_are_those_of_the_headings() -> None:
    text = "# How a value flows from /proc to a plan\n```\n# no heading\n```\n## A\n## A\n"

    assert anchors(text) == {"how-a-value-flows-from-proc-to-a-plan", "a", "a-1"}
