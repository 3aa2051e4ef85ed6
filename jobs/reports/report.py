"""What a job did, as numbers for programs, a page for people, and a table that compares several jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from infosvc.wire.fields import answer_of, describe, described
from jobs.errors import JobError
from jobs.reports.timeline import KINDS, timeline
from locality.bounds import makespan_lower_bound

ACCEPTED = "accepted"
SEEDED = "Seeded weights, not trained ones: speeds and counts are real, the classes mean nothing."


_A_NODE = described(example="127.0.1.11")
_IMAGES = described("pictures that it did", example=20)


@dataclass(frozen=True)
class Weights:
    """Where the network's weights came from, and what that means for the classes in the result."""

    source: str = field(metadata=described("where they came from", example="seed 1"))
    meaning: str = field(default="", metadata=described("what that means for the classes", example=SEEDED))


@dataclass(frozen=True)
class InputValue:
    """One value the plan was made from."""

    data_name: str = field(metadata=described(example="perf_cpu"))
    node_name: str = field(metadata=_A_NODE)
    data_value: str = field(metadata=described("as text", example="0.5"))
    age: float = field(metadata=described("old when it was read", unit="seconds", example=1.5))
    unit: str = field(default="", metadata=described("unit of the value", example=""))
    state: str = field(default="fresh", metadata=described(example="fresh"))


@dataclass(frozen=True)
class NodeReport:
    """One node's share: what it was judged and given, and what it did."""

    node_name: str = field(metadata=_A_NODE)
    capability: float = field(metadata=described("what it was judged by", example=0.5))
    planned_images: int = field(metadata=described("pictures that the plan gave it", example=20))
    images: int = field(metadata=_IMAGES)
    local_images: int = field(metadata=described("pictures of these that lay on its own disk", example=20))
    seconds: float = field(metadata=described("of work", unit="seconds", example=20.0))
    images_per_second: float = field(metadata=described("per second", unit="pictures", example=1.0))
    known_images_per_second: float = field(
        default=0.0,
        metadata=described(
            "per second in an earlier job, of a node that this job gave nothing; else 0", unit="pictures", example=0.0
        ),
    )


