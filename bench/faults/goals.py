"""What a hundred random faults have to show, for every bench that draws them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import click

from bench.parts import find_missing_parts, trials_of

MOST_WANTED = 100


def find_missing_goals(records: Sequence[dict[str, Any]], kinds: Iterable[str], of_each: int, what: str) -> list[str]:
    """Which parts and faults were not done, and how many trials, called `what`, came out wrong, a sentence each."""
    trials = trials_of(records)
    done = Counter(kind for trial in trials for kind in trial["faults"])
    missing = [f"not measured: {part}" for part in find_missing_parts(records)]
    missing += [f"{done.total()} of {MOST_WANTED} faults were done"] if done.total() < MOST_WANTED else []
    missing += [f"{kind}: {done[kind]} of {of_each}" for kind in kinds if done[kind] < of_each]
    wrong = sum(bool(trial["wrong"]) for trial in trials)
    return missing + ([f"{wrong} {what} went wrong"] if wrong else [])


def tell_sum(missing: Sequence[str], table: str, as_json: bool) -> bool:
    """Print the table of all parts, or what is missing as JSON, and tell whether a goal is missed."""
    click.echo(json.dumps({"missing": missing}, indent=1) if as_json else table)
    return bool(missing)
