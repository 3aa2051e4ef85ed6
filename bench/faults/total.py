"""The sum of kept parts, and which goals they do not reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.faults.kinds import FAULTS
from bench.faults.table import POOL
from bench.parts import find_missing_parts, list_wrong, trials_of

MOST_WANTED = 1000
OF_EACH = 30
ON_A_POOL = 100

Records = Sequence[dict[str, Any]]


@dataclass
class Count:
    """Of one kind: how often it hit, how often in jobs that went wrong, and how often it ran where."""

    times: int = 0
    wrong: int = 0
    on: dict[str, int] = field(default_factory=dict)


def count(records: Records) -> dict[str, Count]:
    """Count every kind of fault."""
    counted = {kind: Count() for kind in sorted(FAULTS)}
    for record in records:
        for trial in record["trials"]:
            for kind in trial["faults"]:
                one = counted[kind]
                one.times += 1
                one.wrong += bool(trial["wrong"])
                one.on[record["on"]] = one.on.get(record["on"], 0) + 1
    return counted


def find_missing_goals(records: Records) -> list[str]:
    """What was not measured, or came out wrong, a sentence each; faults on a pool have a goal of their own."""
    pools, others = (_select(records, is_pool) for is_pool in (True, False))
    counted = count(others)
    hit, on_a_pool = (sum(one.times for one in count(some).values()) for some in (others, pools))
    missing = [f"not measured: {part}" for part in find_missing_parts(records)]
    missing += [f"{hit} of {MOST_WANTED} faults were done"] if hit < MOST_WANTED else []
    missing += [f"{kind}: {one.times} of {OF_EACH}" for kind, one in counted.items() if one.times < OF_EACH]
    missing += [f"{ON_A_POOL} faults on a pool: {on_a_pool} were done"] if on_a_pool < ON_A_POOL else []
    for some, what in ((others, "jobs"), (pools, "pools")):
        if wrong := sum(bool(trial["wrong"]) for trial in trials_of(some)):
            missing.append(f"{wrong} {what} went wrong")
    return missing


def markdown(records: Records, commits: str) -> str:
    """One line for each kind, then what is missing, then each job that went wrong."""
    trials, pools = trials_of(records), trials_of(_select(records, is_pool=True))
    lines = [
        f"# Faults in the middle of jobs, {len(records)} parts at {commits}",
        "",
        f"{sum(len(trial['faults']) for trial in trials)} faults in {len(trials) - len(pools)} jobs and {len(pools)} "
        f"pools, of which {sum(not trial['wrong'] for trial in trials)} were right. The pools did "
        f"{sum(trial['jobs'] for trial in pools)} jobs, and answered about "
        f"{sum(trial['answered'] for trial in pools)} single pictures. The service acknowledged "
        f"{sum(trial.get('writes', 0) for trial in trials)} writes meanwhile.",
        "",
        "| fault | times | in jobs that went wrong | where |",
        "| --- | --- | --- | --- |",
    ]
    for kind, one in count(records).items():
        where = ", ".join(f"{on} {times}" for on, times in sorted(one.on.items()))
        lines.append(f"| {kind} | {one.times} | {one.wrong} | {where} |")
    lines += ["", *(f"- {goal}" for goal in find_missing_goals(records))]
    lines += list_wrong(_select(records, is_pool=False), "job") + list_wrong(_select(records, is_pool=True), "pool")
    return "\n".join([*lines, ""])


def _select(records: Records, is_pool: bool) -> Records:
    return [record for record in records if (record["on"] == POOL) is is_pool]
