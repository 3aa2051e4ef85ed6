"""The rules of the pages that people read: short, reachable, and pointing at what is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes.pages import PAGES, ROOT
from tests.rooms import CONFIG, floors

README = ROOT / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
LONGEST_README = 200
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} | {".ci"}
# Not in the repository: what scripts make, and what the pages tell the reader to make.
MADE_LATER = (
    "ansible/home",
    "ansible/payload",
    "jobs/engines/colours.py",
    "locality/policies/first_done.py",
    "yarn-plugin/target/",
)

_LINK = re.compile(r"\]\(([^)\s]+)\)")  # of an image in a link, too
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def targets(text: str) -> list[str]:
    """Return where the links and images of a page lead, outside blocks and code."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "code", _FENCE.sub("", text)))


def named_paths(text: str) -> set[str]:
    """Return the files and folders of this repository that a page names as code; NAME stands for one of yours."""
    spans = re.findall(r"`([\w./*-]+/[\w./*-]*)`", _FENCE.sub("", text))
    ours = {span for span in spans if span.split("/")[0] in FOLDERS and "NAME" not in span}
    return {span for span in ours if not span.startswith(MADE_LATER)}


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
        there = file.is_relative_to(ROOT) and file.exists()
        if not there or (anchor and anchor not in anchors(file.read_text())):
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
    assert len(README.read_text().splitlines()) <= LONGEST_README, "what is long belongs in docs/"


def parts(page: Path) -> dict[str, str]:
    """What stands below each heading of the second level of a page, and below none."""
    named = re.split(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    return {"": named[0], **dict(zip(named[1::2], named[2::2], strict=True))}


def test_the_readme_has_what_a_newcomer_needs() -> None:
    found = parts(README)

    assert README.read_text().count("```mermaid") == found[""].count("```mermaid") == 1
    (demo,) = re.findall(r"<!-- recipe: demo -->\n```sh\n(.*?)```", found["Try it"], re.DOTALL)
    assert [line.split()[0] for line in demo.splitlines()] == ["scripts/demo", "scripts/test"]
    assert {"The first ten minutes", "The map"} <= found.keys()


@pytest.mark.parametrize(
    "heading",
    [
        "How a value flows from /proc to a plan",
        "Inside the service",
        "How an image becomes a row",
        "The life of a lease",
        "Which room may import which",
    ],
)
def test_the_architecture_is_drawn(heading: str) -> None:
    assert "```mermaid" in parts(ARCHITECTURE)[heading]


def test_the_architecture_names_every_room_and_floor() -> None:
    text = parts(ARCHITECTURE)["Which room may import which"]
    arrows = {name for pair in re.findall(r"^  (\w+) -.*?> ?(?:\|.*?\| )?(\w+)$", text, re.MULTILINE) for name in pair}
    assert arrows == set(CONFIG["root_packages"])

    for contract in CONFIG["contracts"]:
        if contract["type"] == "layers" and (room := contract.get("containers", [""])[0]):
            folders = [
                sorted(name.partition(".")[2] for name in floor if (ROOT / name.replace(".", "/")).is_dir())
                for floor in floors(contract)
            ]
            (row,) = re.findall(rf"^\| `{room}/` \| (.+) \|$", text, re.MULTILINE)
            assert [sorted(re.findall(r"`(\w+)`", floor)) for floor in row.split(", ")] == [
                one for one in folders if one
            ]


def test_every_page_can_be_reached_from_the_readme() -> None:
    assert set(PAGES) - linked_pages() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    assert {path for path in named_paths(page.read_text()) if not list(ROOT.glob(path))} == set()


def test_a_path_that_is_not_there_would_be_found() -> None:
    text = "`jobs/gone.py`, `ansible/roles/*/defaults/main.yml`, `jobs/engines/NAME.py`, `share/hadoop/yarn/lib`"

    assert named_paths(text) == {"jobs/gone.py", "ansible/roles/*/defaults/main.yml"}


def test_links_that_lead_nowhere_would_be_found(tmp_path: Path) -> None:
    text = "[a](words.md#age) [![b](shot.png)](gone.md) `[c](code.md)`\n```\n[d](block.md)\n```\n[e](https://host.invalid/x)"
    page = tmp_path / "page.md"
    page.write_text(text)

    assert targets(text) == ["words.md#age", "shot.png", "gone.md", "https://host.invalid/x"]
    assert list(broken(page)) == ["words.md#age", "shot.png", "gone.md"]


def test_anchors_are_those_of_the_headings() -> None:
    text = "# How a value flows from /proc to a plan\n```\n# no heading\n```\n## A\n## A\n"

    assert anchors(text) == {"how-a-value-flows-from-proc-to-a-plan", "a", "a-1"}
