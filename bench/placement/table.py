"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.info.figures import Figure
from bench.placement.figures import figures
from bench.placement.methods import METHODS, OURS
from bench.placement.parts import Found
from bench.placement.scale import Scale


@dataclass(frozen=True)
class Row:
    """One figure: the values of each method that has some."""

    figure: Figure
    values: dict[str, list[float]]

    def of(self, method: str) -> float | None:
        """The median of a method's rounds, trials or seeds; None where there are none."""
        return median(self.values[method]) if self.values.get(method) else None

    @property
    def is_met(self) -> bool | None:
        """Whether our own policy reaches what it must; None when nothing is asked, or nothing was measured."""
        value = self.of(OURS)
        return None if value is None else self.figure.is_met(value)

    def to_json(self) -> dict[str, Any]:
        """Values in base units: seconds, bytes, ratios; null for what never ends and for any bytes over none."""
        finite = {
            method: [value if math.isfinite(value) else None for value in values]
            for method, values in self.values.items()
        }
        figure = self.figure
        text = {"name": figure.key, "text": figure.text, "most": figure.most, "least": figure.least}
        return text | {"values": finite, "met": self.is_met}


def rows(found: Found, parts: Sequence[str], scale: Scale) -> list[Row]:
    """Every figure of the parts that were measured, in its order."""
    return [
        Row(
            figure,
            {method: figures[figure.key] for method, figures in found.values.items() if figure.key in figures},
        )
        for figure in figures(scale)
        if figure.part in parts
    ]


def markdown(record: dict[str, Any], table: Sequence[Row], scale: Scale) -> str:
    """The table with what it was measured on and how to read it."""
    head = ("figure", "must reach", *METHODS, f"reached by {OURS}")
    lines = [_line(head), _line(["---"] * len(head)), *(_line(_cells(row)) for row in table)]
    left_out = ["Empty because:", "", *(f"- {why}" for why in record["left_out"]), ""] if record["left_out"] else []
    return "\n".join([f"# Placement, {record['date']}", "", _machine_line(record, scale), "", *lines, "", *left_out])


def _cells(row: Row) -> list[str]:
    figure = row.figure
    asked = "" if figure.most is None else f"<= {figure.text_of(figure.most)}"
    asked = asked if figure.least is None else f">= {figure.text_of(figure.least)}"
    reached = {True: "yes", False: "**no**", None: ""}[row.is_met]
    return [figure.text, asked, *(_cell(row, method) for method in METHODS), reached]


def _cell(row: Row, method: str) -> str:
    value = row.of(method)
    if value is None:
        return ""
    if math.isinf(value):
        return "never ends" if row.figure.part == "makespan" else "optimum is 0"
    return row.figure.text_of(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _machine_line(record: dict[str, Any], scale: Scale) -> str:
    machine, versions = record["machine"], record["versions"]
    return (
        "Makespans: simulated, 4 nodes, 400 pictures of about a tenth of a second, three replicas; medians of "
        f"{scale.trials} trials; the bound knows true speeds and faults; leases cost no time. First-come pull has no "
        "plan and gives one picture at a time. "
        f"Bytes: {scale.nodes} nodes, {scale.blocks:,} blocks, medians of {scale.seeds} seeds, epsilon 2 %; the "
        "optimum is the fewest bytes of any plan that ends within epsilon of the bound, so a later one may move fewer. "
        f"Planning: a fresh process each, medians of {scale.rounds} rounds in turns, the input made before the clock "
        "starts; memory is the whole process, Python and the input with it. "
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; "
        f"nodewise {versions['nodewise']}, Python {versions['Python']}. The host gave {record['steal_ratio']:.1%} of "
        f"the CPU time to others, and the load was {record['load_before']:.1f} before."
    )