@dataclass(frozen=True)
class LeaseReport:
    """One lease: who had these pictures from `begin` to `end`, in seconds since the work began.

    `outcome` is accepted, or why its rows were not taken; `origin` is the node whose part it was, None after it had
    been given back.
    """

    node_name: str
    begin: float
    end: float
    images: int
    local_images: int
    outcome: str
    origin: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether its rows stand in the results."""
        return self.outcome == ACCEPTED

    @property
    def stolen(self) -> bool:
        """Whether the plan had given these pictures to another node, or took them back from one that was lost."""
        return self.origin != self.node_name


@dataclass(frozen=True)
class Failure:
    """What a node lost on the way; `kind` is one of jobs.application.exits."""

    node_name: str = field(metadata=_A_NODE)
    container_id: str = field(metadata=described(example="container_1700000000000_0001_01_000002"))
    kind: str = field(metadata=described("how its container ended", example="lost node"))
    seconds: float = field(metadata=described("since the work began", unit="seconds", example=5.0))
    said: str = field(default="", metadata=described("what is known beyond that", example=""))
    counts: bool = field(
        default=True,
        metadata=described(
            "whether it speaks against the node; suspected pictures speak against themselves", example=True
        ),
    )


@dataclass(frozen=True)
class JobReport:
    """One job; what follows from the fields is a property, so that the numbers cannot disagree."""

    job_id: str = field(metadata=described(example="application_1700000000000_0001"))
    application_id: str = field(metadata=described("YARN's name of it", example="application_1700000000000_0001"))
    engine: str = field(metadata=described("engine and model", example="mxnet/alexnet"))
    policy: str = field(metadata=described("by which the pictures were divided", example="maxflow"))
    capability: str = field(metadata=described("data name by which the nodes were judged", example="perf_cpu"))
    images: int = field(metadata=described("pictures in all", example=40))
    errors: int = field(metadata=described("pictures whose row has an error", example=0))
    started_at: str = field(metadata=described("ISO 8601 with its zone", example="2026-01-02T03:04:05+00:00"))
    bytes_read: int = field(metadata=described("of pictures", unit="bytes", example=40000))
    bytes_moved: int = field(metadata=described("read by nodes that hold no replica", unit="bytes", example=0))
    bytes_moved_optimal: int = field(
        metadata=described("that had to move at least for what each node did", unit="bytes", example=0)
    )
    nodes: tuple[NodeReport, ...]
    inputs: tuple[InputValue, ...]
    weights: Weights
    state: str = field(default="SUCCEEDED", metadata=described(example="SUCCEEDED"))
    wall_seconds: float = field(
        default=0.0,
        metadata=described(
            "from the application master's start to the last result, planning and containers included",
            unit="seconds",
            example=25.0,
        ),
    )
    note: str = field(default="", metadata=described("what a reader must know of the figures", example=""))
    bytes_moved_planned: int = field(default=0, metadata=described("moved by the plan alone", unit="bytes", example=0))
    first_result_seconds: float = field(
        default=0.0,
        metadata=described("from the application master's start to the first result", unit="seconds", example=6.0),
    )
    attempts: int = field(default=1, metadata=described("starts of the application master", example=1))
    leases: tuple[LeaseReport, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    @describe("of the node that worked longest", unit="seconds", example=20.0)
    def makespan_seconds(self) -> float:
        """Seconds of the node that worked longest."""
        return max((node.seconds for node in self.nodes), default=0.0)

    @property
    @describe("of a perfect division at the speeds measured; 0 when none was", unit="seconds", example=20.0)
    def lower_bound_seconds(self) -> float:
        """images / sum(images_per_second): what a perfect division had taken; 0 when no speed was measured.

        A node without pictures could have taken some, so it counts with the speed it had before.
        """
        speeds = {node.node_name: node.images_per_second or node.known_images_per_second for node in self.nodes}
        return makespan_lower_bound(self.images, speeds) if any(speeds.values()) else 0.0

    @property
    @describe("makespan over lower bound, 1 is perfect; null when there is no bound", example=1.0)
    def makespan_over_bound(self) -> float | None:
        """1 is perfect; None when there is no bound."""
        bound = self.lower_bound_seconds
        return self.makespan_seconds / bound if bound else None

    @property
    @describe("share of the pictures read from the node's own disk, 0 to 1", example=1.0)
    def locality_ratio(self) -> float:
        """Share of the pictures read from the node's own disk, 0 to 1; 1 when none was read."""
        done = sum(node.images for node in self.nodes)
        return sum(node.local_images for node in self.nodes) / done if done else 1.0

    @property
    def stolen_images(self) -> int:
        """Pictures that were done by another node than the plan said."""
        return sum(lease.images for lease in self.leases if lease.accepted and lease.stolen)

    def to_json(self) -> dict[str, Any]:
        """The object of report.json."""
        return answer_of(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> JobReport:
        """Inverse of `to_json`; unknown keys are ignored, JobError names what is missing or of a wrong kind.

        Before there were leases, what was moved was what the plan moved.
        """
        try:
            rows = {
                "nodes": tuple(_record(NodeReport, node) for node in body["nodes"]),
                "inputs": tuple(_record(InputValue, value) for value in body["inputs"]),
                "weights": _record(Weights, body["weights"]),
                "leases": tuple(_record(LeaseReport, lease) for lease in body.get("leases", ())),
                "failures": tuple(_record(Failure, failure) for failure in body.get("failures", ())),
            }
            older = {"bytes_moved_planned": body["bytes_moved"]}
            report: JobReport = _record(cls, {**older, **body, **rows})
        except (KeyError, TypeError, AttributeError) as error:
            raise JobError(
                f"this is not a job's report.json ({type(error).__name__}: {error})",
                remedy="give the file that the job wrote",
            ) from None
        return report


def _record(kind: Any, body: Mapping[str, Any]) -> Any:
    return kind(**{one.name: body[one.name] for one in fields(kind) if one.name in body})


def html(report: JobReport) -> str:
    """One self-contained page that shows a job; it loads nothing from elsewhere."""
    return pages().get_template("report.html.j2").render(report=report, timeline=timeline(report))


def comparison_html(reports: Sequence[JobReport]) -> str:
    """One self-contained page with several jobs side by side, in the order given; JobError for none."""
    refuse_none(reports)
    notes = dict.fromkeys(text for r in reports for text in (r.note, r.weights.meaning) if text)
    return pages().get_template("comparison.html.j2").render(reports=reports, notes=list(notes))


def refuse_none(reports: Sequence[JobReport]) -> None:
    """JobError when there is no report."""
    if not reports:
        raise JobError("there is nothing to compare", remedy="give at least one job's report")


def remarks(report: JobReport) -> list[str]:
    """What went otherwise than planned, a sentence each, failures last; none for most jobs but for what was moved."""
    said = [
        f"{bytes_text(report.bytes_moved)} moved; by the plan {bytes_text(report.bytes_moved_planned)}, "
        f"at least {bytes_text(report.bytes_moved_optimal)} for what each node did"
    ]
    if report.stolen_images:
        said.append(f"{report.stolen_images} pictures were done by another node than planned")
    if report.attempts > 1:
        said.append(f"the application master was started {report.attempts} times")
    for failure in sorted(report.failures, key=lambda one: one.seconds):
        why = f": {failure.said}" if failure.said else ""
        said.append(f"{failure.node_name} at {failure.seconds:.1f} s: {failure.kind}{why}")
    return said


@cache
def pages() -> Environment:
    """The templates of all pages of a job, with what they need to draw."""
    environment = Environment(
        loader=PackageLoader("jobs.reports", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["timeline_kinds"] = KINDS
    environment.filters |= {
        "byte_scale": _byte_scale,
        "bytes": bytes_text,
        "largest": _largest,
        "most_done": lambda status: _largest(max(node.done, node.planned) for node in status.nodes),
        "most_pictures": _most_pictures,
        "number": _number,
        "ratio": ratio_text,
        "tick": "{:g}".format,
        "ticks": _ticks,
    }
    return environment


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
    scale, unit = _byte_scale(count)
    return f"{_number(count / scale)} {unit}"


def _byte_scale(count: float) -> tuple[int, str]:
    """The unit in which a number of bytes has up to three digits, and how many bytes that is."""
    for power, unit in enumerate(("B", "kB", "MB", "GB")):
        if count < 1000 ** (power + 1):
            return 1000**power, unit
    return 1000**4, "TB"


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
