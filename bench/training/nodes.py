"""Uneven nodes on this machine: control groups with a part of the CPUs each, and burners that load them.

Where no group can be made, nodes are CPUs instead: the last node has one of its own, and the others share one.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.info.errors import BenchError
from bench.training.settings import PINNED

CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
PERIOD_MICROSECONDS = 10_000
LEAST_QUOTA_MICROSECONDS = 1_000
"""Of the kernel."""
BURN = "while True:\n for number in range(1_000_000): pass"
END_SECONDS = 10.0


class CannotLimit(BenchError):
    """No control group can be made here."""

    def __init__(self) -> None:
        super().__init__(
            f"no group can be made in {CPU_GROUPS}, so nodes cannot be given parts of a CPU: run this as root"
        )


class Nodes:
    """`names` are what a program is told, one for each node; `is_limited` tells whether they are control groups."""

    def __init__(self, names: Sequence[str], is_limited: bool) -> None:
        self.names = tuple(names)
        self.is_limited = is_limited
        self._burners: list[list[subprocess.Popen[bytes]]] = [[] for _ in names]

    def limit(self, number: int, cpus: float) -> None:
        """Give a node so many CPUs from now on; CannotLimit where nodes are not control groups."""
        if not self.is_limited:
            raise CannotLimit
        group = Path(self.names[number])
        period, quota = period_and_quota(cpus)
        (group / "cpu.cfs_quota_us").write_text("-1")  # a period that does not fit the quota is refused
        (group / "cpu.cfs_period_us").write_text(str(period))
        (group / "cpu.cfs_quota_us").write_text(str(quota))

    def load(self, burners: Sequence[int]) -> None:
        """Let so many programs compute on each node beside those that train."""
        for number, wanted in enumerate(burners):
            running = self._burners[number]
            while len(running) > wanted:
                one = running.pop()
                one.kill()
                one.wait()
            while len(running) < wanted:
                running.append(self._burn(number))

    def throttled(self) -> float | None:
        """The share of all periods in which a node had used up its CPU; None where nodes are not control groups."""
        counts = [_stat(Path(name)) for name in self.names] if self.is_limited else []
        periods = sum(one["nr_periods"] for one in counts)
        return sum(one["nr_throttled"] for one in counts) / periods if periods else None

    def _burn(self, number: int) -> subprocess.Popen[bytes]:
        name = self.names[number]
        if name.startswith(PINNED):
            return subprocess.Popen(["taskset", "-c", name.removeprefix(PINNED), sys.executable, "-c", BURN])
        burner = subprocess.Popen([sys.executable, "-c", BURN])
        (Path(name) / "cgroup.procs").write_text(str(burner.pid))
        return burner


@contextmanager
def nodes(cpus: Sequence[float]) -> Iterator[Nodes]:
    """Nodes with so many CPUs each. All that was started on them has to have ended at the end."""
    top = CPU_GROUPS / f"nodewise-bench-{os.getpid()}"
    if not _can_make(top):
        yield Nodes(_pinned(len(cpus)), is_limited=False)
        return
    groups = [top / f"node-{number}" for number in range(len(cpus))]
    try:
        for group in groups:
            group.mkdir()
        made = Nodes(list(map(str, groups)), is_limited=True)
        for number, one in enumerate(cpus):
            made.limit(number, one)
        try:
            yield made
        finally:
            made.load([0] * len(cpus))
    finally:
        for group in (*groups, top):
            _remove(group)


def _pinned(count: int) -> list[str]:
    """One CPU for the last node, another for the rest."""
    known = sorted(os.sched_getaffinity(0))
    return [f"{PINNED}{known[0]}"] * (count - 1) + [f"{PINNED}{known[-1]}"]


def period_and_quota(cpus: float) -> tuple[int, int]:
    """In microseconds; the period is longer where the kernel refuses so small a quota.

    >>> period_and_quota(0.2), period_and_quota(0.05)
    ((10000, 2000), (20000, 1000))
    """
    period = max(PERIOD_MICROSECONDS, math.ceil(LEAST_QUOTA_MICROSECONDS / cpus))
    return period, round(period * cpus)


def _can_make(group: Path) -> bool:
    try:
        group.mkdir()
        return (group / "cpu.cfs_quota_us").exists()
    except OSError:
        return False


def _remove(group: Path) -> None:
    """As soon as the kernel has taken all ended processes out of it."""
    until = time.monotonic() + END_SECONDS
    while group.exists():
        with contextlib.suppress(OSError):
            group.rmdir()
        if time.monotonic() > until:
            raise BenchError(f"{group} cannot be removed: a process is left in it")
        time.sleep(0.05)


def _stat(group: Path) -> dict[str, int]:
    lines = (group / "cpu.stat").read_text().splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}
