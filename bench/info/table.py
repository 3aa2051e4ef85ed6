"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.info.figures import FIGURES, Figure, Found
from bench.info.scale import Scale


@dataclass(frozen=True)
class Row:
    """One figure: the median of its rounds on each side, None where a side has none."""

    figure: Figure
    ours: list[float]
    theirs: list[float]

    @property
    def nodewise(self) -> float | None:
        """The median of our rounds."""
        return median(self.ours) if self.ours else None

    @property
    def prometheus(self) -> float | None:
        """The median of theirs."""
        return median(self.theirs) if self.theirs else None

    @property
    def ratio(self) -> float | None:
        """How many times as much we need, or do, as they."""
        ours, theirs = self.nodewise, self.prometheus
        return ours / theirs if ours is not None and theirs else None

    @property
    def is_met(self) -> bool | None:
        """Whether the median reaches what it must; None when nothing is asked, or nothing was measured."""
        return None if self.nodewise is None else self.figure.is_met(self.nodewise)

    def to_json(self) -> dict[str, Any]:
        """Values in base units: seconds, bytes, cores, counts."""
        figure = self.figure
        return {
            "name": figure.key,
            "text": figure.text,
            "most": figure.most,
            "least": figure.least,
            "nodewise": self.nodewise,
            "nodewise_rounds": self.ours,
            "prometheus": self.prometheus,
            "prometheus_rounds": self.theirs,
            "ratio": self.ratio,
            "met": self.is_met,
        }


def rows(ours: Sequence[Found], theirs: Sequence[Found], parts: Sequence[str]) -> list[Row]:
    """Every figure of the parts that were measured, in its order."""
    return [Row(figure, _of(figure, ours), _of(figure, theirs)) for figure in FIGURES if figure.part in parts]


def _of(figure: Figure, found: Sequence[Found]) -> list[float]:
    return [each[figure.key] for each in found if figure.key in each]


def markdown(record: dict[str, Any], table: Sequence[Row], scale: Scale) -> str:
    """The table with what it was measured on and how to read it."""
    head = ("figure", "must reach", "nodewise", "Prometheus", "ratio", "reached")
    lines = [_line(head), _line(["---"] * len(head)), *(_line(_cells(row)) for row in table)]
    return "\n".join([f"# Information service, {record['date']}", "", _machine_line(record, scale), "", *lines, ""])


def _cells(row: Row) -> list[str]:
    figure = row.figure
    asked = "" if figure.most is None else f"<= {figure.text_of(figure.most)}"
    asked = asked if figure.least is None else f">= {figure.text_of(figure.least)}"
    ours, theirs = ("" if side is None else figure.text_of(side) for side in (row.nodewise, row.prometheus))
    reached = {True: "yes", False: "**no**", None: ""}[row.is_met]
    return [
        figure.text,
        asked,
        ours or "not measured",
        theirs,
        "" if row.ratio is None else f"{row.ratio:.3g}",
        reached,
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _machine_line(record: dict[str, Any], scale: Scale) -> str:
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"{scale.nodes} simulated nodes x {scale.names} values every {scale.interval:g} s; "
        f"fleets of {', '.join(f'{nodes:,}' for nodes in scale.sizes)} nodes; medians of {scale.rounds} "
        f"rounds in turns; the ratio is nodewise / Prometheus. {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}, {machine['file_system']}; {versions}. "
        f"The host gave {record['steal_ratio']:.1%} of the CPU time to others. Senders and readers run on the same "
        "cores. Prometheus takes no reports, so it has no ingest to compare; its restart is not measured, and its "
        '"visible" runs from the moment its page was read. Beside the agent stands the node exporter, '
        "asked as often."
    )
