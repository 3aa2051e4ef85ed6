"""What became of the jobs, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bench.faults.kinds import FAULTS

POOL = "pool"
WHERE = {
    "local": "a real cluster of 4 nodes on one machine",
    "ha": "a real cluster of 4 nodes on one machine, with two NameNodes, ResourceManagers and services",
    "pool": "a real cluster of 4 nodes on one machine",
    "lab": "a master and 4 workers of the lab",
}
RIGHT = {
    "jobs": "A job is right when every picture has one row",
    "pools": "A pool is right when every picture has its own row, once in each job and for whoever asks about it alone",
}


def markdown(record: dict[str, Any]) -> str:
    """One line for each kind of fault, then one for each job that went wrong."""
    trials, machine = record["trials"], record["machine"]
    late = sum(len(trial["missed"]) for trial in trials)
    done = Counter(kind for trial in trials for kind in trial["faults"])
    wrong = Counter(kind for trial in trials if trial["wrong"] for kind in trial["faults"])
    seconds = sum(trial["seconds"] for trial in trials)
    what = "pools" if record["on"] == POOL else "jobs"
    lines = [
        f"# Faults in the middle of jobs, {record['date']}",
        "",
        f"{sum(done.values())} faults ({late} tries came too late) in {_tell_load(record)}, seed {record['seed']}, "
        f"part {record['part'][0]}/{record['part'][1]}; "
        f"{machine['cores']} cores ({machine['cpu']}). It took {seconds / 60:.0f} minutes: "
        f"{60 * sum(done.values()) / seconds:.1f} faults a minute. "
        f"{RIGHT[what]}, none is an error, neither a process nor a file of it is left, "
        f"and the service has all that it acknowledged meanwhile: {sum(trial['writes'] for trial in trials)} writes.",
        "",
        f"| fault | times | in {what} that went wrong |",
        "| --- | --- | --- |",
        *(f"| {kind}: {FAULTS[kind]} | {done[kind]} | {wrong[kind]} |" for kind in sorted(done)),
        "",
        f"{sum(not trial['wrong'] for trial in trials)} of {len(trials)} {what} were right, "
        f"{sum(trial['attempts'] > 1 for trial in trials)} of them with more than one application master.",
    ]
    lines += [
        f"- {what[:-1]} {one['number']} ({', '.join(one['faults'])}): {'; '.join(one['wrong'])}"
        for one in trials
        if one["wrong"]
    ]
    return "\n".join([*lines, ""])


def _tell_load(record: Mapping[str, Any]) -> str:
    """What was hit, and where."""
    trials, size = record["trials"], f"{record['pictures']} pictures"
    if record["on"] != POOL:
        return f"{len(trials)} jobs of {size} on {WHERE[record['on']]}"
    jobs, answered = (sum(trial[key] for trial in trials) for key in ("jobs", "answered"))
    refused = sum(sum(trial["refused"].values()) for trial in trials)
    return (
        f"{len(trials)} pools, which did {jobs} jobs of {size}, three at once, and answered about {answered} single "
        f"pictures, some after one of {refused} refusals, on {WHERE[POOL]}"
    )
