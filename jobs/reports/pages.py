"""What a job did, as a page for people, remarks in words, and a page that compares several jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from jobs.errors import JobError
from jobs.reports.phases import WORDS, tell_phases
from jobs.reports.report import JobReport
from jobs.reports.texts import byte_scale, bytes_text, number_text, ratio_text
from jobs.reports.timeline import KINDS, timeline

if TYPE_CHECKING:
    from jinja2 import Environment


def html(report: JobReport) -> str:
    """One self-contained page that shows a job; it loads nothing from elsewhere."""
    return pages().get_template("report.html.j2").render(report=report, timeline=timeline(report))


def comparison_html(reports: Sequence[JobReport]) -> str:
    """One self-contained page with several jobs side by side, in the order given; JobError for none."""
    refuse_none(reports)
    units = unit_of(reports).capitalize()
    notes = dict.fromkeys(text for r in reports for text in (r.note, r.weights.meaning) if text)
    return pages().get_template("comparison.html.j2").render(reports=reports, notes=list(notes), units=units)


def refuse_none(reports: Sequence[JobReport]) -> None:
    """JobError when there is no report."""
    if not reports:
        raise JobError("there is nothing to compare", remedy="give at least one job's report")


def unit_of(reports: Iterable[JobReport]) -> str:
    """What all of these jobs counted, in the plural: items where they counted different ones."""
    units = {report.unit for report in reports}
    return units.pop() if len(units) == 1 else "items"


def remarks(report: JobReport) -> list[str]:
    """What went otherwise than planned, a sentence each, failures last; none for most jobs but for what was moved."""
    sentences = [
        f"{bytes_text(report.bytes_moved)} moved; by the plan {bytes_text(report.bytes_moved_planned)}, "
        f"at least {bytes_text(report.bytes_moved_optimal)} for what each node did"
    ]
    if said := tell_phases(report):
        sentences.append(said)
    if report.stolen_items:
        sentences.append(f"{report.stolen_items} {report.unit} were done by another node than planned")
    if report.attempts > 1:
        sentences.append(f"the application master was started {report.attempts} times")
    for failure in sorted(report.failures, key=lambda one: one.seconds):
        why = f": {failure.said}" if failure.said else ""
        sentences.append(f"{failure.node_name} at {failure.seconds:.1f} s: {failure.kind}{why}")
    return sentences


@cache
def pages() -> Environment:
    """The templates of all pages of a job, with what they need to draw."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # whoever draws no page starts sooner

    environment = Environment(
        loader=PackageLoader("jobs.reports", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["timeline_kinds"] = KINDS
    environment.globals["phase_words"] = WORDS
    environment.filters |= {
        "byte_scale": byte_scale,
        "bytes": bytes_text,
        "largest": _largest,
        "most_done": lambda status: _largest(max(node.done, node.planned) for node in status.nodes),
        "most_items": _most_items,
        "number": number_text,
        "ratio": ratio_text,
        "tick": "{:g}".format,
        "ticks": _ticks,
    }
    return environment


def _largest(values: Iterable[float]) -> float:
    """The top of a scale; 1 where everything is 0, because bars are divided by it."""
    return max(values, default=0) or 1


def _most_items(reports: Iterable[JobReport]) -> float:
    return _largest(max(node.items, node.planned_items) for report in reports for node in report.nodes)


def _ticks(maximum: float) -> list[float]:
    """Up to six round numbers from 0 to `maximum`, in steps of 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(maximum / 5))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * 5 >= maximum)
    return [step * i for i in range(int(maximum / step) + 1)]
