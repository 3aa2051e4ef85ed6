"""Tables that `nodewise job` prints: reports side by side, why nodes got their shares, how often a job was right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.table import Column, Table

from jobs.division.explained import Explanation
from jobs.images.accuracy import Accuracy
from jobs.reports.pages import refuse_none, unit_of
from jobs.reports.report import JobReport
from jobs.reports.texts import bytes_text, ratio_text


def comparison(reports: Sequence[JobReport]) -> Table:
    """Items and seconds per node for each way to judge and divide, then its makespan beside the lower bound.

    Source: figure 8 of the paper. JobError when there is no report.
    """
    refuse_none(reports)
    table = Table("judged by,\ndivided by", "node")
    for heading in (unit_of(reports), "seconds", "bound", "over bound", "moved"):
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        nodes = [(node.node_name, str(node.items), f"{node.seconds:.1f}") for node in report.nodes]
        for name, row in zip_longest((report.capability, report.policy), (*nodes, _makespan(report)), fillvalue=""):
            table.add_row(name, *row, style="bold" if len(row) > 3 else None)
        table.add_section()
    return table


def _makespan(report: JobReport) -> tuple[str, ...]:
    return (
        "makespan",
        str(report.items),
        f"{report.makespan_seconds:.1f}",
        f"{report.lower_bound_seconds:.1f}",
        ratio_text(report.makespan_over_bound),
        bytes_text(report.bytes_moved),
    )


def shares_table(said: Explanation) -> Table:
    """The nodes of an explanation, one a row."""
    found = Table(Column("node", no_wrap=True))
    for heading in ("value", "age", "confidence", "formula", "gets", "own\ndisk", "fetches"):
        found.add_column(heading, justify="right", no_wrap=True)
    for node in said.nodes:
        found.add_row(
            node.node_name,
            f"{node.value:.4g}",
            f"{node.age_seconds:.0f} s",
            "unknown" if node.confidence is None else f"{node.confidence:.2f}",
            str(node.target_items),
            str(node.items),
            str(node.local_items),
            bytes_text(node.size_bytes - node.local_bytes),
        )
    return found


def accuracy_table(known: Accuracy) -> Table:
    """How often a job was right, by class and in all."""
    table = Table("class", title_justify="left", caption_justify="left")
    for heading in ("right", "of", "accuracy"):
        table.add_column(heading, justify="right")
    for name, (right, of) in known.by_class.items():
        table.add_row(name, str(right), str(of), f"{right / of:.1%}")
    table.add_section()
    total = known.right + known.wrong
    ratio = "unknown" if known.ratio is None else f"{known.ratio:.1%}"
    table.add_row("all", str(known.right), str(total), ratio, style="bold")
    if known.unknown:
        table.caption = f"The truth of {known.unknown} images is not known: their names are not in the table."
    return table
