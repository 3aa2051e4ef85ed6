"""What became of the jobs, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bench.faults.kinds import FAULTS

WHERE = {
    "local": "a real cluster of 4 nodes on one machine",
    "ha": "a real cluster of 4 nodes on one machine, with two NameNodes, ResourceManagers and services",
    "lab": "a master and 4 workers of the lab",
}


def markdown(record: dict[str, Any]) -> str:
    """One line for each kind of fault, then one for each job that went wrong."""
    trials, machine = record["trials"], record["machine"]
    late = sum(len(trial["missed"]) for trial in trials)
    done = Counter(kind for trial in trials for kind in trial["faults"])
    wrong = Counter(kind for trial in trials if trial["wrong"] for kind in trial["faults"])
    seconds = sum(trial["seconds"] for trial in trials)
    lines = [
        f"# Faults in the middle of jobs, {record['date']}",
        "",
        f"{sum(done.values())} faults ({late} tries came too late) in {len(trials)} jobs of "
        f"{record['pictures']} pictures on {WHERE[record['on']]}, seed {record['seed']}, "
        f"part {record['part'][0]}/{record['part'][1]}; "
        f"{machine['cores']} cores ({machine['cpu']}). It took {seconds / 60:.0f} minutes: "
        f"{60 * sum(done.values()) / seconds:.1f} faults a minute. "
        "A job is right when every picture has one row, none is an error, neither a process nor a file of it is left, "
        f"and the service has all that it acknowledged meanwhile: {sum(trial['writes'] for trial in trials)} writes.",
        "",
        "| fault | times | in jobs that went wrong |",
        "| --- | --- | --- |",
        *(f"| {kind}: {FAULTS[kind]} | {done[kind]} | {wrong[kind]} |" for kind in sorted(done)),
        "",
        f"{sum(not trial['wrong'] for trial in trials)} of {len(trials)} jobs were right, "
        f"{sum(trial['attempts'] > 1 for trial in trials)} of them with more than one application master.",
    ]
    lines += [
        f"- job {one['number']} ({', '.join(one['faults'])}): {'; '.join(one['wrong'])}"
        for one in trials
        if one["wrong"]
    ]
    return "\n".join([*lines, ""])
