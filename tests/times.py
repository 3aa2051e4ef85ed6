"""How long each module of tests took: pytest notes it, and `python -m tests.times FOLDER` adds up several runs.

A run writes its notes to the file that NODEWISE_TEST_TIMES names; without it, it prints them itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

NOTES = "NODEWISE_TEST_TIMES"
SLOWEST = 10
OUTCOMES = ("passed", "failed", "error", "skipped")


class Times:
    """A plugin of pytest: adds up set-up, call and tear-down by module, and counts how tests ended."""

    def __init__(self) -> None:
        self.seconds: dict[str, Counter[str]] = {}
        self.skipped: Counter[str] = Counter()
        self.began = time.monotonic()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One of the three phases of a test is over."""
        module = report.nodeid.partition("::")[0]
        self.seconds.setdefault(module, Counter())[report.when] += report.duration
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped[f"{module}: {report.longrepr[2].removeprefix('Skipped: ')}"] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """All tests are over."""
        stats = terminalreporter.stats
        notes = {
            "seconds": self.seconds,
            "whole": time.monotonic() - self.began,
            "skipped": self.skipped,
            "outcomes": {name: len(stats.get(name, ())) for name in OUTCOMES},
            "failed": [report.nodeid for name in ("failed", "error") for report in stats.get(name, ())],
        }
        if file := os.environ.get(NOTES):
            Path(file).write_text(json.dumps(notes))
        else:
            terminalreporter.write_line("\n".join(slowest([notes])))


def slowest(runs: Iterable[dict[str, Any]]) -> list[str]:
    """The modules that took longest in all runs, and what all took, each with its set-ups."""
    seconds: dict[str, Counter[str]] = {}
    for run in runs:
        for module, spent in run["seconds"].items():
            seconds.setdefault(module, Counter()).update(spent)
    first = sorted(seconds.items(), key=lambda item: -item[1].total())[:SLOWEST]
    setups, total = sum(spent["setup"] for spent in seconds.values()), sum(s.total() for s in seconds.values())
    return [
        "The slowest modules, and how much of that was set-up:",
        *(f"{spent.total():7.1f} s {spent['setup']:7.1f} s  {module}" for module, spent in first),
        f"{total:7.1f} s {setups:7.1f} s  all {len(seconds)} modules",
    ]


def summary(named: Mapping[str, dict[str, Any]]) -> list[str]:
    """What all runs skipped and why, what was slow, how long each run took, what failed, and how their tests ended."""
    skipped, outcomes, runs = Counter[str](), Counter[str](), list(named.values())
    for run in runs:
        skipped.update(run["skipped"])
        outcomes.update(run["outcomes"])
    return [
        *(f"SKIPPED [{count}] {why}" for why, count in sorted(skipped.items())),
        *slowest(runs),
        "The runs took " + ", ".join(f"{name} {run['whole']:.0f} s" for name, run in named.items()),
        *(f"FAILED {name}" for run in runs for name in run["failed"]),
        ", ".join(f"{outcomes[name]} {name}" for name in OUTCOMES),
    ]


if __name__ == "__main__":
    found = {file.stem: json.loads(file.read_text()) for file in sorted(Path(sys.argv[1]).glob("*.json"))}
    print(*summary(found), sep="\n")
