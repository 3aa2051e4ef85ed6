"""The policy of docs/extend.md, put into a copy of this checkout as it says, keeps what every policy promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.decisions import decide
from tests.recipes.checkout import Checkout
from tests.recipes.pages import block


@pytest.mark.timeout(900)
def test_a_policy_of_ones_own_is_held_to_the_promises_and_set_beside_the_others(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "checkout")
    text = block("policy")
    checkout.write("locality/policies/first_done.py", text)
    assert len(text.splitlines()) <= 25
    checkout.add_line("locality/policies/__init__.py", block("policy-line"), below="POLICIES = by_name(")
    (checkout.folder / "decision.json").write_bytes(decide("maxflow").to_bytes())

    said = checkout.shell(tmp_path / "home").run(block("policy-tried"), 800)

    assert "passed" in said and "failed" not in said
    (row,) = [line for line in said.splitlines() if "first_done" in line and "│" in line]
    assert "0 B" in row  # it reads from the own disk whatever it can
