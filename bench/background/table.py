"""What was measured, as the table that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

TITLES = {"shell": "Hadoop's distributed shell", "spark": "Spark"}

Rounds = Sequence[Mapping[str, Mapping[str, float]]]
"""Of each round what was measured with the plug-in (`with`) and without: seconds, containers, those on busy nodes."""


def ratio(rounds: Rounds) -> float:
    """Median over the rounds of the makespan without the plug-in over that with it in the same round."""
    return median(one["without"]["seconds"] / one["with"]["seconds"] for one in rounds)


def markdown(record: Mapping[str, Any]) -> str:
    """What was measured, each part as a table with a row for each application."""
    machine = record["machine"]
    lines = [
        f"# Applications on nodes that are ordered by measured values, {record['date']}",
        "",
        f"{machine['cores']} cores ({machine['cpu']}); the load before was {record['load_before']:.1f}, the host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others.",
        "",
        *(_makespans(record) if record["rounds"] else []),
        *(_followed_lines(record["followed"]) if record["followed"] else []),
    ]
    return "\n".join(lines)


def _makespans(record: Mapping[str, Any]) -> list[str]:
    """Medians of the rounds."""
    lines = [
        f"{record['containers']} containers of one core, each with the same work; two of four nodes share a CPU with "
        f"{record['programs']} busy programs, the other two share one that is free; nodes are ordered by the speed of "
        "a short loop, the best of five looks in ten seconds. Makespan from submission to the end, as the "
        f"ResourceManager tells it; medians of {len(next(iter(record['rounds'].values())))} rounds in turns:",
        "",
        "| application | without the plug-in: makespan, s | on busy nodes | with it: makespan, s | on busy nodes "
        "| without / with |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, rounds in record["rounds"].items():
        cells = [TITLES[name]]
        for way in ("without", "with"):
            cells.append(f"{median(one[way]['seconds'] for one in rounds):.1f}")
            on_busy = sum(one[way]["on_busy"] for one in rounds)
            cells.append(f"{on_busy:.0f} of {sum(one[way]['containers'] for one in rounds):.0f}")
        lines.append(f"| {' | '.join([*cells, f'{ratio(rounds):.2f}'])} |")
    return [*lines, ""]


def _followed_lines(found: Mapping[str, Mapping[str, Sequence[bool]]]) -> list[str]:
    lines = [
        "With nobody busy, and in each of four turns another node the best by a value that is put by hand, the only "
        "container came to the best node:",
        "",
        "| application | with the plug-in | without it |",
        "| --- | --- | --- |",
    ]
    for name, turns in found["with"].items():
        others = found["without"][name]
        lines.append(f"| {TITLES[name]} | {sum(turns)} of {len(turns)} | {sum(others)} of {len(others)} |")
    return [*lines, ""]
