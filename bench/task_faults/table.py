"""What became of the tasks, as the tables of one part and of all, and which goals are not reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.faults import goals
from bench.parts import list_wrong, trials_of
from bench.task_faults.faults import FAULTS

OF_EACH = 10
LONGEST_LOSS_SECONDS = 2.0
"""Of a log, with a node."""

Records = Sequence[dict[str, Any]]


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured, or came out wrong, a sentence each."""
    missing = goals.find_missing_goals(records, FAULTS, OF_EACH, "trials")
    losses = _losses(trials_of(records)).values()
    late = [loss for each in losses for loss in each if loss > LONGEST_LOSS_SECONDS]
    return missing + ([f"{len(late)} starts lost more than {LONGEST_LOSS_SECONDS:g} s of log"] if late else [])


def markdown(records: Records, commits: str) -> str:
    """One line for each kind of fault, then what is missing, then each trial that went wrong."""
    trials = trials_of(records)
    done = Counter(kind for trial in trials for kind in trial["faults"])
    wrong = Counter(kind for trial in trials if trial["wrong"] for kind in trial["faults"])
    losses = _losses(trials)
    seconds = sum(trial["seconds"] for trial in trials)
    strays, doubled = (sum(trial[key] for trial in trials) for key in ("strays", "doubled"))
    lines = [
        f"# Faults while tasks run, {len(records)} parts at {commits}",
        "",
        f"{done.total()} faults in {len(trials)} trials of four tasks each, two of them in boxes of Docker, on a real "
        f"cluster of 4 nodes on one machine; it took {seconds / 60:.0f} minutes. The tasks had "
        f"{sum(trial['starts'] for trial in trials)} starts. {strays} programs or boxes went on 10 s after what held "
        f"them had gone, and {doubled} outputs were not what one start left. A trial is right when each task has one "
        "end and one output, no log has a gap, and nothing is left. Lost log is what a start printed before it was cut "
        "and nobody can read.",
        "",
        "| fault | times | in trials that went wrong | starts cut | lost log at most, s |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind, fault in FAULTS.items():
        most = f"{max(losses[kind]):.1f}" if losses[kind] else ""
        lines.append(f"| {kind}: {fault.__doc__} | {done[kind]} | {wrong[kind]} | {len(losses[kind])} | {most} |")
    lines += ["", *(f"- {goal}" for goal in find_missing_goals(records))]
    lines += list_wrong(records, "trial")
    return "\n".join([*lines, ""])


def _losses(trials: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Seconds of log that each start lost, by what cut it."""
    found: dict[str, list[float]] = {kind: [] for kind in FAULTS}
    for trial in trials:
        for kind, seconds in trial["lost_seconds"]:
            found[kind].append(seconds)
    return found
