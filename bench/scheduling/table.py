"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.info.figures import MS, Figure, quantile
from bench.table_rows import write_head, write_row

Trial = dict[str, Any]
LEAST_RATIO = 0.95


@dataclass(frozen=True)
class Row:
    """A figure of one way to schedule; `least_ratio` is what the plug-in must reach of the stock policy's value."""

    figure: Figure
    asynchronous: bool
    value: Callable[[Trial], float | None]
    least_ratio: float | None = None


def _rate(seconds: str) -> Callable[[Trial], float | None]:
    return lambda found: found["containers"] / found[seconds] if found[seconds] else None


def _refresh(nanos: str, share: float) -> Callable[[Trial], float | None]:
    return lambda found: quantile(found[nanos], share) / 1e9 if found[nanos] else None


ROWS = (
    Row(Figure("heartbeats_per_second", "", "placed by heartbeats", "/s"), False, _rate("seconds"), LEAST_RATIO),
    Row(Figure("heartbeats_per_cpu_second", "", "the same, for a second of CPU", "/s"), False, _rate("cpuSeconds")),
    Row(
        Figure("threads_per_second", "", "placed by the scheduler's thread", "/s"), True, _rate("seconds"), LEAST_RATIO
    ),
    Row(Figure("threads_per_cpu_second", "", "the same, for a second of CPU", "/s"), True, _rate("cpuSeconds")),
    Row(Figure("refresh_p50_seconds", "", "refresh, p50", *MS, most=5e-3), False, _refresh("refreshNanos", 0.5)),
    Row(Figure("refresh_p99_seconds", "", "refresh, p99", *MS), False, _refresh("refreshNanos", 0.99)),
    Row(
        Figure("refresh_loaded_seconds", "", "refresh while heartbeats place, p50", *MS),
        False,
        _refresh("refreshNanosUnderLoad", 0.5),
    ),
)


def rows(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Every figure of both policies, the pairs of each round side by side."""
    return [_row(row, [trial for trial in trials if trial["asynchronous"] == row.asynchronous]) for row in ROWS]


def _row(row: Row, trials: Sequence[Trial]) -> dict[str, Any]:
    plugin, stock = (
        {trial["round"]: row.value(trial["found"]) for trial in trials if trial["plugin"] is ours}
        for ours in (True, False)
    )
    pairs = [(plugin[number], stock[number]) for number in sorted(plugin)]
    ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
    ours, theirs = (_median([pair[side] for pair in pairs]) for side in (0, 1))
    ratio = _median(ratios)
    return {
        "name": row.figure.key,
        "text": row.figure.text,
        "plugin": ours,
        "stock": theirs,
        "ratio": ratio,
        "ratios": ratios,
        "rounds": pairs,
        "least_ratio": row.least_ratio,
        "most": row.figure.most,
        "met": _is_met(row, ours, ratio),
    }


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _is_met(row: Row, ours: float | None, ratio: float | None) -> bool | None:
    if row.least_ratio is not None:
        return ratio is not None and ratio >= row.least_ratio
    return None if ours is None else row.figure.is_met(ours)


def markdown(record: dict[str, Any]) -> str:
    """The table with what it was measured on."""
    head = ("figure", "must reach", "stock", "plug-in", "plug-in / stock", "of all rounds", "reached")
    lines = [_cells(row, found) for row, found in zip(ROWS, record["figures"], strict=True)]
    table = [*write_head(head), *map(write_row, lines)]
    return "\n".join([f"# Scheduling, {record['date']}", "", _machine_line(record), "", *table, ""])


def _cells(row: Row, found: dict[str, Any]) -> list[str]:
    figure, ratios = row.figure, found["ratios"]
    asked = f">= {row.least_ratio:.0%} of stock" if row.least_ratio else ""
    asked = asked if figure.most is None else f"<= {figure.text_of(figure.most)}"
    values = ["" if found[side] is None else figure.text_of(found[side]) for side in ("stock", "plugin")]
    beside = [f"{found['ratio']:.1%}", f"{min(ratios):.1%} to {max(ratios):.1%}"] if ratios else ["", ""]
    return [figure.text, asked, *values, *beside, {True: "yes", False: "**no**", None: ""}[found["met"]]]


def _machine_line(record: dict[str, Any]) -> str:
    machine, size = record["machine"], record["size"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"A whole ResourceManager in one JVM with {size['nodes']:,} nodes of 16 containers each, half of them taken by "
        "eight applications in eight queues, whose containers end in no order and which ask for any node. Medians of "
        f"{size['rounds']} rounds of {size['seconds']:g} s after {size['warm_ups']} that do not count, the policies "
        "in turns, a fresh ResourceManager each time; the ratio is the median of the rounds' own. Stock is "
        "ResourceUsageMultiNodeLookupPolicy; both sort every 500 ms. The plug-in polls three values of every node each "
        "second over HTTP, a fifth of them new. Placed by heartbeats: seconds in which the scheduler handles them, one "
        "thread; by the scheduler's thread: seconds of the clock, CPU of the whole process. Refresh is one ordering of "
        f"all nodes. {machine['cores']} cores ({machine['cpu']}), {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{machine['system']}; {versions}. The load before was {record['load_before']:.1f}, the host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others. Of the applications' calls, at most "
        f"{record['idle_ratio']:.1%} in a trial found all placed that they had asked for."
    )
