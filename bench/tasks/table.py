"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.info.figures import LINE_HEAD, MS, Figure, line_of

FIGURES = (
    Figure("start_process_seconds", "start", "asked for to first line, box of processes", "s", most=5.0),
    Figure("start_docker_seconds", "start", "the same, box of Docker", "s", most=6.0),
    Figure("start_shell_seconds", "start", "Hadoop's distributed shell, until its program has begun", "s"),
    Figure("start_docker_run_seconds", "start", "Docker alone, on a node that is chosen already", "s"),
    Figure("line_p50_seconds", "lines", "line printed to read by a follower, p50", *MS, most=0.7),
    Figure("line_p99_seconds", "lines", "the same, p99", *MS, most=2.0),
    Figure("lines_lost", "lines", "lines lost", most=0),
    Figure("lines_doubled", "lines", "lines read twice", most=0),
    Figure("tasks_at_once", "lines", "most tasks that ran at once"),
    Figure("steps_process", "box", "a program that computes, box of processes", "steps/s"),
    Figure("steps_docker", "box", "the same, box of Docker", "steps/s"),
    Figure("box_ratio", "box", "Docker / processes, in turns", least=0.98),
    Figure("kills", "kills", "submitters killed while tasks go over to YARN"),
    Figure("kills_between", "kills", "of them, between a task's being taken and YARN's having it"),
    Figure("tasks", "kills", "tasks meanwhile"),
    Figure("tasks_never", "kills", "of them, never given to YARN", most=0),
    Figure("tasks_twice", "kills", "of them, given to YARN twice", most=0),
    Figure("tasks_not_succeeded", "kills", "of them, that did not succeed", most=0),
)


def rows(rounds: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    """Every figure that was measured, with the median of its rounds, in base units."""
    found = []
    for figure in FIGURES:
        values = [one[figure.key] for one in rounds if figure.key in one]
        if values:
            middle = median(values)
            shown = {"name": figure.key, "text": figure.text, "most": figure.most, "least": figure.least}
            found.append({**shown, "found": middle, "rounds": values, "met": figure.is_met(middle)})
    return found


def markdown(record: Mapping[str, Any]) -> str:
    """The table with what it was measured on."""
    known = {figure.key: figure for figure in FIGURES}
    lines = [line_of(known[row["name"]], row["found"], row["rounds"]) for row in record["figures"]]
    return "\n".join([f"# Tasks, {record['date']}", "", _scene_line(record), "", *LINE_HEAD, *lines, ""])


def _scene_line(record: Mapping[str, Any]) -> str:
    machine, size = record["machine"], record["size"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"A cluster of {size['nodes']} nodes on one machine, with the service and its submitter; medians of "
        f"{size['rounds']} rounds, in which all ways take turns. Lines: {size['tasks']} tasks that print "
        f"{size['lines_per_second']} lines a second each for {size['line_seconds']:g} s, each followed as by "
        f"`task logs -f`. Boxes: {size['box_seconds']:g} s of computing on one core. {machine['cores']} cores "
        f"({machine['cpu']}), {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; {versions}. Load before: "
        f"{record['load_before']:.1f}, the host gave {record['steal_ratio']:.1%} of the CPU time to others."
    )
