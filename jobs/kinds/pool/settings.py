"""What a pool is told: what users may say of it, and what all of its jobs share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infosvc.wire.fields import PROGRAM_NAME
from jobs.application.job_spec import Settings
from jobs.application.options import option
from jobs.errors import JobError

ALL = "all"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, kw_only=True)
class PoolSettings(Settings):
    """Beside these a pool has the options of the workers of its jobs.

    name      by which jobs find it
    of        the kind of its jobs, one that divides items
    digits    the first digits of the SHA-256 of weights, preparation and labels of their network, where it has any
    parts     of the environment of its workers: paths in HDFS by the folders that they become
    job       the settings of that kind, as each job of the pool has them; what is its own comes with the job
    """

    nodes: str = option(ALL, help="How many nodes have a worker: all, or the best N of them.", metavar="all|N")
    best_by: str | None = option(
        None, help="Data name that tells which N nodes are best  [default: as YARN names them].", metavar="NAME"
    )
    idle: str = option(
        "30m", help="How long without a job or picture until it ends, as 90s, 30m or 2h; 0 for never.", metavar="TIME"
    )
    most_jobs: int = option(16, flag="--jobs", help="Most jobs that it works on at once.", least=1, most=200)
    name: str = ""
    of: str = "classify"
    job: Mapping[str, Any] = field(default_factory=dict)
    digits: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """JobError where a number of nodes or a time is something else, or where nodes are chosen that all have one."""
        most, _ = self.most_nodes, self.idle_seconds
        if self.best_by and most is None:
            raise JobError(
                f"--best-by {self.best_by} chooses some of the nodes, and the pool is to have a worker on all",
                remedy="give --nodes N, too, or leave out --best-by",
            )

    @property
    def most_nodes(self) -> int | None:
        """How many nodes have a worker, None for all; JobError where that is no number."""
        if self.nodes == ALL:
            return None
        if not (self.nodes.isascii() and self.nodes.isdecimal() and int(self.nodes) > 0):
            raise JobError(f"--nodes is {self.nodes!r}", remedy="give all, or a number of 1 or more")
        return int(self.nodes)

    @property
    def idle_seconds(self) -> float | None:
        """After how long without a job or picture it ends, None for never; JobError where that is no time."""
        found = re.fullmatch(r"(\d{1,9})([smhd]?)", self.idle, re.ASCII)
        if found is None:
            raise JobError(f"--idle is {self.idle!r}", remedy="give a time such as 90s, 30m or 2h, or 0 for never")
        return float(int(found[1]) * _SECONDS[found[2]]) or None

    @property
    def idle_text(self) -> str:
        """The same for people."""
        return f"{self.idle} s" if self.idle.isdecimal() else self.idle


def check_name(name: str) -> str:
    """A pool's name as it was given; JobError when it can be no tag of an application."""
    if not PROGRAM_NAME.fullmatch(name):
        raise JobError(f"{name!r} is no name of a pool", remedy="give 1 to 64 small letters, digits, dots, _ or -")
    return name
