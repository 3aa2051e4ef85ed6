"""Every command that the README shows is run by a test, or stands here with the reason why none does."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.recipes.readme import MEASURED, ROOT, fences, page

NOT_RUN = {
    "demo": "a quarter of an hour, and scripts/test would run itself; what the demo calls is in recipes of its own",
    "demo-output": "what the demo prints, nothing to run",
}


def used() -> set[str]:
    """The blocks that tests ask for: every `block("NAME")` of a file that has `block` from here."""
    return {
        node.args[0].value
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "from tests.recipes.readme import" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "block"
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def test_every_block_has_a_name_of_its_own() -> None:
    # What is measured is run by scripts/bench, which takes minutes to hours; tests/bench holds its parts.
    found = [fence for fence in page() if fence.section != MEASURED]

    assert [fence.text.splitlines()[0] for fence in found if fence.name is None] == []
    assert [name for name, times in Counter(fence.name for fence in found).items() if times > 1] == []


def test_every_block_is_run_by_a_test_or_has_a_reason_not_to_be() -> None:
    shown = {fence.name for fence in page() if fence.name}

    assert shown - used() - set(NOT_RUN) == set(), "write a test, or give a reason in NOT_RUN"
    assert (used() | set(NOT_RUN)) - shown == set(), "the README has no such block any more"
    assert used() & set(NOT_RUN) == set()
    assert all(len(reason) > 20 for reason in NOT_RUN.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## A\n<!-- recipe: one -->\n```sh\nls\n```\n", [("one", "ls\n", "## A")]),
        ("## A\n\n<!-- recipe: one -->\n\n   ```sh\n   a\n     b\n   ```\n", [("one", "a\n  b\n", "## A")]),
        ("<!-- recipe: one -->\nwords\n```\nls\n```\n", [(None, "ls\n", "")]),
        ("```sh\n## no heading\n```\n# B\n```\nx\n```\n", [(None, "## no heading\n", ""), (None, "x\n", "# B")]),
    ],
)
def test_blocks_are_found_with_their_names(text: str, expected: list[tuple[str | None, str, str]]) -> None:
    assert [(fence.name, fence.text, fence.section) for fence in fences(text)] == expected
