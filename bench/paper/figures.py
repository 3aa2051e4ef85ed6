"""What follows from what was measured: bounds, ratios, medians, and whether the targets are reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from locality.bounds import makespan_lower_bound

BEST, SINGLE, EVEN, KILLED = "maxflow", "single", "even", "killed"
MOST_OVER_BOUND, LEAST_EVEN, MOST_OVER_OPTIMUM, MOST_OVER_NEW_BOUND = 1.10, 1.3, 1.05, 1.15

Run = Mapping[str, Any]
"""One run of one method, as the journal has it: either `failed`, the reason, or what was measured."""


@dataclass(frozen=True)
class Target:
    """What must be reached; `found` is None when nothing was measured, and `reached` then too."""

    title: str
    must: str
    found: str | None
    reached: bool | None


def killed_bound(images: int, recorded: int, staying: Mapping[str, float]) -> float:
    """The shortest makespan when one node dies on the way, in seconds since the first read.

    The smallest T with recorded + T * sum(staying) >= images: what the node that died had `recorded` counts, all other
    pictures are done by the nodes that stay, which work from the beginning to the end. With s the speed that the dead
    node had until t, recorded = s * t, and this is the T of "everybody works until t, then those that stay":
    t + (images - t * (s + sum(staying))) / sum(staying). PlanError when none of those that stay has a speed above 0.
    """
    return makespan_lower_bound(max(images - recorded, 0), staying)


def from_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a job of nodewise did, by its report.json.

    The makespan runs from the first read on any node to the last result, so what slow nodes take longer to load the
    engine is in it, as it is for Spark; `report_over_bound` is the report's own, without that.
    """
    counted = [lease for lease in report["leases"] if lease["outcome"] == "accepted"]
    nodes = {
        node["node_name"]: {
            "seconds": node["seconds"],
            "images": node["images"],
            "speed": node["images_per_second"] or node["known_images_per_second"],
        }
        for node in report["nodes"]
    }
    seconds = max(lease["end"] for lease in counted) - min(lease["begin"] for lease in counted)
    known = {name: report[name] for name in ("images", "errors", "bytes_read", "bytes_moved", "bytes_moved_optimal")}
    return add_bound(report["images"], seconds, nodes) | {
        **known,
        "bytes_moved_planned": report["bytes_moved_planned"],
        "locality_ratio": report["locality_ratio"],
        "report_over_bound": report["makespan_over_bound"],
        "application": report["application_id"],
        "attempts": report["attempts"],
        "failures": report["failures"],
    }


def from_pieces(pieces: Sequence[Mapping[str, Any]], known: Mapping[str, float]) -> dict[str, Any]:
    """What an application did whose pieces say on which node they began and ended, with so many images.

    A node that got none counts in the bound with the speed it is `known` for, as in a job's report.
    """
    nodes = {name: {"seconds": 0.0, "images": 0, "speed": speed} for name, speed in sorted(known.items())}
    for name in sorted({piece["node"] for piece in pieces}):
        mine = [piece for piece in pieces if piece["node"] == name]
        seconds = max(piece["ended"] for piece in mine) - min(piece["started"] for piece in mine)
        images = sum(piece["images"] for piece in mine)
        nodes[name] = {"seconds": seconds, "images": images, "speed": images / seconds if seconds else 0.0}
    images = sum(int(node["images"]) for node in nodes.values())
    seconds = max(piece["ended"] for piece in pieces) - min(piece["started"] for piece in pieces)
    return add_bound(images, seconds, nodes) | {"images": images}


def add_bound(images: int, seconds: float, nodes: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """The makespan beside the bound of the speeds that the nodes had in this very run."""
    bound = makespan_lower_bound(images, {name: node["speed"] for name, node in nodes.items()})
    return {"seconds": seconds, "bound": bound, "over_bound": seconds / bound, "nodes": dict(nodes)}


def with_death(found: Mapping[str, Any], dead: str) -> dict[str, Any]:
    """The same run beside the bound of the nodes that stayed."""
    staying = {name: node["speed"] for name, node in found["nodes"].items() if name != dead}
    recorded = found["nodes"][dead]["images"]
    bound = killed_bound(found["images"], recorded, staying)
    return {**found, "bound": bound, "over_bound": found["seconds"] / bound, "dead": dead, "recorded": recorded}


def good_runs(runs: Sequence[Run], method: str) -> list[Run]:
    """The runs of a method that ended as they should, by their round."""
    return sorted(
        (one for one in runs if one["method"] == method and "failed" not in one), key=lambda one: one["round"]
    )


def middle(runs: Sequence[Run], method: str, of: Callable[[Run], float | None]) -> float | None:
    """The median of a figure over the rounds that have it; None when no round has."""
    values = [value for one in good_runs(runs, method) if (value := of(one)) is not None]
    return median(values) if values else None


def beside_best(runs: Sequence[Run], method: str) -> float | None:
    """Median over the rounds of a method's makespan over that of history, maxflow and stealing in the same round."""
    best = {one["round"]: one["seconds"] for one in good_runs(runs, BEST)}
    ratios = [one["seconds"] / best[one["round"]] for one in good_runs(runs, method) if one["round"] in best]
    return median(ratios) if ratios else None


def over_optimum(moved: float, optimal: float) -> float:
    """Bytes moved over the fewest that the same loads allow; 1 where nothing had to move and nothing did."""
    if optimal:
        return moved / optimal
    return math.inf if moved else 1.0


def moved_ratio(runs: Sequence[Run], method: str) -> float | None:
    """The bytes of all rounds over the optimum of all rounds, as a single one may have an optimum of 0."""
    having = [one for one in good_runs(runs, method) if "bytes_moved" in one]
    if not having:
        return None
    return over_optimum(sum(one["bytes_moved"] for one in having), sum(one["bytes_moved_optimal"] for one in having))


def count_lost(run: Run, pictures: int) -> int:
    """Pictures of a run that have no row, or more than one."""
    return int(abs(run["rows"] - pictures) + pictures - run["paths"])


def targets(runs: Sequence[Run], pictures: int) -> list[Target]:
    """Each target with what was found; a run of `killed` that failed has lost its images."""
    over = middle(runs, BEST, lambda one: one["over_bound"])
    even = beside_best(runs, EVEN)
    moved = moved_ratio(runs, SINGLE)
    killed = middle(runs, KILLED, lambda one: one["over_bound"])
    failed = [one for one in runs if one["method"] == KILLED and "failed" in one]
    missing = [count_lost(one, pictures) for one in good_runs(runs, KILLED)]
    whole = not failed and not any(missing) if failed or missing else None
    said = None if whole is None else f"{sum(missing)} images, {len(failed)} of {len(failed) + len(missing)} jobs"
    return [
        _most("history, maxflow, stealing: makespan over bound", MOST_OVER_BOUND, over),
        Target(
            "even: makespan over that", f">= {LEAST_EVEN:.2f}", _two(even), None if even is None else even >= LEAST_EVEN
        ),
        _most("the same with one replica: bytes moved over optimum", MOST_OVER_OPTIMUM, moved),
        _most("one of four killed: makespan over the new bound", MOST_OVER_NEW_BOUND, killed),
        Target("one of four killed: lost", "0 images, 0 jobs", said, whole),
    ]


def _most(title: str, most: float, found: float | None) -> Target:
    return Target(title, f"<= {most:.2f}", _two(found), None if found is None else found <= most)


def _two(value: float | None) -> str | None:
    if value is None:
        return None
    return "\N{INFINITY}" if math.isinf(value) else f"{value:.2f}"
