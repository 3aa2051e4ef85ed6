"""The leases of a job as the bars of a time line: few enough to be drawn, however many leases there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from jobs.reports.report import Failure, JobReport, LeaseReport

KINDS = {
    "local": "own disk",
    "moved": "from another node's disk",
    "stolen": "from another node's part",
    "refused": "not counted",
}
"""Kinds of leases, and what they are called."""
WIDTH = 900
"""Of the drawing; a bar narrower than one part in so many cannot be seen."""
MOST_BARS = 2000
LEAST_WIDTH = 2.0


@dataclass(frozen=True)
class Bar:
    """Leases of one node that are drawn as one: seconds since the work began, and leases and items by kind."""

    begin: float
    end: float
    leases: Counter[str]
    items: Counter[str]

    @property
    def kind(self) -> str:
        """What most of its items were."""
        return max(self.items, key=lambda kind: self.items[kind])

    def join(self, later: Bar) -> Bar:
        """Both as one."""
        leases, items = self.leases + later.leases, Counter({**self.items})
        items.update(later.items)
        return Bar(self.begin, max(self.end, later.end), leases, items)

    def text(self, unit: str) -> str:
        """What it stands for, in words; `unit` is what an item is called, in the plural."""
        what = ", ".join(f"{self.items[kind]} {KINDS[kind]}" for kind in KINDS if kind in self.items)
        leases = self.leases.total()
        return f"{self.begin:.1f} s to {self.end:.1f} s: {leases} lease{'s' * (leases != 1)}, {unit}: {what}"


@dataclass(frozen=True)
class Lane:
    """One node: what counted, what did not, and what it lost on the way; `all` has all its leases in one."""

    node_name: str
    bars: tuple[Bar, ...]
    refused: tuple[Bar, ...]
    failures: tuple[Failure, ...]
    all: Bar | None


@dataclass(frozen=True)
class Timeline:
    """The lanes of all nodes, and the second at which the last of them ends."""

    lanes: tuple[Lane, ...]
    seconds: float


def kind(lease: LeaseReport) -> str:
    """One of KINDS: whose part it was comes before where the items lay, for which the greater half counts."""
    if not lease.is_accepted:
        return "refused"
    if lease.is_stolen:
        return "stolen"
    return "local" if 2 * lease.local_items >= lease.items else "moved"


def timeline(report: JobReport) -> Timeline:
    """The time line of a job, a lane for each node of the report and for each other one that had a lease."""
    ends = [lease.end for lease in report.leases] + [failure.seconds for failure in report.failures]
    seconds = max(ends, default=0.0)
    names = dict.fromkeys([node.node_name for node in report.nodes])
    names |= dict.fromkeys(lease.node_name for lease in report.leases)
    names |= dict.fromkeys(failure.node_name for failure in report.failures)
    least = seconds * max(LEAST_WIDTH / WIDTH, len(names) / MOST_BARS)
    leases = {name: list(found) for name, found in groupby(sorted(report.leases, key=_order), attrgetter("node_name"))}
    failures = sorted(report.failures, key=attrgetter("seconds"))
    return Timeline(
        tuple(
            _lane(name, leases.get(name, []), tuple(one for one in failures if one.node_name == name), least)
            for name in names
        ),
        seconds,
    )


def _order(lease: LeaseReport) -> tuple[str, float, float]:
    return lease.node_name, lease.end, lease.begin


def _lane(name: str, leases: Sequence[LeaseReport], failures: tuple[Failure, ...], least: float) -> Lane:
    """Leases that counted stand one after the other, as they were worked on; those that waited began earlier."""
    bars: list[Bar] = []
    free = 0.0
    for lease in leases:
        if lease.is_accepted:
            bars.append(_bar(lease, max(free, lease.begin)))
            free = lease.end
    refused = [_bar(lease, lease.begin) for lease in leases if not lease.is_accepted]
    whole = None
    for lease in leases:
        bar = _bar(lease, lease.begin)
        whole = whole.join(bar) if whole else bar
    return Lane(name, merge(bars, least), merge(sorted(refused, key=attrgetter("begin")), least), failures, whole)


def _bar(lease: LeaseReport, begin: float) -> Bar:
    return Bar(begin, lease.end, Counter({kind(lease): 1}), Counter({kind(lease): lease.items}))


def merge(bars: Iterable[Bar], least: float) -> tuple[Bar, ...]:
    """Neighbours in time joined until each lasts `least` seconds, those of one kind first; at most two in that time.

    A short one between long ones of another kind stays: it is what one looks for.
    """
    found: list[Bar] = []
    for bar in bars:
        if found and _join(found[-1], bar, least):
            found[-1] = found[-1].join(bar)
        else:
            found.append(bar)
    return tuple(found)


def _join(earlier: Bar, later: Bar, least: float) -> bool:
    if later.begin - earlier.end >= least:
        return False
    short = [bar.end - bar.begin < least for bar in (earlier, later)]
    return all(short) or (any(short) and earlier.kind == later.kind)
