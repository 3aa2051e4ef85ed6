"""The tables of one part or of all that are kept, and which goals were not reached or not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.environments.goals import GOALS, NOT_MEASURED, Found, Missing
from bench.environments.pieces import PIECES
from bench.environments.ways import BOTH, CACHED, COLD, FETCH, LAY_OUT, OURS, SHARED
from bench.table_rows import write_head, write_row

Records = Sequence[Mapping[str, Any]]
SECONDS_HEAD = ("way", "fetch", "lay out", "start", "ready", "ready / ours", "import", "again", "first step", "rounds")
BYTES_HEAD = ("way", "one program", "one more", "rounds")
ASKING_HEAD = ("question", "answered after", "at most", "rounds")
MEMORY = "memory"


def gather(records: Records) -> Found:
    """All readings, by piece, way and phase."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in records:
        for piece, ways in record["readings"].items():
            for way, phases in ways.items():
                for phase, values in phases.items():
                    found.setdefault(piece, {}).setdefault(way, {}).setdefault(phase, []).extend(values)
    return found


def sizes(records: Records) -> dict[str, float]:
    """Bytes that each way fetches."""
    return {way: float(size) for record in records for way, size in record["sizes"].items()}


def values(records: Records) -> dict[str, float]:
    """What was found for each goal that was measured."""
    readings, bytes_of = gather(records), sizes(records)
    found = {}
    for goal in GOALS:
        try:
            found[goal.text] = goal.value(readings, bytes_of)
        except Missing:
            continue
    return found


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured or not reached, a sentence each."""
    known, found = values(records), gather(records)
    missing = [f"not measured: {piece}" for piece in PIECES if piece not in found]
    missing += [f"failed: {piece}: {why}" for record in records for piece, why in record["failed"].items()]
    for goal in GOALS:
        if goal.text not in known:
            missing.append(f"not measured: {goal.text}")
        elif not goal.is_reached(known[goal.text]):
            missing.append(f"not reached: {goal.text}: {known[goal.text]:.2f}, not {goal.asked}")
    return missing + [f"not measured: {what}" for what in NOT_MEASURED]


def markdown(records: Records, title: str) -> str:
    """A table for each piece, the goals, what was measured on which machine, and what is missing."""
    found = gather(records)
    lines = [f"# Environments, {title}", "", *_sizes_told(records), ""]
    for piece in PIECES:
        if piece in found:
            rows = _TABLES[piece](found) if piece in _TABLES else _seconds(found, piece)
            lines += [f"## {piece}", "", *rows, ""]
    lines += ["## Goals", "", *_goals(records), "", *map(_scene, records), ""]
    return "\n".join([*lines, *(f"- {one}" for one in find_missing_goals(records)), ""])


def _sizes_told(records: Records) -> list[str]:
    told = ", ".join(f"{way} {size / 1e6:,.1f} MB" for way, size in sizes(records).items())
    return [f"Medians. To fetch: {told}."]


def _seconds(found: Found, piece: str) -> list[str]:
    order = dict.fromkeys(way.name for way in (*COLD, *CACHED))
    return [*write_head(SECONDS_HEAD), *(_seconds_line(found[piece], way) for way in order if way in found[piece])]


def _seconds_line(ways: Mapping[str, Mapping[str, Sequence[float]]], way: str) -> str:
    phases = ways[way]

    def cell(phase: str) -> str:
        return _text(median(phases[phase])) if phase in phases else ""

    both = f"{cell(BOTH)}, with laying out" if BOTH in phases else cell(FETCH)
    ours = ways.get(OURS.name)
    ratio = f"{median(phases['ready']) / median(ours['ready']):.2f}" if ours else ""
    cells = [way, both, cell(LAY_OUT), cell("start"), cell("ready"), ratio, cell("import"), cell("import_again")]
    return write_row([*cells, cell("step"), str(len(phases["ready"]))])


def _memory(found: Found) -> list[str]:
    lines = write_head(BYTES_HEAD)
    for way in (one.name for one in SHARED if one.name in found[MEMORY]):
        phases = found[MEMORY][way]
        cells = [f"{median(phases[name]) / 1e6:,.0f} MB" for name in ("one", "one_more")]
        lines.append(write_row([way, *cells, str(len(phases["one"]))]))
    return lines


def _asking(found: Found) -> list[str]:
    lines = write_head(ASKING_HEAD)
    for question, phases in found["asking"].items():
        seconds = phases["ready"]
        lines.append(write_row([question, _text(median(seconds)), _text(max(seconds)), str(len(seconds))]))
    return lines


_TABLES = {MEMORY: _memory, "asking": _asking}
"""Of pieces that are not about phases."""


def _goals(records: Records) -> list[str]:
    known = values(records)
    lines = write_head(("goal", "must be", "found", "reached"))
    for goal in GOALS:
        if goal.text in known:
            value = known[goal.text]
            lines.append(
                write_row([goal.text, goal.asked, f"{value:.2f}", "yes" if goal.is_reached(value) else "**no**"])
            )
    return lines


def _scene(record: Mapping[str, Any]) -> str:
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"- {record['date']}, part {record['part'][0]}/{record['part'][1]}, seed {record['seed']} "
        f"({', '.join(record['pieces'])}): {record['nodes']} nodes on {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['file_system']}; {versions}. Load before: {record['load_before']:.1f}, the host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others. It took {record['seconds'] / 60:.0f} minutes."
    )


def _text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 10 else f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"
