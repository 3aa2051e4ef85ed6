"""What became of the runs, as the tables of one part and of all, and which goals are not reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.faults import goals
from bench.parts import list_wrong, trials_of
from bench.training_faults.faults import FAULTS

OF_EACH = 5

Records = Sequence[dict[str, Any]]


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured, or came out wrong, a sentence each."""
    return goals.find_missing_goals(records, FAULTS, OF_EACH, "runs")


def markdown(records: Records, commits: str) -> str:
    """One line for each kind of fault, then what is missing, then each run that went wrong."""
    trials = trials_of(records)
    done = Counter(kind for trial in trials for kind in trial["faults"])
    wrong = Counter(kind for trial in trials if trial["wrong"] for kind in trial["faults"])
    pauses = [pause for trial in trials for pause in trial["pause_seconds"]]
    differences = [trial["difference"] for trial in trials if trial["difference"] is not None]
    worst = f"{max(differences):.1e}" if differences else "unknown"
    lines = [
        f"# Faults while a run trains, {len(records)} parts at {commits}",
        "",
        f"{done.total()} faults in {len(trials)} runs of two to four members, on a real cluster of 4 nodes on one "
        f"machine; it took {sum(trial['seconds'] for trial in trials) / 60:.0f} minutes. Members were grouped "
        f"{sum(trial['generations'] for trial in trials)} times. Parameters differ by {worst} at most from those of "
        f"one process alone, and {sum(trial['wrong_samples'] for trial in trials)} samples were missed or used twice. "
        "A run is right when it comes to its end by itself, no parameter differs by more than 1e-10, each step has had "
        "its samples once, the last checkpoint is stored, and nothing is left running. A pause is the longest time "
        "without a step from the fault on, until the next fault.",
        "",
        "| fault | times | in runs that went wrong | pause in the middle, s | longest pause, s |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind, fault in FAULTS.items():
        own = [seconds for one, seconds in pauses if one == kind]
        told = f"{median(own):.1f} | {max(own):.1f}" if own else " | "
        lines.append(f"| {kind}: {fault.__doc__} | {done[kind]} | {wrong[kind]} | {told} |")
    lines += ["", *(f"- {goal}" for goal in find_missing_goals(records))]
    lines += list_wrong(records, "run")
    return "\n".join([*lines, ""])
