"""What a job did, as numbers for programs, a page for people, and a table that compares several jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import zip_longest
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.table import Table

from jobs.errors import JobError
from locality.bounds import makespan_lower_bound

SEEDED = "Seeded weights, not trained ones: speeds and counts are real, the classes mean nothing."


@dataclass(frozen=True)
class Weights:
    """Where the network's weights came from, and what that means for the classes in the result."""

    source: str
    meaning: str = ""


@dataclass(frozen=True)
class InputValue:
    """One value the plan was made from, as text, with its age in seconds when it was read."""

    data_name: str
    node_name: str
    data_value: str
    age: float
    unit: str = ""
    state: str = "fresh"


@dataclass(frozen=True)
class NodeReport:
    """One node's share: what it was judged and given, and what it did in `seconds` of work.

    `known_images_per_second` is its speed in an earlier job, for a node that this job gave nothing; else 0.
    """

    node_name: str
    capability: float
    planned_images: int
    images: int
    local_images: int
    seconds: float
    images_per_second: float
    known_images_per_second: float = 0.0


@dataclass(frozen=True)
class JobReport:
    """One job; what follows from the fields is a property, so that the numbers cannot disagree.

    `errors` counts pictures whose row has an error; `started_at` is ISO 8601 with its zone; `wall_seconds` is
    the time from the application master's start to the last result, planning and containers included.
    """

    job_id: str
    application_id: str
    engine: str
    policy: str
    capability: str
    images: int
    errors: int
    started_at: str
    bytes_read: int
    bytes_moved: int
    bytes_moved_optimal: int
    nodes: tuple[NodeReport, ...]
    inputs: tuple[InputValue, ...]
    weights: Weights
    state: str = "SUCCEEDED"
    wall_seconds: float = 0.0
    note: str = ""

    @property
    def makespan_seconds(self) -> float:
        """Seconds of the node that worked longest."""
        return max((node.seconds for node in self.nodes), default=0.0)

    @property
    def lower_bound_seconds(self) -> float:
        """images / sum(images_per_second): what a perfect division had taken; 0 when no speed was measured.

        A node without pictures could have taken some, so it counts with the speed it had before.
        """
        speeds = {node.node_name: node.images_per_second or node.known_images_per_second for node in self.nodes}
        return makespan_lower_bound(self.images, speeds) if any(speeds.values()) else 0.0

    @property
    def makespan_over_bound(self) -> float | None:
        """1 is perfect; None when there is no bound."""
        bound = self.lower_bound_seconds
        return self.makespan_seconds / bound if bound else None

    @property
    def locality_ratio(self) -> float:
        """Share of the pictures read from the node's own disk, 0 to 1; 1 when none was read."""
        done = sum(node.images for node in self.nodes)
        return sum(node.local_images for node in self.nodes) / done if done else 1.0

    def to_json(self) -> dict[str, Any]:
        """The object of report.json."""
        return asdict(self) | {
            "makespan_seconds": self.makespan_seconds,
            "lower_bound_seconds": self.lower_bound_seconds,
            "makespan_over_bound": self.makespan_over_bound,
            "locality_ratio": self.locality_ratio,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> JobReport:
        """Inverse of `to_json`; unknown keys are ignored, JobError names what is missing or of a wrong kind."""
        try:
            rows = {
                "nodes": tuple(_record(NodeReport, node) for node in body["nodes"]),
                "inputs": tuple(_record(InputValue, value) for value in body["inputs"]),
                "weights": _record(Weights, body["weights"]),
            }
            report: JobReport = _record(cls, {**body, **rows})
        except (KeyError, TypeError, AttributeError) as error:
            raise JobError(
                f"this is not a job's report.json ({type(error).__name__}: {error}): give the file that the job wrote"
            ) from None
        return report


def _record(kind: Any, body: Mapping[str, Any]) -> Any:
    return kind(**{field.name: body[field.name] for field in fields(kind) if field.name in body})


def html(report: JobReport) -> str:
    """One self-contained page that shows a job; it loads nothing from elsewhere."""
    return _pages().get_template("report.html.j2").render(report=report)


def comparison_html(reports: Sequence[JobReport]) -> str:
    """One self-contained page with several jobs side by side, in the order given; JobError for none."""
    _refuse_none(reports)
    notes = dict.fromkeys(text for r in reports for text in (r.note, r.weights.meaning) if text)
    return _pages().get_template("comparison.html.j2").render(reports=reports, notes=list(notes))


def comparison(reports: Sequence[JobReport]) -> Table:
    """Pictures and seconds per node for each way to judge and divide, then its makespan beside the lower bound.

    Source: figure 8 of the paper. JobError when there is no report.
    """
    _refuse_none(reports)
    table = Table("judged by,\ndivided by", "node")
    for heading in ("images", "seconds", "bound", "over bound", "moved"):
        table.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        nodes = [(node.node_name, str(node.images), f"{node.seconds:.1f}") for node in report.nodes]
        for name, row in zip_longest((report.capability, report.policy), (*nodes, _makespan(report)), fillvalue=""):
            table.add_row(name, *row, style="bold" if len(row) > 3 else None)
        table.add_section()
    return table


def _makespan(report: JobReport) -> tuple[str, ...]:
    return (
        "makespan",
        str(report.images),
        f"{report.makespan_seconds:.1f}",
        f"{report.lower_bound_seconds:.1f}",
        ratio_text(report.makespan_over_bound),
        bytes_text(report.bytes_moved),
    )


def _refuse_none(reports: Sequence[JobReport]) -> None:
    if not reports:
        raise JobError("there is nothing to compare: give at least one job's report")


@cache
def _pages() -> Environment:
    pages = Environment(
        loader=PackageLoader("jobs", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {
        "bytes": bytes_text,
        "largest": _largest,
        "most_pictures": _most_pictures,
        "number": _number,
        "ratio": ratio_text,
        "tick": "{:g}".format,
        "ticks": _ticks,
    }
    return pages


def _number(value: float) -> str:
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
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{_number(count)} {unit}"
        count /= 1000
    return f"{_number(count)} TB"


def _largest(values: Iterable[float]) -> float:
    """The top of a scale; 1 where everything is 0, because bars are divided by it."""
    return max(values, default=0) or 1


def _most_pictures(reports: Iterable[JobReport]) -> float:
    return _largest(max(node.images, node.planned_images) for report in reports for node in report.nodes)


def _ticks(maximum: float) -> list[float]:
    """Up to six round numbers from 0 to `maximum`, in steps of 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(maximum / 5))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * 5 >= maximum)
    return [step * i for i in range(int(maximum / step) + 1)]
