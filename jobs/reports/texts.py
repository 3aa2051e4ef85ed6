"""Numbers of a job as people read them, and what is counted in them."""

from __future__ import annotations

FORMER_UNIT = "images"
"""What records count that do not say what: others name the unit of their kind of job."""


def number_text(value: float) -> str:
    """Three digits that count, and none after the point from 100: 0.0312, 4.50, 12.3, 1,234."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.{2 if abs(value) < 10 else 1}f}"


def ratio_text(value: float | None) -> str:
    """A ratio with two digits after the point, or that there is none."""
    return "unknown" if value is None else f"{value:.2f}"


def over_optimum_text(value: float | None) -> str:
    """Bytes moved over the fewest possible: infinitely many times as many where none had to move."""
    return "\N{INFINITY}" if value is None else ratio_text(value)


def bytes_text(count: float) -> str:
    """Bytes in the unit in which they have up to three digits: 950 B, 1.20 MB."""
    scale, unit = byte_scale(count)
    return f"{number_text(count / scale)} {unit}"


def byte_scale(count: float) -> tuple[int, str]:
    """The unit in which a number of bytes has up to three digits, and how many bytes that is."""
    for power, unit in enumerate(("B", "kB", "MB", "GB")):
        if count < 1000 ** (power + 1):
            return 1000**power, unit
    return 1000**4, "TB"


def count_text(count: int, unit: str) -> str:
    """A number with what is counted, of which `unit` is the plural.

    >>> count_text(1, "images"), count_text(2, "entries")
    ('1 image', '2 entries')
    """
    return f"{count} {singular(unit) if count == 1 else unit}"


def singular(unit: str) -> str:
    """One of what a plural names.

    >>> singular("images"), singular("copies")
    ('image', 'copy')
    """
    return f"{unit.removesuffix('ies')}y" if unit.endswith("ies") else unit.removesuffix("s")
