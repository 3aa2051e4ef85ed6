"""How YARN is told where a job's results lie."""

from __future__ import annotations

import pytest

from jobs.division import decision_store


@pytest.mark.parametrize(
    "output",
    ["/out/run1", "/Out/RUN1", "/out/50%", "/out/%4f", "/out/a b", "/out/\N{LATIN SMALL LETTER U WITH DIAERESIS}"],
)
def test_an_output_is_named_by_its_tag_as_yarn_keeps_it(output: str) -> None:
    (tag,) = decision_store.tags(output)

    assert tag.isascii()
    assert tag.isprintable()
    assert decision_store.outputs(["other", tag.lower()]) == [output]


def test_a_plain_path_is_tagged_as_it_ever_was() -> None:
    assert decision_store.tags("/out/run_1-2.x") == ["output=/out/run_1-2.x"]


def test_an_output_that_is_too_long_for_a_tag_has_none() -> None:
    longest = "/" + "x" * (decision_store.LONGEST_TAG - len("output=/"))

    assert [len(tag) for tag in decision_store.tags(longest)] == [100]
    assert decision_store.tags(longest + "x") == []
    assert decision_store.tags(longest.upper()) == []
