"""Every command that a page shows is run by a test, or stands here with the reason why none does."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from tests.recipes.pages import ROOT, all_fences, block, fences

NOT_RUN = {
    "demo": "four to eight minutes, and scripts/test would run itself; what the demo calls is in recipes of its own",
    "plugin-programs": "its programs are the reader's; tests/cluster/apart/test_plugin.py runs tagged applications",
    "demo-output": "what the demo prints, nothing to run",
    "demo-output-whole": "what the demo prints, nothing to run",
    "develop": "it runs the tests and the linters, this test included",
}
# Benches take minutes to hours, so their blocks need no name; tests/bench holds their parts.
BENCH = re.compile(r"scripts/(bench (?P<bench>[a-z]+)|lab up)( --quick)?(\s+# .*)?")


def used() -> set[str]:
    """Return the blocks that tests ask for: every `block("NAME")` of a file that has `block` from pages."""
    return {
        node.args[0].value
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "from tests.recipes.pages import" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "block"
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def test_every_block_has_a_name_of_its_own_unless_it_starts_a_bench() -> None:
    found = all_fences()
    unnamed = [line for fence in found if fence.name is None for line in fence.text.splitlines()]
    benches = [BENCH.fullmatch(line) for line in unnamed]

    assert [line for line, bench in zip(unnamed, benches, strict=True) if not bench] == []
    assert {bench["bench"] for bench in benches if bench and bench["bench"]} <= {
        path.name for path in (ROOT / "bench").iterdir() if (path / "__main__.py").exists()
    }
    named = [fence.name for fence in found if fence.name is not None]
    assert [name for name, times in Counter(named).items() if times > 1] == []


def test_every_block_is_run_by_a_test_or_has_a_reason_not_to_be() -> None:
    shown = {fence.name for fence in all_fences() if fence.name}

    assert shown - used() - set(NOT_RUN) == set(), "write a test, or give a reason in NOT_RUN"
    assert (used() | set(NOT_RUN)) - shown == set(), "no page has such a block any more"
    assert used() & set(NOT_RUN) == set(), "take what a test runs out of NOT_RUN"
    assert all(len(reason) > 20 for reason in NOT_RUN.values())


def test_the_excerpt_of_the_demo_is_what_the_demo_prints() -> None:
    whole = next(fence.text for fence in all_fences() if fence.name == "demo-output-whole").splitlines()
    excerpt = next(fence.text for fence in all_fences() if fence.name == "demo-output").splitlines()

    assert [line for line in excerpt if line != "..." and line not in whole] == []
    assert len(excerpt) <= 20


UNTOLD = ("a pause of 15 s", "stopping what was started")
"""Steps of the demo that its page leaves out."""


def test_the_demo_has_the_steps_that_its_page_shows() -> None:
    whole = next(fence.text for fence in all_fences() if fence.name == "demo-output-whole")
    shown = re.findall(r"^== (.+) \(\d+ s\)$", whole, re.MULTILINE)
    steps = re.findall(r'^ *step "(.+)"$', (ROOT / "scripts" / "demo").read_text(), re.MULTILINE)
    patterns = [re.sub(r"\\\$(\w|\\\{.+?\\\})", ".+", re.escape(step)) for step in steps if not step.startswith(UNTOLD)]

    assert [title for title in shown if not any(re.fullmatch(one, title) for one in patterns)] == []
    assert [one for one in patterns if not any(re.fullmatch(one, title) for title in shown)] == []
    assert len(shown) >= len(patterns) >= 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## A\n<!-- recipe: one -->\n```sh\nls\n```\n", [("one", "sh", "ls\n")]),
        ("## A\n\n<!-- recipe: one -->\n\n   ```sh\n   a\n     b\n   ```\n", [("one", "sh", "a\n  b\n")]),
        ("<!-- recipe: one -->\nwords\n```\nls\n```\n", [(None, "", "ls\n")]),
        ("```sh\n## no heading\n```\n# B\n```\nx\n```\n", [(None, "sh", "## no heading\n"), (None, "", "x\n")]),
    ],
)
def test_blocks_are_found_with_their_names(text: str, expected: list[tuple[str | None, str, str]]) -> None:
    assert [(fence.name, fence.language, fence.text) for fence in fences(text)] == expected


def test_a_block_of_any_page_is_found_by_its_name() -> None:
    assert block("use-cluster").startswith(". .venv/bin/activate")
    assert block("plugin-settings").startswith("service.url = ")
    nobodys = "nothing"  # not in the call, where `used` would take it for the name of a block
    with pytest.raises(AssertionError, match="have 0 blocks called nothing"):
        block(nobodys)
