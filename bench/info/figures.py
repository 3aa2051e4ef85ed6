"""Every figure of the bench: what it says, what it must reach, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One row. Values are seconds, bytes, cores or counts; `factor` turns them into the `unit` that is shown.

    `most` or `least` is what must be reached, in the unit of the values; a figure with neither only informs.
    """

    key: str
    part: str
    text: str
    unit: str = ""
    factor: float = 1.0
    most: float | None = None
    least: float | None = None

    def is_met(self, value: float) -> bool | None:
        """Whether a value reaches what it must; None when nothing is asked of it."""
        if self.most is not None:
            return value <= self.most
        return None if self.least is None else value >= self.least

    def text_of(self, value: float) -> str:
        """A value in the unit of the table."""
        number = value * self.factor
        digits = 0 if number >= 100 else 1 if number >= 10 else 2
        return f"{number:,.{digits}f} {self.unit}".strip()


def line_of(figure: Figure, value: float, rounds: Sequence[float]) -> str:
    """A line of a table: what must be reached, what was found, in which range, and whether it was reached."""
    asked = f"<= {figure.text_of(figure.most)}" if figure.most is not None else ""
    asked = asked or (f">= {figure.text_of(figure.least)}" if figure.least is not None else "")
    reached = {True: "yes", False: "**no**", None: ""}[figure.is_met(value)]
    spread = f"{figure.text_of(min(rounds))} to {figure.text_of(max(rounds))}"
    return f"| {figure.text} | {asked} | {figure.text_of(value)} | {spread} | {reached} |"


LINE_HEAD = ["| figure | must reach | found | least to most | reached |", "| --- | --- | --- | --- | --- |"]
"""Above such lines."""
MS, PERCENT, MB = ("ms", 1e3), ("% of a core", 1e2), ("MB", 1e-6)
# What all hold resident, pages that they share counted once.
MEMORY = "memory of agent, guard and template, without running collectors"

FIGURES = (
    Figure("read_p50_seconds", "read", "read one name of all nodes during ingest, one client, p50", *MS, most=1e-3),
    Figure("read_p99_seconds", "read", "the same, p99", *MS, most=5e-3),
    Figure("reads_per_second", "read", "the same, eight clients", "reads/s", least=2000),
    Figure("mixed_reads_per_second", "read", "the same, eight clients, another name each time", "reads/s"),
    Figure("ingest_fast", "ingest", "ingest acknowledged fast, SQLite", "values/s", least=100_000),
    Figure("ingest_durable", "ingest", "ingest acknowledged durable, SQLite", "values/s", least=25_000),
    Figure("ingest_mariadb", "ingest", "ingest acknowledged durable, MariaDB", "values/s", least=12_000),
    Figure("restart_sqlite_seconds", "restart", "killed and started again: ready, SQLite", "s", most=2.0),
    Figure("restart_mariadb_seconds", "restart", "the same, MariaDB", "s", most=2.0),
    Figure("server_cores", "server", "server under the load, durable: CPU", *PERCENT, most=0.3),
    Figure("server_rss_bytes", "server", "the same: memory", *MB, most=190e6),
    Figure(
        "small_read_p99_seconds", "scale", "small fleet: read one name of all nodes, one client, p99", *MS, most=2.5e-3
    ),
    Figure("middle_read_p99_seconds", "scale", "middle fleet: the same", *MS, most=2.5e-3),
    Figure("large_read_p99_seconds", "scale", "large fleet: the same", *MS, most=5e-3),
    Figure("small_cores", "scale", "small fleet: CPU of the server", *PERCENT),
    Figure("middle_cores", "scale", "middle fleet: the same", *PERCENT),
    Figure("large_cores", "scale", "large fleet: the same", *PERCENT),
    Figure("middle_growth", "scale", "CPU for each agent, middle / small fleet", most=1.15),
    Figure("large_growth", "scale", "CPU for each agent, large / small fleet", most=1.15),
    Figure("large_rss_bytes", "scale", "large fleet: memory of the server", *MB),
    Figure("visible_p50_seconds", "visible", "report to visible, p50", *MS),
    Figure("visible_p99_seconds", "visible", "report to visible, p99", *MS, most=50e-3),
    Figure("age_p99_seconds", "visible", "age at read, p99: interval of 5 s + 250 ms", "s", most=5.25),
    Figure("agent_cores", "agent", "agent, 50 values from 5 runs: CPU", *PERCENT, most=0.005),
    Figure("agent_rss_bytes", "agent", f"the same: {MEMORY}", *MB, most=30e6),
    Figure("agent_children_cores", "agent", "the same: CPU of the collectors themselves", *PERCENT),
    Figure("agent_50_runs_cores", "agent", "agent, 50 values from 50 runs: CPU", *PERCENT),
    Figure("agent_50_runs_rss_bytes", "agent", f"the same: {MEMORY}", *MB),
    Figure("agent_50_runs_children_cores", "agent", "the same: CPU of the collectors themselves", *PERCENT),
    Figure("agent_shipped_cores", "agent", "agent, all slots that a node gets by default: CPU", *PERCENT),
    Figure("agent_shipped_rss_bytes", "agent", f"the same: {MEMORY}", *MB),
    Figure("agent_shipped_children_cores", "agent", "the same: CPU of the slots' own processes", *PERCENT, most=0.01),
)

Found = dict[str, float]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
