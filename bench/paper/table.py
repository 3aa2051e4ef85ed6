"""What was measured, as the table that is read, next to what the paper found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.paper.figures import Run, Target, beside_best, good_runs, middle, moved_ratio, targets
from bench.paper.methods import TITLES
from bench.table_rows import write_row
from jobs.reports.texts import bytes_text

FOUND = {
    "even": "balances badly",
    "cpu": "depends on the formula",
    "history": "balances well while nodes stay steady",
}
"""What the paper says of its three ways."""

Form = Callable[[float], str]


def markdown(record: Mapping[str, Any]) -> str:
    """Targets, a row for each method, its nodes, and what failed."""
    runs, machine = record["runs"], record["machine"]
    rounds = len({run["round"] for run in runs})
    steal = max((run["steal_ratio"] for run in runs), default=0.0)
    lines = [
        f"# The paper's experiment, {record['date']}",
        "",
        f"{record['pictures']} pictures, {record['engine']}, batch {record['batch']}; a master and four workers of "
        f"{record['cpus']:g} CPU each as containers on {machine['cores']} cores ({machine['cpu']}, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB); medians of {rounds} rounds in turns. The host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others, at most {steal:.1%} in a run. Makespan runs from the "
        "first read on any node to the last result; the bound is pictures / sum of the speeds that the nodes had in "
        "the same run, for the killed one that of those that stayed, what the dead one had recorded taken off.",
        "",
        *_scene(record["scene"]),
        "",
        "| target | must be | found | reached |",
        "| --- | --- | --- | --- |",
        *map(_target, targets(runs, record["pictures"])),
        "",
        *_methods(runs),
        "",
        *_nodes(runs, sorted(record["scene"]["wanted"])),
        *_failure_lines(runs),
    ]
    return "\n".join([*lines, ""])


def _scene(scene: Mapping[str, Any]) -> list[str]:
    """How busy each worker was, and what that left it."""
    lines = [
        f"Background load by stress-ng, drawn with seed {scene['seed']}; images/s of the plain loop, all at once:",
        "",
        "| worker | to be left | stress-ng asks for, of a CPU | idle | with the load | left | in the first job |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in sorted(scene["wanted"]):
        idle, loaded = scene["idle"].get(name), scene["loaded"].get(name)
        left = f"{loaded / idle:.0%}" if idle and loaded else ""
        cells = [name, f"{scene['wanted'][name]:.0%}", f"{scene['percent'][name]} %"]
        cells += [_number("{:.1f}", idle), _number("{:.1f}", loaded), left]
        lines.append(write_row([*cells, _number("{:.1f}", scene["taught"].get(name))]))
    return lines


def _target(one: Target) -> str:
    said = "not measured" if one.reached is None else "yes" if one.reached else "no"
    return write_row([one.title, one.must, one.found or "", said])


def _methods(runs: Sequence[Run]) -> list[str]:
    lines = [
        "| method | makespan, s | over bound | over the fourth's | bytes moved | optimum | moved over optimum "
        "| own disk | the paper |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method, title in TITLES.items():
        if not good_runs(runs, method):
            continue
        cells = [
            title,
            _median(runs, method, "seconds", "{:.1f}".format),
            _median(runs, method, "over_bound", "{:.2f}".format),
            _number("{:.2f}", beside_best(runs, method)),
            _median(runs, method, "bytes_moved", bytes_text),
            _median(runs, method, "bytes_moved_optimal", bytes_text),
            _ratio(moved_ratio(runs, method)),
            _median(runs, method, "locality_ratio", "{:.1%}".format),
            FOUND.get(method, ""),
        ]
        lines.append(write_row(cells))
    return lines


def _nodes(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    """Medians of each node's seconds, its pictures in brackets."""
    lines = [
        f"| seconds of work (pictures) | {' | '.join(names)} |",
        "| --- " * (len(names) + 1) + "|",
    ]
    for method, title in TITLES.items():
        if good_runs(runs, method):
            lines.append(write_row([title, *(_node(runs, method, name) for name in names)]))
    return lines


def node_seconds(runs: Sequence[Run], method: str, name: str) -> float | None:
    """The median of the seconds that a node worked."""
    return middle(runs, method, lambda one: float(one["nodes"][name]["seconds"]))


def _node(runs: Sequence[Run], method: str, name: str) -> str:
    images = middle(runs, method, lambda one: float(one["nodes"][name]["images"]))
    return f"{_number('{:.1f}', node_seconds(runs, method, name))} ({_number('{:.0f}', images)})"


def _failure_lines(runs: Sequence[Run]) -> list[str]:
    failed = [run for run in runs if "failed" in run]
    lines = [f"- {TITLES[run['method']]}, round {run['round'] + 1}: {run['failed']}" for run in failed]
    return ["", f"{len(failed)} of {len(runs)} runs failed:", "", *lines] if failed else []


def _median(runs: Sequence[Run], method: str, key: str, form: Form) -> str:
    value = middle(runs, method, lambda one: one.get(key))
    return "" if value is None else form(value)


def _ratio(value: float | None) -> str:
    return "\N{INFINITY}" if value is not None and math.isinf(value) else _number("{:.2f}", value)


def _number(form: str, value: float | None) -> str:
    return "" if value is None else form.format(value)
