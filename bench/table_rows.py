"""Rows of tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def write_row(cells: Sequence[str]) -> str:
    """One row.

    >>> write_row(["figure", "goal"])
    '| figure | goal |'
    """
    return f"| {' | '.join(cells)} |"


def write_head(cells: Sequence[str]) -> list[str]:
    """The first row, and the one that Markdown wants below it."""
    return [write_row(cells), write_row(["---"] * len(cells))]
